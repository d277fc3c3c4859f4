//! attest-plugin/1: the messages and both session machines, without I/O.
//!
//! [`HostSession`] is the side of the core, [`PluginSession`] that of the plugin. Both are fed with
//! bytes and asked for what to do next; a caller moves the bytes and watches the clock. A plugin
//! author implements [`Plugin`] and calls [`serve`].
//!
//! The crate never reads a clock, starts a process or touches a file.

mod annotation;
mod announcement;
mod decode;
pub mod encode;
#[doc(hidden)]
pub mod fuzz_entry;
mod hook;
mod host;
mod limits;
mod line_reader;
mod name;
mod payload;
mod plugin;
mod serve;
mod verdict;
mod violation;
mod words;

pub use annotation::{Annotation, InvalidAnnotation};
pub use announcement::Announcement;
pub use hook::Hook;
pub use host::{Expected, Failure, HostEvent, HostSession, PluginExit, RequestError};
pub use limits::*;
pub use name::{InvalidPluginName, PluginName};
pub use payload::{AfterStep, BeforeStep, Payload, PipelinePayload, StepOutput, StepPlan, tail};
pub use plugin::{PluginEvent, PluginSession, SendError};
pub use serve::{Plugin, ServeError, serve};
pub use verdict::{Decision, Finding, InvalidFinding, Severity, Verdict};
pub use violation::{ProtocolError, Violation};
pub use words::UnknownWord;
