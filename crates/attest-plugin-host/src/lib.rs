//! Plugins of attest: declared, pinned, started from the bytes that were hashed, and asked.
//!
//! The way of a plugin, each stage a module:
//!
//! ```text
//! .attest/plugins.toml        PATH
//!        │ declare             │ resolve
//!        ▼                     ▼
//!    Declared ─── command ──► file ── executable ──► Executable ── host ──► one process
//!        │                            opened once,     │
//!        └───────── digest ───────────hashed ──────────┘ verified before every start
//! ```
//!
//! - [`declare`] reads the declarations. What it cannot take it refuses, it ignores nothing.
//! - [`mod@resolve`] turns a command into a file. The working directory is never searched.
//! - [`executable`] hashes exactly the bytes that are going to run, and holds on to them.
//! - [`mod@pin`] writes a digest into the text of the declarations and changes nothing else.
//!
//! The crate signs nothing, knows no key and no folder of keys, and judges no receipt. Whether a
//! declared plugin is asked is nobody's choice: there is no flag, variable or key that skips one.

pub mod clock;
pub mod declare;
mod drive;
mod environment;
pub mod executable;
#[doc(hidden)]
pub mod fuzz_entry;
pub mod host;
pub mod log;
pub mod pin;
mod records;
pub mod resolve;

pub use clock::Clock;
pub use declare::{Command, DeclareError, Declared, Digest, OnFailure, Plugins, Strictness};
pub use executable::{DigestMismatch, Executable, ExecutableError};
pub use host::{Answer, Host, HostOptions, StartError};
pub use log::{RunLog, Veil};
pub use pin::{PinError, pin};
pub use resolve::{ResolveError, SearchPath, resolve};
