//! The seam between a session and the work itself, so that each is tested without the other.

use std::future::Future;
use std::pin::Pin;
use std::time::Instant;

use forge_domain::{Completion, EvidenceRecord, WorkerFailure};
use gate_link::Lease;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::activity::Reporter;

/// A future with a task of its own.
pub(crate) type Task<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Carries out leases. Never fails: what goes wrong is part of the [`Execution`].
pub(crate) trait Executor: Send + Sync + 'static {
    /// Carries out one lease. After a cancellation it returns soon, with nothing left running.
    fn execute(&self, lease: Lease, control: Control) -> Task<Execution>;
}

/// What a job can be told while it runs.
#[derive(Debug, Clone)]
pub(crate) struct Control {
    /// Stop at once.
    pub(crate) cancel: CancellationToken,
    /// Whether the attempt may still leave traces.
    pub(crate) fence: Fence,
    /// Takes the stages that the job reaches.
    pub(crate) activity: Reporter,
}

/// Tells a job whether its lease still holds, whatever its tasks have slept through.
#[derive(Debug, Clone)]
pub(crate) struct Fence(watch::Receiver<Instant>);

impl Fence {
    /// Follows the moment at which the lease must be let go.
    pub(crate) const fn new(let_go_at: watch::Receiver<Instant>) -> Self {
        Self(let_go_at)
    }

    /// Whether the lease holds at `now`.
    pub(crate) fn holds(&self, now: Instant) -> bool {
        now < *self.0.borrow()
    }
}

/// How a lease was carried out.
pub(crate) struct Execution {
    /// What is known of it, to be sent before anything else.
    pub(crate) evidence: Vec<EvidenceRecord>,
    /// How it ended.
    pub(crate) completion: Completion,
    /// What is left to remove once the evidence is stored.
    pub(crate) cleanup: Option<Box<dyn CleanUp>>,
}

impl Execution {
    /// Nothing is known: the job ended by a defect of this program.
    pub(crate) fn defect() -> Self {
        Self::failed(WorkerFailure::ExecutionFailed)
    }

    /// A failure of which there is no evidence and nothing to remove.
    pub(crate) const fn failed(failure: WorkerFailure) -> Self {
        Self {
            evidence: Vec::new(),
            completion: Completion::Failed(failure),
            cleanup: None,
        }
    }
}

/// Removes what a job left on this host.
pub(crate) trait CleanUp: Send {
    /// Removes it, within its time limit. A record comes back only if something remained.
    fn run(self: Box<Self>) -> Task<Option<EvidenceRecord>>;
}
