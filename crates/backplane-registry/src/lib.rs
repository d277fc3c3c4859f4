//! The registry of plugins over HTTP.
//!
//! What a registry keeps is `registry-store`'s; this crate is its face: who may ask for what, how
//! much of it, in which words, and how a failure looks. It starts no process and opens no file but
//! secrets and certificates.

mod args;
mod config;
mod error;
mod http;
mod log;
mod serve;
mod state;
mod tokens;

pub use args::{ServeArgs, run};
pub use config::{
    Artifacts, DEFAULT_LISTEN, NoPattern, Pattern, RegistryConfig, S3, Scope, SecretSource,
    ServiceLimits, TlsFiles, TokenConfig,
};
pub use error::RegistryError;
pub use http::{PREFIX, router};
pub use serve::Registry;
pub use state::{Clock, RegistryState, Service};
pub use tokens::{ADMIN_TOKEN, Identity, Tokens, TokensError};
