//! How receipts of attest travel, as functions of bytes: nothing here opens a file or asks a clock.
//!
//! | module | what |
//! |---|---|
//! | [`archive`] | `attest-archive/v1`: a receipt with the events of its ledger, as tar in zstd |
//! | [`dsse`] | the signed envelope around a statement |
//! | [`statement`] | an in-toto Statement v1 with SLSA provenance v1 that carries a receipt |
//! | [`import`] | judges an envelope, its statement and the receipt in it, each by itself |
//! | [`causal`] | questions to a ledger: paths, chains, numbers |
//!
//! What travels is somebody else's: every length, count and ratio is bounded before the work that
//! it would cause, and keys that travel with a receipt never vouch for it.

pub mod archive;
mod blob;
pub mod causal;
pub mod dsse;
#[doc(hidden)]
pub mod fuzz_entry;
pub mod import;
pub mod inventory;
pub mod statement;

pub use blob::sha256_hex;
