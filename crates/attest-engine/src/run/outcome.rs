//! What came of a run that got as far as a receipt.

use std::collections::BTreeMap;
use std::path::PathBuf;

use attest_receipt::ledger::Event;
use attest_receipt::manifest::Manifest;
use attest_receipt::receipt::Receipt;

use crate::hooks::{Stop, StopKind};

/// What came of a run.
#[derive(Debug, Clone)]
pub struct RunOutcome {
    /// The receipt as it was written.
    pub receipt: Receipt,
    /// Where it was written, unless it only exists in memory.
    pub path: Option<PathBuf>,
    /// The steps that ended with another code than 0.
    pub failed: Vec<String>,
    /// The steps that did not run.
    pub skipped: Vec<Skipped>,
    /// Who stopped the run.
    pub stopped: Option<Stop>,
    /// The ledger's events; none once they were written.
    pub events: Vec<Event>,
    /// The files behind each step's output hash.
    pub outputs: BTreeMap<String, Manifest>,
}

/// A step that did not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its name.
    pub step: String,
    /// Why.
    pub why: String,
}

impl RunOutcome {
    /// Returns the exit code: 0, 1 when a step failed or the run was denied, 2 when somebody whose
    /// decision was needed failed.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match &self.stopped {
            Some(stop) if stop.kind == StopKind::Failed => 2,
            Some(_) => 1,
            None if self.failed.is_empty() && self.skipped.is_empty() => 0,
            None => 1,
        }
    }
}
