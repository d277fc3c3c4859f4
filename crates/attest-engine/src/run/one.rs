//! One step of a pipeline: from the hash of its inputs to its result.

use attest_receipt::manifest::Manifest;
use attest_receipt::receipt::StepResult;
use tokio_util::sync::CancellationToken;
use tree_manifest::ManifestError;

use super::boxed::Capsules;
use super::plan::{Plan, Planned};
use super::{Changes, RunError, RunOptions};
use crate::cache::{self, Found, Subject};
use crate::hooks::StepOutput;
use crate::output::{Observer, Record, Recorded};
use crate::step::{self, Command, Executed, Tap};

/// What all steps of a run share.
#[derive(Clone, Copy)]
pub(super) struct Shared<'a> {
    pub(super) options: &'a RunOptions<'a>,
    pub(super) plan: &'a Plan,
    pub(super) capsules: &'a Capsules,
    pub(super) observer: &'a dyn Observer,
    /// Ends everything: the run was cancelled, or has no receipt any more.
    pub(super) abort: &'a CancellationToken,
    /// Whether the hooks are told what steps write.
    pub(super) wants_output: bool,
}

/// A step whose inputs are known.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) place: usize,
    pub(super) inputs: Manifest,
    pub(super) input_hash: String,
    pub(super) capsule_hash: Option<String>,
    cached: Cached,
}

/// What the cache has for a step.
#[derive(Debug)]
enum Cached {
    /// Nobody has looked yet.
    Unknown,
    Nothing,
    Result(Box<Done>),
}

impl Ready {
    pub(super) fn is_cached(&self) -> bool {
        matches!(self.cached, Cached::Result(_))
    }
}

/// A step with its result.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) place: usize,
    /// Without the outputs' text.
    pub(super) result: StepResult,
    pub(super) stdout: Recorded,
    pub(super) stderr: Recorded,
    pub(super) outputs: Manifest,
    /// What it wrote, for the hooks.
    pub(super) told: Option<StepOutput>,
}

