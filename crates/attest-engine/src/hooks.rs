//! The places where a run asks whether it may go on.
//!
//! What is handed over was measured before and lies in memory; whatever an answer does to the disk
//! changes no fact. Requests come one at a time, in the order in which they happen:
//! `pipeline_validate` once before any step, `step_pre` in topological order, `step_post` in the
//! order in which steps end, `receipt_finalize` once before the signature. After anything but
//! [`Verdict::Go`] nothing is asked any more and no further step starts.

use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;

use attest_receipt::receipt::{PluginRecord, Receipt, StepResult};

/// An answer on its way.
pub type Answer<'a> = Pin<Box<dyn Future<Output = Verdict> + 'a>>;

/// Whether the run may go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may.
    Go,
    /// It may not.
    Stop(Stop),
}

/// Why a run may not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// Who says so.
    pub plugin: String,
    /// What they say, as foreign text.
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

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.kind {
            StopKind::Denied => "denied",
            StopKind::Failed => "failed",
        };
        write!(f, "plugin {} {how}: {}", self.plugin, self.reason)
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
}

/// Who is asked. A cached result is asked about like any other.
pub trait Hooks {
    /// Asks once, before any step.
    fn pipeline_validate<'a>(&'a mut self, facts: &'a PipelineFacts) -> Answer<'a>;
    /// Asks before a step starts.
    fn step_pre<'a>(&'a mut self, facts: &'a BeforeStep<'a>) -> Answer<'a>;
    /// Tells what a step did.
    fn step_post<'a>(&'a mut self, result: &'a StepResult) -> Answer<'a>;
    /// Shows the receipt before the signature, without the records of those who are asked.
    fn receipt_finalize<'a>(&'a mut self, receipt: &'a Receipt) -> Answer<'a>;
    /// Returns what is recorded about everybody who was declared; none without any.
    fn records(&self) -> Option<Vec<PluginRecord>>;
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

    fn step_post<'a>(&'a mut self, _result: &'a StepResult) -> Answer<'a> {
        Box::pin(ready(Verdict::Go))
    }

    fn receipt_finalize<'a>(&'a mut self, _receipt: &'a Receipt) -> Answer<'a> {
        Box::pin(ready(Verdict::Go))
    }

    fn records(&self) -> Option<Vec<PluginRecord>> {
        None
    }
}
