//! The registry of plugins over HTTP.
//!
//! What a registry keeps is `registry-store`'s; this crate is its face: who may ask for what, how
//! much of it, in which words, and how a failure looks. It judges packages with `plugin-archive`
//! and `agent-plugin` before the store sees them, starts no process and follows no link.

mod args;
mod config;
mod error;
mod tokens;

pub use args::{ServeArgs, run};
pub use config::{
    Artifacts, DEFAULT_LISTEN, NoPattern, Pattern, RegistryConfig, S3, Scope, SecretSource,
    ServiceLimits, TlsFiles, TokenConfig,
};
pub use error::RegistryError;
pub use tokens::{ADMIN_TOKEN, Identity, Tokens, TokensError};
