//! Runs one operation of a forge plugin in a fresh process and says how it ended.
//!
//! [`run`] checks the request, starts the plugin under the process wrapper, moves bytes between
//! it and a [`HostSession`](forge_plugin_protocol::HostSession), and returns when the plugin and
//! all its descendants are gone. It knows no task, no workspace and no git; it never retries, and
//! it passes on nothing of the plugin but the outcome, valid progress frames and, for the
//! operator's log, the escaped end of stderr.
//!
//! # The way of a run
//!
//! ```text
//! checked ─► started ─► session ─► closing ─► gone ─► verdict
//!    │          │          │          │                ▲
//!    │          │          ├ cancel ──┴─► drain 250 ms ┤  all that still runs is killed
//!    │          │          └ broken rule, output limit ┘  and reaped before the verdict
//!    └ Invalid  └ Start
//! ```
//!
//! - *checked*: a wrong command or offer is [`RunError::Invalid`], an earlier cancellation
//!   [`RunError::Cancelled`]; in both cases nothing is started.
//! - *session*: input, both outputs, exit and all deadlines are served at once. There is one
//!   deadline for everything, [`RunLimits::timeout`]; it counts as a cancellation. stdout and
//!   stderr together are counted against [`RunLimits::output_bytes`].
//! - *closing*: after `result` or `failure` stdin is closed; within 250 ms the plugin must have
//!   exited with 0, and stdout must have ended without another byte.
//! - *gone*: a descendant that still held stdout or stderr makes the run fail, one that held
//!   neither is killed in silence.
//!
//! # Who wins
//!
//! 1. an output limit that was exceeded while nobody had cancelled,
//! 2. a cancellation or the time limit, whenever it came before [`run`] returned, over success,
//!    failure, broken rules and whatever the clean-up brought about,
//! 3. the first broken rule,
//! 4. the terminal frame.
//!
//! On a cancellation the session sends `cancel` once, if the plugin selected it and `execute` was
//! sent in full, and waits 250 ms; a plugin that blocks the pipe in the middle of a frame is not
//! asked but ended. All in all a cancellation takes less than a second.

mod drive;
mod error;
mod request;
mod stderr_tail;

pub use drive::run;
pub use error::{InvalidRequest, RunError};
pub use request::{PluginCommand, RunLimits};
