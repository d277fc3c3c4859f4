//! TLS from PEM files, for servers that reload and clients that trust a private authority.
//!
//! The cryptography is named in every configuration made here; the process-wide default provider
//! is neither set nor read. Nothing here listens, connects or turns verification off.

mod client;
mod error;
mod pem;
mod plain;
mod server;

pub use client::ClientTls;
pub use error::TlsError;
pub use plain::{PlainPolicy, Transport, is_loopback_host};
pub use server::ServerTls;
