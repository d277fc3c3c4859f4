//! One row of `attest keys list`, in the order that its JSON has.

use attest_receipt::time::Time;
use attest_verify::trust::{KeyId, KeyStatus, TrustEntry};
use serde::Serialize;

/// What there is to say of a key in the policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listing {
    /// The key.
    pub id: KeyId,
    /// What people call it.
    pub name: String,
    /// `trusted` or `revoked`.
    pub status: &'static str,
    /// Since when it is revoked, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Time>,
    /// Whether its private half lies here.
    pub private_key_present: bool,
}

impl Listing {
    pub(crate) fn new(entry: &TrustEntry, private_key_present: bool) -> Self {
        let revoked_at = match entry.status {
            KeyStatus::Trusted => None,
            KeyStatus::Revoked { since } => since,
        };
        Self {
            id: entry.id,
            name: entry.name.clone(),
            status: entry.status.as_str(),
            revoked_at,
            private_key_present,
        }
    }
}
