//! The bytes that a signature covers, and the file.

use super::Receipt;

impl Receipt {
    /// Returns the bytes that the signature covers: compact JSON in canonical order without
    /// signature, key and time-stamp token; steps, events and plugins sorted.
    #[must_use]
    pub fn signing_bytes(&self) -> Vec<u8> {
        let mut signed = self.clone();
        signed.signature = None;
        signed.signer_public_key = None;
        signed.timestamp_token = None;
        signed.steps.sort_by(|a, b| a.name.cmp(&b.name));
        signed.causal_events.sort();
        if let Some(plugins) = &mut signed.plugins {
            plugins.sort_by(|a, b| a.name.cmp(&b.name));
        }
        strict_json::to_line(&signed)
    }

    /// Returns the receipt as the YAML document that is stored.
    ///
    /// # Errors
    /// The emitter's, which no receipt is known to cause.
    pub fn to_yaml(&self) -> Result<String, yaml_serde::Error> {
        yaml_serde::to_string(self)
    }
}
