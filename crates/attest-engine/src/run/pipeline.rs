//! A whole run: plan, steps, receipt.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use attest_receipt::ledger::{chain_hash, environment_hash};
use attest_receipt::receipt::{
    Artifact, Execution as Started, PLAIN_VERSION, PLUGINS_VERSION, PluginRecord, Provenance,
    Receipt, Source, StepResult,
};
use attest_receipt::time::Time;
use tokio::time::Instant;

use super::before::Held;
use super::boxed::Capsules;
use super::conclude::{Closing, Draft, conclude};
use super::one::{Done, Shared};
use super::plan::Plan;
use super::schedule::{self, Ran};
use super::{Execution, RunError, RunOptions, RunOutcome, before, gate};
use crate::hooks::{Hooks, Stop, Verdict};
use crate::output::{Hiding, Observer, Secrets};
use crate::{ci, isolation, ledger, source};

/// Runs a pipeline and writes its receipt.
///
/// # Errors
/// Why there is no receipt; [`RunError::is_no`] tells the honest no from the failed operation.
/// Nothing of the pipeline runs any more then. Whoever was asked may still be there.
pub async fn pipeline(
    options: &RunOptions<'_>,
    observer: &dyn Observer,
    hooks: &mut dyn Hooks,
) -> Result<RunOutcome, RunError> {
    let (mut outcome, held, target) = build(options, observer, hooks).await?;
    farewell(options, hooks).await?;
    let closing = Closing {
        state: &options.state,
        place: &options.place,
        target: target.as_deref(),
        signing: options.signing,
        label: options.pipeline.name.as_deref(),
        now: (options.now)(),
        secrets: &options.secrets(),
        record_events: true,
    };
    let draft = Draft {
        receipt: outcome.receipt.clone(),
        events: std::mem::take(&mut outcome.events),
    };
    (outcome.receipt, outcome.path) = conclude(draft, closing)?;
    drop(held);
    Ok(outcome)
}

/// Runs a pipeline up to a receipt that everybody has seen, which is neither signed nor written,
/// and keeps other runs out of the workspace. The path is that of the file which the receipt's leads
/// to.
pub(crate) async fn build(
    options: &RunOptions<'_>,
    observer: &dyn Observer,
    hooks: &mut dyn Hooks,
) -> Result<(RunOutcome, Held, Option<PathBuf>), RunError> {
    let target = before::check(options, hooks)?;
    let held = before::hold(options, observer).await?;
    let begun = Begun::now(options);
    let plan = Plan::new(options)?;
    let observer = &Hiding::new(observer, &plan.secrets);
    for name in plan.secrets.too_short() {
        observer.warning(&format!(
            "the value of secret `{name}` is too short to be replaced"
        ));
    }
    gate::places(&plan.secrets, options)?;
    let name = options.pipeline.name.as_deref();
    gate::early(&plan.secrets, name, &plan.declared())?;
    let capsules = Capsules::load(options, &plan)?;
    let source = commit(options).await;
    gate::source(&plan.secrets, source.as_ref())?;
    if let Some(stop) = hear(options, hooks.pipeline_validate(&plan.facts)).await? {
        return Err(RunError::Stopped(stop));
    }
    let abort = options.cancel.child_token();
    let shared = Shared {
        options,
        plan: &plan,
        capsules: &capsules,
        observer,
        abort: &abort,
        wants_output: hooks.wants_output(),
    };
    let mut ran = schedule::all(shared, hooks).await?;
    let stopped = ran.stopped.take();
    if let (Some(stop), true) = (&stopped, ran.done.is_empty()) {
        return Err(RunError::Stopped(stop.clone()));
    }
    let mut outcome = assemble(options, &plan, ran, &begun, source);
    // What nobody may read in a receipt is not shown to anybody either.
    gate::shown(&plan.secrets, &outcome.receipt)?;
    outcome.stopped = finalize(options, hooks, &mut outcome.receipt, stopped).await?;
    Ok((outcome, held, target))
}

