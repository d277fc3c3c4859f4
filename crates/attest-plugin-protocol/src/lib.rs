//! attest-plugin/1: the messages and both session machines, without I/O.
//!
//! A plugin author implements [`Plugin`] and calls [`serve`]. Below that, [`HostSession`] is the side
//! of the core and [`PluginSession`] that of the plugin: both are fed with bytes and asked for what
//! to do next; a caller moves the bytes and watches the clock. What a message may hold is expressed
//! in types ([`Payload`], [`Verdict`], [`Announcement`]).
//!
//! Where a rule comes from stands behind it: "seed" and a section of the document attest-plugin/1,
//! or "ours" where the document is silent.
//!
//! The crate never reads a clock, starts a process or touches a file.
//!
//! ```
//! use std::time::{Duration, Instant};
//!
//! use attest_plugin_protocol::{
//!     Announcement, Expected, Hook, HostEvent, HostSession, PluginSession,
//! };
//!
//! let expected = Expected {
//!     name: "noop".parse()?,
//!     hooks: vec![Hook::StepPre],
//!     deterministic: true,
//! };
//! let now = Instant::now();
//! let mut host = HostSession::new(expected, "1.0.0", Duration::from_secs(30), now);
//! let mut plugin = PluginSession::new();
//!
//! plugin.receive(&host.poll_transmit().unwrap_or_default())?;
//! plugin.accept(Announcement::new("noop".parse()?, "0.1.0", &[Hook::StepPre], true))?;
//! host.receive(now, &plugin.poll_transmit().unwrap_or_default());
//! assert!(matches!(host.poll_event(), Some(HostEvent::Ready(_))));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
/// What receipts and annotations consist of.
pub use strict_json::{Json, Object};
pub use verdict::{Decision, Finding, InvalidFinding, Severity, Verdict};
pub use violation::{ProtocolError, Violation};
pub use words::UnknownWord;

/// Runs the examples of the README as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
