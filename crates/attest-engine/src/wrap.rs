//! Runs one command as it is, and attests it.
//!
//! The command is started by its argument vector, without a shell, in the workspace, with the
//! variables and the input of this process. Whatever becomes of the receipt, the exit code of a
//! command that failed is the exit code of the whole.

mod outcome;
mod receipt;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use attest_receipt::manifest::Manifest;
use attest_receipt::pipeline::{wrapped_command, wrapped_hash};
use attest_receipt::receipt::{Source, StepResult};
use attest_receipt::time::Time;
use process_tree::{StartError, Wrapper};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tree_manifest::ManifestError;

use crate::hooks::{AfterStep, BeforeStep, Hooks, PipelineFacts, StepFacts, StepOutput, Verdict};
use crate::layout::State;
use crate::output::{Hiding, Observer, Record, Recorded, Secrets};
use crate::run::{self, Changes, Closing, Draft, Environment, LoadKey, Place, RunError};
use crate::source;
use crate::step::{self, Command, End, Executed, Input, StepError, Tap};

pub use outcome::{Failure, Report, WrapOutcome};

/// One command to be attested.
#[derive(Clone)]
pub struct WrapOptions<'a> {
    /// The workspace and where its state is kept.
    pub state: State,
    /// The name of the one step.
    pub name: String,
    /// What it reads, relative to the workspace.
    pub inputs: Vec<String>,
    /// What it makes, relative to the workspace.
    pub outputs: Vec<String>,
    /// The argument vector.
    pub command: Vec<String>,
    /// The variables of this process, all of which the command gets.
    pub environment: Environment,
    /// The variables whose values never leave.
    pub secrets: Vec<String>,
    /// What the command reads.
    pub input: Input,
    /// The executable that watches over the command.
    pub wrapper: Wrapper,
    /// How much of the outputs is kept.
    pub record: Record,
    /// Who signs; asked when the command has ended.
    pub signing: Option<&'a dyn LoadKey>,
    /// Where the receipt goes.
    pub place: Place,
    /// The version that the receipt names.
    pub attest_version: String,
    /// The clock.
    pub now: fn() -> Time,
    /// Ends the command early; nothing is written then.
    pub cancel: CancellationToken,
}

impl std::fmt::Debug for WrapOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WrapOptions")
            .field("state", &self.state)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl WrapOptions<'_> {
    /// Returns what no receipt and no message may hold.
    #[must_use]
    pub fn secrets(&self) -> Secrets {
        secrets(&self.secrets, &self.environment)
    }
}

/// Returns the values of the variables of these names.
#[must_use]
pub fn secrets(names: &[String], environment: &Environment) -> Secrets {
    Secrets::new(names.iter().filter_map(|name| {
        let value = environment.get(name)?;
        Some((name.as_str(), value.as_bytes()))
    }))
}

/// Runs the command and writes its receipt. Nothing of the command runs any more afterwards.
pub async fn run(
    options: &WrapOptions<'_>,
    observer: &dyn Observer,
    hooks: &mut dyn Hooks,
) -> WrapOutcome {
    let mut outcome = WrapOutcome::hiding(options.secrets());
    let secrets = options.secrets();
    let observer = Hiding::new(observer, &secrets);
    let failure = Wrap::new(options, &observer, &secrets)
        .attest(hooks, &mut outcome)
        .await
        .err();
    outcome.failure = outcome.failure.or(failure);
    outcome
}

/// A command under way.
struct Wrap<'a> {
    options: &'a WrapOptions<'a>,
    observer: &'a dyn Observer,
    secrets: &'a Secrets,
    /// The argument vector as it is recorded, hashed and shown: without secret values.
    told: Vec<String>,
    /// What stands for it in hashes.
    text: String,
    pipeline_hash: String,
    command_hash: String,
}

/// What is known before the command starts.
struct Before {
    at: Time,
    clock: Instant,
    source: Option<Source>,
    input_hash: String,
    /// The file that the receipt's path leads to.
    target: Option<PathBuf>,
}

impl<'a> Wrap<'a> {
    fn new(options: &'a WrapOptions<'a>, observer: &'a dyn Observer, secrets: &'a Secrets) -> Self {
        let told: Vec<_> = options.command.iter().map(|w| secrets.replace(w)).collect();
        let text = wrapped_command(&told);
        Self {
            pipeline_hash: wrapped_hash(&told),
            command_hash: attest_receipt::encode::blake3_hex(text.as_bytes()),
            options,
            observer,
            secrets,
            told,
            text,
        }
    }

