//! The capsule: a container image pinned by digest, with what a step may see of the machine.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::yaml::YamlError;

/// The format's name.
pub const FORMAT: &str = "attest-capsule/v1";

/// Longest capsule file in bytes.
pub const MAX_BYTES: usize = 256 * 1024;

/// A container image pinned by digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Capsule {
    /// [`FORMAT`]
    pub format: String,
    /// Its name, which is also its folder.
    pub name: String,
    /// `repository@sha256:<64 hexadecimal digits>`
    pub image: String,
    /// The image's entry point, replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entrypoint: Option<Vec<String>>,
    /// Variables inside.
    pub env: BTreeMap<String, String>,
    /// Where the workspace appears.
    pub mounts: Mounts,
    /// `none`
    pub network: String,
    /// BLAKE3 of all the above; absent while it is computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capsule_hash: Option<String>,
}

/// Where the workspace appears in a capsule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mounts {
    /// An absolute path inside the container.
    pub workspace: String,
}

/// Says why a file is no capsule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CapsuleError {
    /// No readable document.
    #[error(transparent)]
    Unreadable(#[from] YamlError),
    /// A rule of the format.
    #[error("{0}")]
    Invalid(String),
}

impl Capsule {
    /// Reads a capsule file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(_bytes: &[u8]) -> Result<Self, CapsuleError> {
        Err(CapsuleError::Invalid("not read yet".into()))
    }

    /// Returns the BLAKE3 hash of the capsule without its hash, 64 hexadecimal digits.
    ///
    /// # Errors
    /// The emitter's, which no capsule is known to cause.
    pub fn hash(&self) -> Result<String, yaml_serde::Error> {
        let bare = Self {
            capsule_hash: None,
            ..self.clone()
        };
        Ok(crate::encode::blake3_hex(
            yaml_serde::to_string(&bare)?.as_bytes(),
        ))
    }
}
