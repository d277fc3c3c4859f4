//! Keys, and which of them are trusted.
//!
//! Three things stay apart. *Presence*: a `.pub` file says that a key exists. *Trust*: an entry of
//! `trust.toml` says that its signatures count, and since when they no longer do. *The right to
//! sign*: somebody who has the private half of a key that is trusted now; that is the business of
//! the crate `keys`, not of this one.
//!
//! A policy that cannot be read as a whole is refused as a whole: a store with a damaged half is
//! never read as a smaller store. Nothing here opens a file; a store is made from names and bytes.

mod certificate;
mod error;
mod file;
#[doc(hidden)]
pub mod fuzz_entry;
mod name;
mod public_key;
mod store;

pub use certificate::certificates;
pub use error::{KeyError, TrustError};
pub use file::{KeyStatus, Revocation, TrustEntry, TrustFile};
pub use name::KeyName;
pub use public_key::{KeyId, PublicKey};
pub use store::{AUTHORITIES, Authority, POLICY_FILE, Standing, Trust, TrustStore};
