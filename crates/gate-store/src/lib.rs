//! The Gate's memory: jobs, attempts, evidence and workers.
//!
//! [`Store`] is what the Gate programs against; [`SqliteStore`] keeps it in one SQLite file. An
//! answer comes only after the change is durable. Every operation is whole or absent, every state
//! changes through `forge-domain`, and a database constraint stands behind each invariant.
//!
//! Nothing here reads a clock, makes an id, starts a process or opens a socket: `now` and ids are
//! arguments, and `now` must not go backwards while one store is open.

mod error;
mod location;
mod model;
mod pools;
mod sqlite;
mod store;

pub use error::{StartupCode, StoreError};
pub use location::Location;
pub use model::{
    Attachment, AttemptView, Bound, Cancelled, ClaimRequest, Completed, EndedLease, EventView,
    EvidenceView, Idempotency, JobFilter, JobOutput, JobPage, JobResult, JobView, Lease, MAX_PAGE,
    NewJob, NextDue, Page, Recovery, Retried, Submitted, WorkerView,
};
pub use pools::{
    Ahead, BadPauseReason, MAX_AHEAD, Pause, PauseReason, Paused, PoolSlot, PoolView, QueuePlace,
};
pub use sqlite::SqliteStore;
pub use store::{Answer, Store};
