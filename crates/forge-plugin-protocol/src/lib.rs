//! The forge plugin protocol v1: frames and both session machines, without I/O.
//!
//! [`HostSession`] is the side of the Worker, [`PluginSession`] that of the plugin. Both are fed
//! with bytes and asked for what to do next; a caller moves the bytes and watches the clock. What
//! a frame may hold is expressed in types ([`Operation`], [`Outcome`], [`Progress`], …): a value
//! that exists can be sent.
//!
//! The crate never reads a clock, starts a process or touches a file.
//!
//! ```
//! use forge_plugin_protocol::{Capability, HostSession, Operation, PluginEvent, PluginSession};
//!
//! let id = "0123456789abcdef0123456789abcdef".parse()?;
//! let mut host = HostSession::new(id, Operation::text("hello")?, &[Capability::Text])?;
//! let mut plugin = PluginSession::new(&[Capability::Text])?;
//!
//! plugin.receive(&host.poll_transmit().unwrap_or_default())?;
//! let initialized = plugin.poll_transmit().unwrap_or_default();
//! assert!(initialized.ends_with(b"\"type\":\"initialized\",\"capabilities\":[\"text\"]}\n"));
//! host.receive(std::time::Instant::now(), &initialized);
//! plugin.receive(&host.poll_transmit().unwrap_or_default())?;
//! assert!(matches!(plugin.poll_event(), Some(PluginEvent::Execute(Operation::Text { .. }))));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod capability;
mod decode;
pub mod encode;
mod frame_reader;
#[doc(hidden)]
pub mod fuzz_entry;
mod host;
mod limits;
mod operation;
mod outcome;
mod plugin;
mod progress;
mod violation;

pub use capability::{Capabilities, Capability, InvalidCapabilities};
pub use frame_reader::FrameReader;
pub use host::{Conclusion, HostEvent, HostSession, PluginExit};
pub use limits::*;
pub use operation::{InvalidOperation, Operation, TimeoutMs, WorkspacePath};
pub use outcome::{FailureCategory, InvalidReport, Outcome, Report};
pub use plugin::{PluginEvent, PluginSession, SendError};
pub use progress::{Progress, Stage};
pub use violation::{ProtocolError, Violation};

/// The id that ties the frames of one session together: 32 lowercase hexadecimal digits.
pub type SessionId = bounded::Hex32;
/// The input of a `text` operation.
pub type Input = bounded::BoundedText<0, TEXT_BYTES>;
/// The output of a `text` operation.
pub type Output = bounded::BoundedText<0, TEXT_BYTES>;
/// The instruction of a `workspace_edit` operation; never empty.
pub type Instruction = bounded::BoundedText<1, TEXT_BYTES>;
/// The text of a progress frame.
pub type ProgressText = bounded::BoundedText<0, PROGRESS_TEXT_BYTES>;

pub use bounded::CommitSubject;

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
