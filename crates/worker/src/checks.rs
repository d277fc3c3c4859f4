//! Runs the declared checks of a task, in order, up to the first that fails.
//!
//! A check is an argument vector, never a shell line. What it prints is counted and thrown away:
//! a record says only whether there was output.

use std::path::Path;
use std::time::Duration;

use forge_domain::{EvidenceRecord, ExecutionLimits, Output, Reason};
use process_tree::{
    Capture, CaptureError, Captured, Leftovers, OnLimit, Outlived, Spec, Status, Wrapper, capture,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::acceptance::Environment;
use crate::evidence::Recorder;

/// What is reported of a check that ended well itself but left processes with its output open.
const HELD_OUTPUT_CODE: u8 = 126;

/// Where and how checks run.
#[derive(Debug)]
pub(crate) struct CheckBench<'a> {
    pub(crate) wrapper: &'a Wrapper,
    pub(crate) workspace: &'a Path,
    pub(crate) environment: &'a Environment,
    pub(crate) limits: &'a ExecutionLimits,
    pub(crate) recorder: &'a Recorder,
    pub(crate) cancel: &'a CancellationToken,
}

/// How the list of checks ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All passed, or there were none.
    Passed,
    /// One failed or ran out of time; later ones did not run.
    Failed,
    /// The job was cancelled; nothing is said of the check that ran.
    Cancelled,
}

/// Runs the checks; the records are in their order.
pub(crate) async fn run_checks(
    bench: &CheckBench<'_>,
    tests: &[Vec<String>],
) -> (Vec<EvidenceRecord>, Verdict) {
    let mut records = Vec::with_capacity(tests.len());
    for (index, argv) in (0_u16..).zip(tests) {
        let Some(seen) = run_check(bench, argv).await else {
            return (records, Verdict::Cancelled);
        };
        tracing::info!(index, reason = seen.reason.as_str(), detail = %seen.detail, "check ended");
        records.push(bench.recorder.check(
            index,
            seen.reason,
            seen.exit_code,
            seen.output,
            seen.took,
        ));
        if seen.reason != Reason::ScopedCheckPassed {
            return (records, Verdict::Failed);
        }
    }
    (records, Verdict::Passed)
}

/// One check that ended.
#[derive(Debug)]
struct Seen {
    reason: Reason,
    exit_code: Option<u8>,
    output: Output,
    took: Duration,
    /// For the log of the Worker; never output of the check.
    detail: String,
}

/// Runs one check; nothing comes back if the job was cancelled meanwhile.
async fn run_check(bench: &CheckBench<'_>, argv: &[String]) -> Option<Seen> {
    let spec = Spec::new(argv.iter())
        .env(bench.environment.iter().cloned())
        .cwd(bench.workspace)
        .leftovers(Leftovers::Fail);
    let limits = Capture::new(bench.limits.check_timeout, bench.limits.check_output_bytes)
        .on_limit(OnLimit::Truncate);
    let started = Instant::now();
    match capture(bench.wrapper, spec, limits, bench.cancel).await {
        Ok(captured) => Some(judge(&captured)),
        Err(CaptureError::Cancelled) => None,
        Err(CaptureError::Timeout { after, partial }) => Some(Seen {
            reason: Reason::ScopedCheckTimeout,
            exit_code: None,
            output: output(&partial),
            took: after,
            detail: format!("no end within {after:?}"),
        }),
        Err(error) => Some(Seen {
            reason: Reason::ScopedCheckFailed,
            exit_code: None,
            output: Output::Empty,
            took: started.elapsed(),
            detail: error.to_string(),
        }),
    }
}

fn judge(captured: &Captured) -> Seen {
    let code = match captured.exit.status {
        Status::Code(code) => u8::try_from(code).ok(),
        Status::Signal(_) | Status::Lost => None,
    };
    let held = match captured.exit.leftovers {
        Outlived::None | Outlived::Killed(_) => false,
        Outlived::HeldOutput(_) | Outlived::Survived(_) => true,
    };
    let passed = code == Some(0) && !held;
    Seen {
        reason: if passed {
            Reason::ScopedCheckPassed
        } else {
            Reason::ScopedCheckFailed
        },
        exit_code: if held && code == Some(0) {
            Some(HELD_OUTPUT_CODE)
        } else {
            code
        },
        output: output(captured),
        took: captured.duration,
        detail: if held {
            format!(
                "{}, but processes it left behind held its output",
                captured.exit.status
            )
        } else {
            captured.exit.status.to_string()
        },
    }
}

fn output(captured: &Captured) -> Output {
    if captured.stdout.is_empty() && captured.stderr.is_empty() {
        Output::Empty
    } else {
        Output::Redacted {
            truncated: captured.truncated,
        }
    }
}