    async fn attest(
        &self,
        hooks: &mut dyn Hooks,
        outcome: &mut WrapOutcome,
    ) -> Result<(), Failure> {
        let options = self.options;
        let target = self.check(hooks)?;
        self.warn();
        let at = (options.now)();
        let clock = Instant::now();
        let search = options.environment.get("PATH");
        let source = source::probe(options.state.workspace(), search, &options.cancel).await;
        run::gate::source(self.secrets, source.as_ref())?;
        let facts = self.facts();
        self.ask(hooks.pipeline_validate(&facts)).await?;
        let inputs = self.hash_inputs().await?;
        let before = Before {
            at,
            clock,
            source,
            input_hash: inputs.hash(),
            target,
        };
        if let Some(step) = facts.steps.first() {
            let facts = BeforeStep {
                step,
                input_hash: &before.input_hash,
                command_hash: &self.command_hash,
                capsule_hash: None,
                pipeline_hash: &self.pipeline_hash,
                cache_hit: false,
            };
            self.ask(hooks.step_pre(&facts)).await?;
        }
        let wants_output = hooks.wants_output();
        let mut executed = self.execute(wants_output).await?;
        let code = code(executed.end);
        outcome.code = Some(code);
        let after = self.hash_inputs().await?;
        if after != inputs {
            return Err(Failure::InputsChanged(Changes::between(&inputs, &after)));
        }
        let outputs = self.hash_outputs().await?;
        let output = wants_output.then(|| StepOutput::of(&executed.stdout, &executed.stderr));
        if options.record == Record::None {
            (executed.stdout, executed.stderr) = (Recorded::default(), Recorded::default());
        }
        let draft = self.assemble(&before, executed, code, &outputs);
        let target = before.target.as_deref();
        self.conclude(draft, output, target, hooks, outcome).await
    }

    /// Refuses what could not end well, before the command starts, and finds the receipt's file.
    fn check(&self, hooks: &dyn Hooks) -> Result<Option<PathBuf>, Failure> {
        let options = self.options;
        if options.command.is_empty() {
            return Err(Failure::Usage("there is no command to wrap".into()));
        }
        run::gate::told_places(self.secrets, &options.state, &options.place)?;
        let declared = self.declared();
        run::gate::early(self.secrets, Some(&options.name), &[declared])?;
        let name = &options.name;
        attest_receipt::names::check(name).map_err(|reason| {
            let name = bounded::text::visible(name);
            Failure::Usage(format!("step `{name}` {reason}"))
        })?;
        for (role, paths) in [("input", &options.inputs), ("output", &options.outputs)] {
            for path in paths {
                tree_manifest::check_declared(path).map_err(|reason| {
                    let path = bounded::text::visible(path);
                    Failure::Usage(format!("declared {role} `{path}` {reason}"))
                })?;
            }
        }
        run::check_key(options.signing)?;
        options.state.make().map_err(RunError::from)?;
        let target = run::check_place(&options.place)?;
        run::refuse_plugins(&options.state, hooks)?;
        Ok(target)
    }

    fn warn(&self) {
        if self.options.inputs.is_empty() {
            let message = "no inputs declared; attestation covers command string only";
            self.observer.warning(message);
        }
        for name in self.secrets.too_short() {
            let message = format!("the value of secret `{name}` is too short to be replaced");
            self.observer.warning(&message);
        }
        let unset = |name: &&String| self.options.environment.get(name).is_none();
        for name in self.options.secrets.iter().filter(unset) {
            let name = bounded::text::visible(name);
            let message =
                format!("secret `{name}` is no variable of this process: it hides nothing");
            self.observer.warning(&message);
        }
        if self.told != self.options.command {
            self.observer.warning(
                "the command line holds a secret value, which other users of this machine can \
                 see; the receipt names the command without it",
            );
        }
    }

    fn facts(&self) -> PipelineFacts {
        let options = self.options;
        PipelineFacts {
            path: None,
            hash: self.pipeline_hash.clone(),
            name: Some(options.name.clone()),
            version: None,
            steps: vec![StepFacts {
                name: options.name.clone(),
                run: self.text.clone(),
                inputs: options.inputs.clone(),
                outputs: options.outputs.clone(),
                ..StepFacts::default()
            }],
        }
    }

