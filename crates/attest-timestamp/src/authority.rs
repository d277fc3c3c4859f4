//! A certificate that somebody pinned.

use crate::certificate::{Checked, shown_whole};
use crate::error::CertificateError;

/// A certification authority whose timestamp certificates count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    pub(crate) name: String,
    pub(crate) checked: Checked,
}

impl Authority {
    /// Takes a certificate in DER, under the name that it is pinned by.
    ///
    /// # Errors
    /// It is no certificate, or one that could never issue that of a timestamp authority.
    pub fn new(name: &str, der: &[u8]) -> Result<Self, CertificateError> {
        let checked = Checked::from_der(der)?;
        checked.may_issue()?;
        Ok(Self {
            name: name.to_owned(),
            checked,
        })
    }

    /// Returns the whole name in the certificate, safe to show. Anybody can write anything there.
    #[must_use]
    pub fn subject(&self) -> String {
        shown_whole(self.checked.subject())
    }
}
