#![doc = include_str!("../README.md")]
//!
//! # Handlers
//!
//! [`serve_text`] and [`serve_workspace`] are a whole `main`. [`Plugin`] is the same with a name
//! for messages, a choice of capabilities, and both operations in one program.
//!
//! A handler runs once. It may take as long as the host lets it, may start threads, and may hand a
//! clone of its [`Context`] to them: progress from many threads is written one frame at a time,
//! and none after the result. Where `cancel` was negotiated, [`Context::cancel`] tells when to
//! stop; the handler then runs on a thread of its own.

mod cancel;
mod context;
mod failure;
mod plugin;
mod serve;
mod task;

pub use cancel::Cancel;
pub use context::Context;
pub use failure::Failure;
pub use forge_plugin_protocol::{Capability, FailureCategory, Stage};
pub use plugin::{Plugin, serve_text, serve_workspace};
pub use serve::ServeError;
pub use task::{Edit, WorkspaceTask};
