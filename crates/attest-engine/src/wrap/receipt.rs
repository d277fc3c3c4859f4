//! The receipt of a wrapped command.

use attest_receipt::ledger::{chain_hash, environment_hash};
use attest_receipt::manifest::Manifest;
use attest_receipt::receipt::{
    Artifact, DeclaredStep, Execution, PLAIN_VERSION, PLUGINS_VERSION, Provenance, Receipt,
    StepResult,
};

use super::{Before, Failure, Wrap, WrapOutcome};
use crate::hooks::Hooks;
use crate::run::{self, Draft};
use crate::step::Executed;
use crate::{ci, isolation, ledger};

impl Wrap<'_> {
    pub(super) fn assemble(
        &self,
        before: &Before,
        executed: Executed,
        code: i32,
        outputs: &Manifest,
    ) -> Draft {
        let options = self.options;
        let timestamp = (options.now)();
        let result = StepResult {
            name: options.name.clone(),
            input_hash: before.input_hash.clone(),
            output_hash: outputs.hash(),
            duration_secs: executed.duration.as_secs(),
            exit_code: code,
            cache_hit: false,
            stdout: executed.stdout.into_text(),
            stderr: executed.stderr.into_text(),
            capsule_hash: None,
        };
        let machine = environment_hash(std::env::consts::OS, std::env::consts::ARCH, "wrapped");
        let events = ledger::events(
            std::slice::from_ref(&result),
            |_| &[],
            ledger::Shared {
                pipeline_hash: &self.pipeline_hash,
                environment_hash: &machine,
                timestamp,
            },
        );
        let receipt = Receipt {
            schema_version: Some(PLAIN_VERSION),
            pipeline_hash: self.pipeline_hash.clone(),
            steps: vec![result],
            timestamp,
            total_duration_secs: before.clock.elapsed().as_secs(),
            signature: None,
            signer_public_key: None,
            attest_version: options.attest_version.clone(),
            causal_events: events.iter().map(|event| event.event_id.clone()).collect(),
            causal_chain_hash: Some(chain_hash(&events)),
            reproducibility: None,
            provenance: Some(self.provenance(before, outputs)),
            timestamp_token: None,
            isolation: Some(isolation::wrapped()),
            plugins: None,
        };
        Draft { receipt, events }
    }

    pub(super) fn declared(&self) -> DeclaredStep {
        DeclaredStep {
            name: self.options.name.clone(),
            needs: Vec::new(),
            command_hash: self.command_hash.clone(),
            inputs: self.options.inputs.clone(),
            outputs: self.options.outputs.clone(),
        }
    }

    fn provenance(&self, before: &Before, outputs: &Manifest) -> Provenance {
        let options = self.options;
        let artifacts = outputs.entries().map(|(path, entry)| Artifact {
            step: options.name.clone(),
            path: path.to_owned(),
            kind: entry.kind,
            digest: entry.digest.clone(),
            algorithm: "blake3".into(),
        });
        Provenance {
            invocation_id: Some(uuid::Uuid::new_v4().to_string()),
            started_at: Some(before.at),
            pipeline_name: Some(options.name.clone()),
            source: before.source.clone(),
            runner_os: std::env::consts::OS.into(),
            runner_arch: std::env::consts::ARCH.into(),
            ci: ci::detect(|name| options.environment.text(name)),
            steps: vec![self.declared()],
            artifacts: artifacts.collect(),
            execution: Some(Execution::Wrapped {
                command: self.told.clone(),
            }),
        }
    }

    /// Shows the receipt, unless somebody was against it before; then fixes what is recorded of
    /// those who were asked.
    pub(super) async fn judge(
        &self,
        receipt: &mut Receipt,
        hooks: &mut dyn Hooks,
        outcome: &mut WrapOutcome,
    ) {
        if hooks.records().is_some() {
            receipt.schema_version = Some(PLUGINS_VERSION);
        }
        if outcome.failure.is_none() {
            let judged: Result<(), Failure> = self.ask(hooks.receipt_finalize(receipt)).await;
            outcome.failure = judged.err();
        }
        receipt.plugins = run::records(self.secrets, hooks);
    }
}