/// Ends everybody who was asked, so that nobody of them is there when a key is.
pub(crate) async fn farewell(
    options: &RunOptions<'_>,
    hooks: &mut dyn Hooks,
) -> Result<(), RunError> {
    listen(options, hooks.finish()).await
}

/// When a run began, by both clocks, and its number.
struct Begun {
    at: Time,
    clock: Instant,
    invocation: Option<String>,
}

impl Begun {
    fn now(options: &RunOptions<'_>) -> Self {
        Self {
            at: (options.now)(),
            clock: Instant::now(),
            invocation: match options.execution {
                Execution::Ambient => Some(uuid::Uuid::new_v4().to_string()),
                Execution::Hermetic => None,
            },
        }
    }
}

async fn commit(options: &RunOptions<'_>) -> Option<Source> {
    match options.execution {
        Execution::Ambient => {
            let workspace = options.state.workspace();
            let search = options.environment.get("PATH");
            source::probe(workspace, search, &options.cancel).await
        }
        Execution::Hermetic => None,
    }
}

/// Hears who is against it, unless the run is cancelled.
async fn hear(
    options: &RunOptions<'_>,
    answer: impl Future<Output = Verdict>,
) -> Result<Option<Stop>, RunError> {
    match listen(options, answer).await? {
        Verdict::Go => Ok(None),
        Verdict::Stop(stop) => Ok(Some(stop)),
        Verdict::Cancelled => Err(RunError::Cancelled),
    }
}

/// Waits for something unless the run is cancelled.
async fn listen<T>(
    options: &RunOptions<'_>,
    answer: impl Future<Output = T>,
) -> Result<T, RunError> {
    tokio::select! {
        biased;
        () = options.cancel.cancelled() => Err(RunError::Cancelled),
        answer = answer => Ok(answer),
    }
}

/// Shows the receipt, unless somebody stopped the run before; then fixes what is recorded of those
/// who were asked. Nobody sees what is recorded of themselves.
async fn finalize(
    options: &RunOptions<'_>,
    hooks: &mut dyn Hooks,
    receipt: &mut Receipt,
    stopped: Option<Stop>,
) -> Result<Option<Stop>, RunError> {
    if hooks.records().is_some() {
        receipt.schema_version = Some(PLUGINS_VERSION);
    }
    let stopped = match stopped {
        Some(stop) => Some(stop),
        None => {
            let shown = match options.execution {
                Execution::Ambient => Cow::Borrowed(&*receipt),
                Execution::Hermetic => Cow::Owned(timeless(receipt)),
            };
            hear(options, hooks.receipt_finalize(&shown)).await?
        }
    };
    receipt.plugins = records(&options.secrets(), hooks);
    Ok(stopped)
}

/// What is recorded of those who were asked, sorted as receipts have it. A reason is told in words
/// and may quote what a plugin wrote, so the values of secrets are replaced in it.
pub(crate) fn records(secrets: &Secrets, hooks: &dyn Hooks) -> Option<Vec<PluginRecord>> {
    let mut records = hooks.records()?;
    records.sort_by(|a, b| a.name.cmp(&b.name));
    for reason in records.iter_mut().filter_map(|it| it.reason.as_mut()) {
        *reason = secrets.replace(reason);
    }
    Some(records)
}

/// The receipt without what differs from one build to the next and is no result of it, so that the
/// answers to both can be compared.
fn timeless(receipt: &Receipt) -> Receipt {
    let mut receipt = receipt.clone();
    receipt.total_duration_secs = 0;
    for step in &mut receipt.steps {
        step.duration_secs = 0;
    }
    receipt
}