impl<'a> Shared<'a> {
    pub(super) fn planned(self, place: usize) -> Result<&'a Planned, RunError> {
        self.plan
            .steps
            .get(place)
            .ok_or_else(|| RunError::Internal {
                what: "a step has no place in the plan",
                source: place.to_string().into(),
            })
    }

    /// Hashes the inputs.
    pub(super) async fn ready(self, place: usize) -> Result<Ready, RunError> {
        let planned = self.planned(place)?;
        planned.directory(self.options.state.workspace())?;
        let inputs = self.hash_inputs(planned).await?;
        Ok(Ready {
            place,
            input_hash: inputs.hash(),
            inputs,
            capsule_hash: self
                .capsules
                .of(planned)
                .and_then(|capsule| capsule.capsule_hash.clone()),
            cached: Cached::Unknown,
        })
    }

    /// Does the same, and looks into the cache. What is found is what the step will have done:
    /// nobody looks again.
    pub(super) async fn ready_or_cached(self, place: usize) -> Result<Ready, RunError> {
        let ready = self.ready(place).await?;
        self.look(ready).await
    }

    async fn look(self, mut ready: Ready) -> Result<Ready, RunError> {
        if matches!(ready.cached, Cached::Unknown) {
            let found = self.cached(self.planned(ready.place)?, &ready).await?;
            ready.cached = found.map_or(Cached::Nothing, |done| Cached::Result(Box::new(done)));
        }
        Ok(ready)
    }

    /// Takes the step's result from the cache, or runs it.
    pub(super) async fn finish(self, ready: Ready) -> Result<Done, RunError> {
        let planned = self.planned(ready.place)?;
        let mut ready = self.look(ready).await?;
        if let Cached::Result(done) = std::mem::replace(&mut ready.cached, Cached::Nothing) {
            return Ok(*done);
        }
        self.observer.started(&planned.name);
        let executed = self.execute(planned, &ready).await?;
        let after = self.hash_inputs(planned).await?;
        if after != ready.inputs {
            return Err(RunError::InputsChanged {
                step: planned.name.clone(),
                changes: Changes::between(&ready.inputs, &after),
                before: ready.input_hash,
                after: after.hash(),
            });
        }
        let outputs = self.hash_outputs(planned).await;
        if outputs.is_err() && executed.end.recorded() != 0 {
            // Otherwise nobody would learn that there was more to it than a missing output.
            let code = executed.end.recorded();
            let message = format!("step '{}' failed with exit code {code}", planned.name);
            self.observer.warning(&message);
        }
        let done = self.done(&ready, planned, executed, outputs?);
        self.remember(planned, &ready, &done);
        Ok(done)
    }

    async fn execute(self, planned: &Planned, ready: &Ready) -> Result<Executed, RunError> {
        let options = self.options;
        let tap = Tap {
            step: &planned.name,
            observer: self.observer,
            secrets: &self.plan.secrets,
            record: self.capture(),
        };
        if let Some(capsule) = self.capsules.of(planned) {
            return self
                .capsules
                .execute(
                    options,
                    planned,
                    capsule,
                    &ready.input_hash,
                    tap,
                    self.abort,
                )
                .await;
        }
        let directory = planned.directory(options.state.workspace())?;
        let environment = planned.environment(options);
        let mut command = Command::shell(&planned.step.run, environment, directory);
        command.timeout = planned.timeout();
        step::execute(&options.wrapper, command, tap, self.abort)
            .await
            .map_err(|source| match source {
                step::StepError::Cancelled => RunError::Cancelled,
                source => RunError::Step {
                    step: planned.name.clone(),
                    source,
                },
            })
    }

    /// A result from the cache, if the outputs that it claims are the ones on disk.
    async fn cached(self, planned: &Planned, ready: &Ready) -> Result<Option<Done>, RunError> {
        if !self.uses_cache(planned) {
            return Ok(None);
        }
        let folder = self.options.state.cache();
        let name = &planned.name;
        let claim = match cache::look(&folder, &self.subject(planned, ready)) {
            Found::Nothing => return Ok(None),
            Found::Unusable(why) => {
                let message = format!("step '{name}': a cache entry is passed over: {why}");
                self.observer.warning(&message);
                return Ok(None);
            }
            Found::Claim(claim) => claim,
        };
        let outputs = match self.hash_outputs(planned).await {
            Ok(outputs) if outputs.hash() == claim.output_hash => outputs,
            Ok(_) | Err(RunError::Missing { .. } | RunError::Hashing { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(from_claim(self, ready, claim, outputs)))
    }

    fn remember(self, planned: &Planned, ready: &Ready, done: &Done) {
        if !self.uses_cache(planned) || done.result.exit_code != 0 {
            return;
        }
        let result = StepResult {
            stdout: done.stdout.clone().into_text(),
            stderr: done.stderr.clone().into_text(),
            ..done.result.clone()
        };
        let folder = self.options.state.cache();
        let subject = self.subject(planned, ready);
        let secrets = &self.plan.secrets;
        let now = (self.options.now)();
        if let Err(why) = cache::store(&folder, &subject, &result, secrets, now) {
            let name = &planned.name;
            let message = format!("step '{name}': its result cannot be cached: {why}");
            self.observer.warning(&message);
        }
    }

    /// Hooks are told what a step wrote also where the receipt is not.
    fn capture(self) -> Record {
        match self.options.record {
            Record::None if self.wants_output => Record::Tail,
            record => record,
        }
    }

    fn uses_cache(self, planned: &Planned) -> bool {
        planned.step.cache && self.options.execution == super::Execution::Ambient
    }

    fn subject<'b>(self, planned: &'b Planned, ready: &'b Ready) -> Subject<'b> {
        Subject {
            name: &planned.name,
            step: &planned.step,
            input_hash: &ready.input_hash,
            capsule_hash: ready.capsule_hash.as_deref(),
            variables: &planned.variables,
            record: self.options.record,
        }
    }

    async fn hash_inputs(self, planned: &Planned) -> Result<Manifest, RunError> {
        let hash = planned.command_hash.clone();
        if planned.step.inputs.is_empty() {
            return Ok(Manifest::of_inputs(hash));
        }
        let workspace = self.options.state.workspace().to_owned();
        let declared = planned.step.inputs.clone();
        let options = tree_manifest::Options::default();
        let work = move || tree_manifest::inputs(&workspace, &hash, &declared, &options);
        self.aside(planned, work).await
    }

    async fn hash_outputs(self, planned: &Planned) -> Result<Manifest, RunError> {
        if planned.step.outputs.is_empty() {
            return Ok(Manifest::of_outputs());
        }
        let workspace = self.options.state.workspace().to_owned();
        let declared = planned.step.outputs.clone();
        let options = tree_manifest::Options::default();
        self.aside(planned, move || {
            tree_manifest::outputs(&workspace, &declared, &options)
        })
        .await
    }

    /// Hashes on another thread, so that outputs are shown and interrupts heard meanwhile.
    async fn aside<T: Send + 'static>(
        self,
        planned: &Planned,
        work: impl FnOnce() -> Result<T, ManifestError> + Send + 'static,
    ) -> Result<T, RunError> {
        let task = tokio::task::spawn_blocking(work);
        let joined = tokio::select! {
            biased;
            () = self.abort.cancelled() => return Err(RunError::Cancelled),
            joined = task => joined,
        };
        let hashed = joined.map_err(|source| RunError::Internal {
            what: "the hashing of files broke off",
            source: source.into(),
        })?;
        hashed.map_err(|source| RunError::hashing(&planned.name, source))
    }
}

impl Shared<'_> {
    fn done(self, ready: &Ready, planned: &Planned, executed: Executed, outputs: Manifest) -> Done {
        let told = self
            .wants_output
            .then(|| StepOutput::of(&executed.stdout, &executed.stderr));
        let kept = |recorded| match self.options.record {
            Record::None => Recorded::default(),
            Record::Tail | Record::Full => recorded,
        };
        Done {
            place: ready.place,
            result: StepResult {
                name: planned.name.clone(),
                input_hash: ready.input_hash.clone(),
                output_hash: outputs.hash(),
                duration_secs: executed.duration.as_secs(),
                exit_code: executed.end.recorded(),
                cache_hit: false,
                stdout: String::new(),
                stderr: String::new(),
                capsule_hash: ready.capsule_hash.clone(),
            },
            stdout: kept(executed.stdout),
            stderr: kept(executed.stderr),
            outputs,
            told,
        }
    }
}

/// The texts of a claim are foreign: secrets are replaced and lengths bounded as if they were new.
fn from_claim(shared: Shared<'_>, ready: &Ready, claim: StepResult, outputs: Manifest) -> Done {
    let record = shared.options.record;
    let bounded = |text: &str| Recorded::bounded(&shared.plan.secrets.replace(text), record);
    let (stdout, stderr) = (bounded(&claim.stdout), bounded(&claim.stderr));
    let told = shared.wants_output.then(|| {
        let mut told = StepOutput::of(&stdout, &stderr);
        if record == Record::None {
            // Nothing was kept of it, so nobody knows what there was.
            (told.stdout_truncated, told.stderr_truncated) = (true, true);
        }
        told
    });
    Done {
        place: ready.place,
        stdout,
        stderr,
        result: StepResult {
            output_hash: outputs.hash(),
            cache_hit: true,
            stdout: String::new(),
            stderr: String::new(),
            ..claim
        },
        outputs,
        told,
    }
}
