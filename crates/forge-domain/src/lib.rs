//! The machines of runs, attempts and leases, and the records that they keep.
//!
//! Pure data and rules: no I/O, no clock, no randomness. `now`, ids and limits are arguments.
//! What comes from outside is decoded strictly and once, into types that cannot hold an illegal
//! value; a run changes only through the transitions of [`Run`], which refuse every edge that
//! `docs/design/run-machines.md` does not draw.

mod activity;
mod attempt;
mod completion;
mod control;
mod error;
mod event;
mod evidence;
mod ids;
mod lease;
mod policy;
mod report;
mod run;
mod task;

pub use activity::{ACTIVITY_VERSION, Activity, ActivityTrack, MAX_ACTIVITIES, Stage};
pub use attempt::{AttemptEnd, AttemptState, AttemptStatus, FinishedAttempt, LiveAttempt};
pub use completion::{Completion, Disposition, FailureCode, WorkerFailure};
pub use control::{CONTROL_VERSION, CancelReason, NotAccepting};
pub use error::{DomainError, Refused};
pub use event::Event;
pub use evidence::{
    EvidenceBatch, EvidenceContext, EvidenceRecord, MAX_BATCH_BYTES, MAX_RECORDS, Output, Phase,
    REDACTED, Reason, agrees_with_candidate,
};
pub use ids::{
    AttemptId, EvidenceId, Generation, IdempotencyKey, JobId, MAX_SLOTS_PER_WORKER, PluginId,
    PoolId, Priority, RepositoryId, SlotId, SourceRef, WorkerId,
};
pub use lease::{RetryRule, extended_deadline, retry_delay};
pub use policy::{
    ExecutionLimits, ExecutionPolicy, LimitName, MAX_ATTEMPTS, MAX_DURATION, MAX_ENVIRONMENT,
    MAX_POLICY_BYTES, MIN_DURATION, PolicyTarget, RETRY_ALGORITHM, ResolvedPolicy,
};
pub use report::{AgentReport, MAX_REPORT_BYTES};
pub use run::{Grant, Holder, JobState, JobStatus, Run, Step};
pub use task::{
    Author, CodingTask, JobKind, MAX_ARGUMENT_BYTES, MAX_ARGUMENTS, MAX_INPUT_BYTES,
    MAX_INSTRUCTION_BYTES, MAX_TASK_BYTES, MAX_TESTS, TaskOrigin, Work,
};
