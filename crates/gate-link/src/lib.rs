//! The messages between Gate and Worker, and both ends of the conversation as
//! state machines. It does no I/O, knows no clock and no randomness: frames go
//! in and come out as bytes, whoever drives a socket owns the time.
//!
//! A connection belongs to one slot of one Worker. The Gate sends a lease, the
//! Worker answers with heartbeats, evidence and one result; the Gate
//! acknowledges evidence and results only. Whatever does not fit ends the
//! connection, and by then nothing has changed at the Gate. The protocol is
//! described in `docs/protocols/gate-worker.md`.

mod decode;
mod encode;
mod error;
#[doc(hidden)]
pub mod fuzz_entry;
mod gate_session;
mod message;
mod query;
mod token;
mod worker_session;

pub use error::LinkError;
pub use gate_session::{GateSession, Request};
pub use message::{
    Activity, ActivityVersion, Attach, Attached, Cancel, ControlVersion, Decline, Evidence,
    GateMessage, Heartbeat, JobResult, Lease, LeaseKey, Readiness, UnacceptableLease,
    WorkerMessage,
};
pub use query::{ConnectQuery, QueryError};
pub use token::AttachToken;
pub use worker_session::{Suspended, WorkerEvent, WorkerSession};

/// The route a Worker connects to, whatever path its configured URL has.
pub const CONNECT_PATH: &str = "/v1/workers/connect";

/// The largest message in either direction; one byte more closes the
/// connection with [`CLOSE_TOO_LARGE`].
pub const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// The WebSocket close code for a message beyond [`MAX_MESSAGE_BYTES`]
/// (RFC 6455 section 7.4.1).
pub const CLOSE_TOO_LARGE: u16 = 1009;

/// The only text of an `error` message: it says that the connection ends, never
/// why, so that a Worker learns nothing about jobs that are not its own.
pub const REFUSED: &str = "request failed";
