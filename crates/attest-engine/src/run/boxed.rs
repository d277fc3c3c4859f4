//! The capsules of a run's steps, and the client that runs them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use attest_receipt::capsule::Capsule;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::plan::{Plan, Planned};
use super::{RunError, RunOptions};
use crate::capsule::{self, CapsuleFault, Client, Prepared, Snapshot, temporary_folder};
use crate::step::{Executed, StepError, Tap};

/// The capsules that the steps of a run name.
#[derive(Debug)]
pub(super) struct Capsules {
    by_step: BTreeMap<String, Capsule>,
    /// Looked for when the first step needs it: results from the cache need none.
    client: OnceCell<Client>,
    temporary: PathBuf,
}

impl Capsules {
    /// Reads every capsule before any step runs.
    pub(super) fn load(options: &RunOptions<'_>, plan: &Plan) -> Result<Self, RunError> {
        let workspace = options.state.workspace();
        let mut by_step = BTreeMap::new();
        for planned in &plan.steps {
            if let Some(name) = &planned.step.capsule {
                let loaded = capsule::load(workspace, name);
                let loaded = loaded.map_err(|fault| fault_of(planned, fault))?;
                by_step.insert(planned.name.clone(), loaded);
            }
        }
        Ok(Self {
            by_step,
            client: OnceCell::new(),
            temporary: temporary_folder(&options.environment),
        })
    }

    pub(super) fn of(&self, planned: &Planned) -> Option<&Capsule> {
        self.by_step.get(&planned.name)
    }

    /// Runs a step in its capsule, on a snapshot of its inputs that has the recorded hash.
    pub(super) async fn execute(
        &self,
        options: &RunOptions<'_>,
        planned: &Planned,
        capsule: &Capsule,
        input_hash: &str,
        tap: Tap<'_>,
        abort: &CancellationToken,
    ) -> Result<Executed, RunError> {
        let fault = |fault| fault_of(planned, fault);
        let client = self
            .client
            .get_or_try_init(|| Client::find(&options.environment, abort));
        let client = client.await.map_err(fault)?;
        let snapshot = self.snapshot(options, planned, input_hash, abort).await?;
        let prepared = Prepared::new(
            options.state.workspace(),
            planned.step.working_dir.as_deref(),
            capsule,
            &capsule::shell(&planned.step.run),
            client,
            Some(snapshot),
        )
        .map_err(fault)?;
        let wrapper = &options.wrapper;
        let executed = prepared.execute(wrapper, planned.timeout(), tap, abort);
        executed.await.map_err(fault)
    }

    async fn snapshot(
        &self,
        options: &RunOptions<'_>,
        planned: &Planned,
        input_hash: &str,
        abort: &CancellationToken,
    ) -> Result<Snapshot, RunError> {
        let workspace = options.state.workspace().to_owned();
        let place = self.temporary.clone();
        let declared = planned.step.inputs.clone();
        let command_hash = planned.command_hash.clone();
        let input_hash = input_hash.to_owned();
        let abort = abort.clone();
        let taken = tokio::task::spawn_blocking(move || {
            Snapshot::take(
                &workspace,
                &place,
                &declared,
                &command_hash,
                &input_hash,
                &abort,
            )
        });
        match taken.await {
            Ok(taken) => taken.map_err(|fault| fault_of(planned, fault)),
            Err(source) => Err(RunError::Internal {
                what: "the copying of inputs broke off",
                source: source.into(),
            }),
        }
    }
}

fn fault_of(planned: &Planned, fault: CapsuleFault) -> RunError {
    match fault {
        CapsuleFault::Step(StepError::Cancelled)
        | CapsuleFault::Snapshot(crate::copy::CopyError::Cancelled) => RunError::Cancelled,
        fault => RunError::Capsule {
            step: planned.name.clone(),
            source: fault.into(),
        },
    }
}
