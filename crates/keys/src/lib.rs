//! Signing keys and the trust store on disk: made, chosen, exported, imported, revoked.
//!
//! | place | what | mode |
//! |---|---|---|
//! | `.attest/keys/ID.key` | a private key, PKCS#8 in PEM | 0600 |
//! | `.attest/trust/ID.pub` | a public key, SubjectPublicKeyInfo in PEM | 0644 |
//! | `.attest/trust/trust.toml` | the policy: which keys are trusted | 0644 |
//! | `.attest/trust/tsa/NAME.crt` | a pinned timestamp authority | 0644 |
//!
//! A change of the trust store is made under a lock and replaces whole files, so that a reader,
//! who takes no lock, sees the old store or the new one. Private bytes are wiped from memory after
//! use and appear in no message. Nothing here reads the clock or the environment, starts a
//! process, or makes a key that was not asked for.

mod change;
mod doubt;
mod error;
mod folder;
#[doc(hidden)]
pub mod fuzz_entry;
mod generate;
mod ignored;
mod key_dir;
mod listing;
mod load;
mod lock;
mod signer;
mod trust_dir;
mod undo;

pub use attest_verify::trust::{KeyId, KeyName, KeyStatus, Revocation};
pub use error::KeysError;
pub use key_dir::KeyDir;
pub use listing::Listing;
pub use load::load_trust;
pub use signer::Signer;
pub use trust_dir::{Imported, Pinned, TrustDir};