    async fn execute(&self, wants_output: bool) -> Result<Executed, Failure> {
        let options = self.options;
        let variables = options.environment.0.iter();
        let command = Command {
            argv: options.command.iter().map(OsString::from).collect(),
            environment: variables
                .filter(|(name, _)| step::can_be_passed_on(name))
                .cloned()
                .collect(),
            directory: options.state.workspace().to_owned(),
            timeout: None,
            input: options.input,
        };
        let tap = Tap {
            step: &options.name,
            observer: self.observer,
            secrets: self.secrets,
            record: match options.record {
                // Hooks are told what the command wrote also where the receipt is not.
                Record::None if wants_output => Record::Tail,
                record => record,
            },
        };
        self.observer.started(&options.name);
        step::execute(&options.wrapper, command, tap, &options.cancel)
            .await
            .map_err(|error| match error {
                StepError::Cancelled => Failure::Cancelled,
                StepError::Start(error) if is_refusal(&error) => Failure::NotStarted(error),
                error => Failure::Failed(RunError::Step {
                    step: options.name.clone(),
                    source: error,
                }),
            })
    }

    /// Has the receipt judged, and writes it. A judgement against it is recorded and does not keep
    /// it from being written.
    async fn conclude(
        &self,
        draft: Draft,
        output: Option<StepOutput>,
        target: Option<&Path>,
        hooks: &mut dyn Hooks,
        outcome: &mut WrapOutcome,
    ) -> Result<(), Failure> {
        let options = self.options;
        let Draft {
            mut receipt,
            events,
        } = draft;
        if let Some(result) = receipt.steps.first() {
            self.observer.ended(result);
            // What nobody may read in a receipt is not shown to anybody either.
            run::gate::shown(self.secrets, &receipt)?;
            let bare = StepResult {
                stdout: String::new(),
                stderr: String::new(),
                ..result.clone()
            };
            let facts = AfterStep {
                result: &bare,
                output: output.as_ref(),
            };
            outcome.failure = self.ask(hooks.step_post(&facts)).await.err();
        }
        self.judge(&mut receipt, hooks, outcome).await;
        if let Some(Failure::Cancelled) = outcome.failure {
            return Ok(());
        }
        // Nobody who was asked is there when a key is.
        self.unless_cancelled(hooks.finish()).await?;
        let closing = Closing {
            state: &options.state,
            place: &options.place,
            target,
            signing: options.signing,
            label: Some(&options.name),
            now: (options.now)(),
            secrets: self.secrets,
            record_events: true,
        };
        let (receipt, path) = run::conclude(Draft { receipt, events }, closing)?;
        outcome.receipt = Some(receipt);
        outcome.path = path;
        Ok(())
    }

    async fn ask(&self, answer: impl Future<Output = Verdict>) -> Result<(), Failure> {
        match self.unless_cancelled(answer).await? {
            Verdict::Go => Ok(()),
            Verdict::Stop(stop) => Err(Failure::Stopped(stop)),
            Verdict::Cancelled => Err(Failure::Cancelled),
        }
    }

    async fn unless_cancelled<T>(&self, answer: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            () = self.options.cancel.cancelled() => Err(Failure::Cancelled),
            answer = answer => Ok(answer),
        }
    }

    async fn hash_inputs(&self) -> Result<Manifest, Failure> {
        let hash = self.command_hash.clone();
        let declared = self.options.inputs.clone();
        self.aside(move |workspace, options| {
            tree_manifest::inputs(workspace, &hash, &declared, options)
        })
        .await
    }

    async fn hash_outputs(&self) -> Result<Manifest, Failure> {
        let declared = self.options.outputs.clone();
        self.aside(move |workspace, options| tree_manifest::outputs(workspace, &declared, options))
            .await
    }

    /// Hashes on another thread, so that interrupts are heard meanwhile.
    async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Path, &tree_manifest::Options) -> Result<T, ManifestError> + Send + 'static,
    ) -> Result<T, Failure> {
        let workspace = self.options.state.workspace().to_owned();
        let task = tokio::task::spawn_blocking(move || {
            work(&workspace, &tree_manifest::Options::default())
        });
        let joined = tokio::select! {
            biased;
            () = self.options.cancel.cancelled() => return Err(Failure::Cancelled),
            joined = task => joined,
        };
        let hashed = joined.map_err(|source| RunError::Internal {
            what: "the hashing of files broke off",
            source: source.into(),
        })?;
        hashed.map_err(Failure::Files)
    }
}

/// Tells whether it is the command that cannot be started, and not what watches over it.
const fn is_refusal(error: &StartError) -> bool {
    !matches!(
        error,
        StartError::Pipes(_)
            | StartError::Wrapper { .. }
            | StartError::WrapperLost { .. }
            | StartError::WrapperSilent { .. }
    )
}

/// The code that tells how a command ended, as shells tell it.
const fn code(end: End) -> i32 {
    match end {
        End::Code(code) => code,
        End::Signal(signal) => 128 + signal,
        End::TimedOut(_) => step::TIMED_OUT,
    }
}