fn assemble(
    options: &RunOptions<'_>,
    plan: &Plan,
    ran: Ran,
    begun: &Begun,
    source: Option<Source>,
) -> RunOutcome {
    let hermetic = options.execution == Execution::Hermetic;
    let timestamp = if hermetic {
        Time::hermetic()
    } else {
        (options.now)()
    };
    let isolation = isolate(plan, &ran.done, hermetic);
    let artifacts = ran.done.iter().flat_map(artifacts).collect();
    let mut outputs = BTreeMap::new();
    let mut steps = Vec::with_capacity(ran.done.len());
    for done in ran.done {
        steps.push(StepResult {
            stdout: done.stdout.into_text(),
            stderr: done.stderr.into_text(),
            ..done.result
        });
        let name = plan.steps.get(done.place).map(|step| step.name.clone());
        outputs.extend(name.map(|name| (name, done.outputs)));
    }
    let events = record(plan, &steps, timestamp, hermetic);
    let receipt = Receipt {
        schema_version: Some(PLAIN_VERSION),
        pipeline_hash: plan.pipeline_hash.clone(),
        timestamp,
        total_duration_secs: begun.clock.elapsed().as_secs(),
        signature: None,
        signer_public_key: None,
        attest_version: options.attest_version.clone(),
        causal_events: events.iter().map(|event| event.event_id.clone()).collect(),
        causal_chain_hash: Some(chain_hash(&events)),
        reproducibility: None,
        provenance: Some(Provenance {
            invocation_id: begun.invocation.clone(),
            started_at: (!hermetic).then_some(begun.at),
            pipeline_name: options.pipeline.name.clone(),
            source,
            runner_os: std::env::consts::OS.into(),
            runner_arch: std::env::consts::ARCH.into(),
            ci: if hermetic {
                None
            } else {
                ci::detect(|name| options.environment.text(name))
            },
            steps: plan.declared(),
            artifacts,
            execution: Some(Started::Native),
        }),
        timestamp_token: None,
        isolation: Some(isolation),
        plugins: None,
        steps,
    };
    RunOutcome {
        failed: failed(&receipt),
        receipt,
        path: None,
        skipped: ran.skipped,
        stopped: None,
        outputs,
        events,
    }
}

fn failed(receipt: &Receipt) -> Vec<String> {
    let failed = receipt.steps.iter().filter(|step| step.exit_code != 0);
    failed.map(|step| step.name.clone()).collect()
}

fn isolate(plan: &Plan, done: &[Done], hermetic: bool) -> attest_receipt::receipt::Isolation {
    let ran: Vec<_> = done
        .iter()
        .map(|done| isolation::Ran {
            step: &done.result.name,
            cache_hit: done.result.cache_hit,
            capsule: done.result.capsule_hash.is_some(),
            timeout: plan
                .steps
                .get(done.place)
                .is_some_and(|planned| planned.step.timeout_secs.is_some()),
        })
        .collect();
    isolation::pipeline(hermetic, &ran)
}

fn artifacts(done: &Done) -> impl Iterator<Item = Artifact> {
    done.outputs.entries().map(|(path, entry)| Artifact {
        step: done.result.name.clone(),
        path: path.to_owned(),
        kind: entry.kind,
        digest: entry.digest.clone(),
        algorithm: "blake3".into(),
    })
}

fn record(
    plan: &Plan,
    steps: &[StepResult],
    timestamp: Time,
    hermetic: bool,
) -> Vec<attest_receipt::ledger::Event> {
    let needs: BTreeMap<&str, &[String]> = plan
        .facts
        .steps
        .iter()
        .map(|step| (step.name.as_str(), step.needs.as_slice()))
        .collect();
    let how = if hermetic { "true" } else { "false" };
    ledger::events(
        steps,
        |name| needs.get(name).copied().unwrap_or_default(),
        ledger::Shared {
            pipeline_hash: &plan.pipeline_hash,
            environment_hash: &environment_hash(std::env::consts::OS, std::env::consts::ARCH, how),
            timestamp,
        },
    )
}
