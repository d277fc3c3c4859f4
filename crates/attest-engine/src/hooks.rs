//! The places where a run asks whether it may go on.
//!
//! What is handed over was measured before and lies in memory; whatever an answer does to the disk
//! changes no fact. Requests come one at a time, in the order in which they happen:
//! `pipeline_validate` once before any step, `step_pre` in topological order, `step_post` in the
//! order in which steps end, `receipt_finalize` once before the signature. After anything but
//! [`Verdict::Go`] nothing is asked any more and no further step starts. Whoever was asked is gone
//! ([`Hooks::finish`]) before a key is loaded.

use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;

use attest_receipt::receipt::{PluginRecord, Receipt, StepResult};

use crate::output::Recorded;

/// Most bytes of a stream that are told.
const OUTPUT: usize = 64 * 1024;

/// An answer on its way.
pub type Answer<'a> = Pin<Box<dyn Future<Output = Verdict> + 'a>>;

/// A farewell on its way.
pub type Farewell<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Whether the run may go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may.
    Go,
    /// It may not.
    Stop(Stop),
    /// Nobody said anything, since the run is being cancelled.
    Cancelled,
}

/// Why a run may not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// Who says so.
    pub plugin: String,
    /// What they say, as foreign text, in lines.
    pub reason: String,
    /// Whether it is an honest no (exit 1) or a failure to answer (exit 2).
    pub kind: StopKind,
}

/// The two ways in which an answer stops a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopKind {
    /// A decision against it.
    Denied,
    /// No usable decision from somebody whose decision is needed.
    Failed,
}

impl Stop {
    /// What stands between the stop and what else there is to say: where the reason has several
    /// lines, that is one more.
    pub(crate) fn then(&self) -> &'static str {
        if self.reason.contains('\n') {
            "\n  "
        } else {
            "; "
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.kind {
            StopKind::Denied => "denied",
            StopKind::Failed => "failed",
        };
        // The first line stands behind the name, each further one below it.
        let reason = self.reason.replace('\n', "\n  ");
        write!(f, "plugin {} {how}: {reason}", self.plugin)
    }
}

/// What is about to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineFacts {
    /// The pipeline file, relative to the workspace; none for a wrapped command.
    pub path: Option<String>,
    /// Its hash.
    pub hash: String,
    /// Its name.
    pub name: Option<String>,
    /// The user's own version of it.
    pub version: Option<String>,
    /// The steps in topological order.
    pub steps: Vec<StepFacts>,
}

/// What one step was asked to do; values of secret variables are replaced.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StepFacts {
    /// Its name.
    pub name: String,
    /// Its command.
    pub run: String,
    /// The steps that it needs.
    pub needs: Vec<String>,
    /// Its inputs as declared.
    pub inputs: Vec<String>,
    /// Its outputs as declared.
    pub outputs: Vec<String>,
    /// The pipeline's variables overlaid by its own.
    pub env: BTreeMap<String, String>,
    /// Where it runs.
    pub working_dir: Option<String>,
    /// The capsule that it runs in.
    pub capsule: Option<String>,
    /// Whether its result may be cached.
    pub cache: bool,
    /// After how many seconds it is killed.
    pub timeout_secs: Option<u64>,
}

/// What is known right before a step starts, or its cached result is taken.
#[derive(Debug, Clone, Copy)]
pub struct BeforeStep<'a> {
    /// What it was asked to do.
    pub step: &'a StepFacts,
    /// The hash of its inputs.
    pub input_hash: &'a str,
    /// The hash of its command.
    pub command_hash: &'a str,
    /// The hash of its capsule.
    pub capsule_hash: Option<&'a str>,
    /// The run's pipeline hash.
    pub pipeline_hash: &'a str,
    /// Whether its result was found in the cache; that very result is taken after a yes.
    pub cache_hit: bool,
}

/// What is known once a step was recorded.
#[derive(Debug, Clone, Copy)]
pub struct AfterStep<'a> {
    /// Its result without its outputs; in a hermetic run without its duration, too.
    pub result: &'a StepResult,
    /// What it wrote, where [`Hooks::wants_output`].
    pub output: Option<&'a StepOutput>,
}

/// The ends of what a step wrote, as they are kept: secrets are replaced, and no line says how much
/// was cut.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StepOutput {
    /// The end of its standard output.
    pub stdout: String,
    /// The end of its standard error.
    pub stderr: String,
    /// Whether there was, or may have been, more of its standard output.
    pub stdout_truncated: bool,
    /// Whether there was, or may have been, more of its standard error.
    pub stderr_truncated: bool,
}

impl StepOutput {
    pub(crate) fn of(stdout: &Recorded, stderr: &Recorded) -> Self {
        let (stdout, stdout_truncated) = stdout.tail(OUTPUT);
        let (stderr, stderr_truncated) = stderr.tail(OUTPUT);
        Self {
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
            stdout_truncated,
            stderr_truncated,
        }
    }
}

/// Who is asked. A cached result is asked about like any other.
pub trait Hooks {
    /// Asks once, before any step.
    fn pipeline_validate<'a>(&'a mut self, facts: &'a PipelineFacts) -> Answer<'a>;
    /// Asks before a step starts.
    fn step_pre<'a>(&'a mut self, facts: &'a BeforeStep<'a>) -> Answer<'a>;
    /// Tells what a step did.
    fn step_post<'a>(&'a mut self, facts: &'a AfterStep<'a>) -> Answer<'a>;
    /// Shows the receipt before the signature, without the records of those who are asked. In a
    /// hermetic run it holds no duration.
    fn receipt_finalize<'a>(&'a mut self, receipt: &'a Receipt) -> Answer<'a>;
    /// Returns what is recorded about everybody who was declared; none without any.
    fn records(&self) -> Option<Vec<PluginRecord>>;
    /// Tells whether those who are declared in the workspace are the ones who are asked. A run is
    /// refused where somebody is declared and this is not so.
    fn know_declarations(&self) -> bool {
        self.records().is_some()
    }
    /// Tells whether anybody wants to know what steps wrote.
    fn wants_output(&self) -> bool {
        false
    }
    /// Returns what each made of the build that has just ended, as if there had been no other, and
    /// begins the next one. Only asked where a pipeline is built twice.
    fn end_build(&mut self) -> Vec<PluginRecord> {
        Vec::new()
    }
    /// Ends everybody who was asked; nobody is asked afterwards, and [`Hooks::records`] stays. May
    /// be called again.
    fn finish(&mut self) -> Farewell<'_>;
}

/// Nobody is asked.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {
    fn pipeline_validate<'a>(&'a mut self, _facts: &'a PipelineFacts) -> Answer<'a> {
        Box::pin(ready(Verdict::Go))
    }

    fn step_pre<'a>(&'a mut self, _facts: &'a BeforeStep<'a>) -> Answer<'a> {
        Box::pin(ready(Verdict::Go))
    }

    fn step_post<'a>(&'a mut self, _facts: &'a AfterStep<'a>) -> Answer<'a> {
        Box::pin(ready(Verdict::Go))
    }

    fn receipt_finalize<'a>(&'a mut self, _receipt: &'a Receipt) -> Answer<'a> {
        Box::pin(ready(Verdict::Go))
    }

    fn records(&self) -> Option<Vec<PluginRecord>> {
        None
    }

    fn finish(&mut self) -> Farewell<'_> {
        Box::pin(ready(()))
    }
}
