//! The bytes that a signature covers, and the file.

use strict_json::Json;

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
    /// An annotation that has the key `<<` somewhere makes it a document of JSON, which is YAML
    /// too: the emitter leaves that key without quotes, and readers take it for a merge.
    ///
    /// # Errors
    /// The emitter's, which no receipt is known to cause.
    pub fn to_yaml(&self) -> Result<String, yaml_serde::Error> {
        let annotations = self.plugins.iter().flatten();
        let mut annotations = annotations.filter_map(|plugin| plugin.annotation.as_ref());
        if annotations.any(has_merge_key) {
            let mut line = strict_json::to_line(self);
            line.push(b'\n');
            Ok(String::from_utf8_lossy(&line).into_owned())
        } else {
            yaml_serde::to_string(self)
        }
    }
}

fn has_merge_key(value: &Json) -> bool {
    match value {
        Json::Array(items) => items.iter().any(has_merge_key),
        Json::Object(object) => object
            .iter()
            .any(|(key, value)| key == "<<" || has_merge_key(value)),
        _ => false,
    }
}
