//! The capsule: a container image pinned by digest, with what a step may see of the machine.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::nodes::{Fault, Place};
use crate::text::{check_env, has_control, is_lower_hex_64, is_plain_name, shown};
use crate::yaml::{self, Limits, YamlError};

/// The format's name.
pub const FORMAT: &str = "attest-capsule/v1";

/// Longest capsule file in bytes.
pub const MAX_BYTES: usize = 256 * 1024;

/// Deepest nesting of a capsule file; unknown keys are passed over within it.
const MAX_DEPTH: usize = 16;

/// The only network that a capsule may have.
const NO_NETWORK: &str = "none";

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
    /// An image that could be another one tomorrow.
    #[error(
        "image '{}' is not pinned by digest; write REPOSITORY@sha256:<64 lowercase hexadecimal digits>",
        shown(.0)
    )]
    NotPinned(String),
    /// A hash that is not the content's own.
    #[error("capsule_hash is {stored}, and the capsule hashes to {computed}")]
    OtherHash {
        /// What the file says.
        stored: String,
        /// What the file hashes to.
        computed: String,
    },
    /// A rule of the format.
    #[error("{0}")]
    Invalid(String),
}

impl From<Fault> for CapsuleError {
    fn from(fault: Fault) -> Self {
        Self::Invalid(format!("line {}: {}", fault.line, fault.reason))
    }
}

impl Capsule {
    /// Makes a capsule with the workspace at `/work`, nothing else, and its hash.
    ///
    /// # Errors
    /// A name or an image that cannot be one.
    pub fn new(name: impl Into<String>, image: impl Into<String>) -> Result<Self, CapsuleError> {
        let mut capsule = Self {
            format: FORMAT.into(),
            name: name.into(),
            image: image.into(),
            entrypoint: None,
            env: BTreeMap::new(),
            mounts: Mounts {
                workspace: "/work".into(),
            },
            network: NO_NETWORK.into(),
            capsule_hash: None,
        };
        capsule.validate()?;
        capsule.capsule_hash = Some(capsule.computed()?);
        Ok(capsule)
    }

    /// Reads a capsule file; unknown keys are passed over, since the hash covers none of them.
    ///
    /// # Errors
    /// What is wrong with it, a `capsule_hash` that is absent or another one included.
    pub fn read(bytes: &[u8]) -> Result<Self, CapsuleError> {
        let limits = Limits {
            bytes: MAX_BYTES,
            depth: MAX_DEPTH,
        };
        let capsule = take(Place::document(yaml::parse(bytes, &limits)?))?;
        capsule.validate()?;
        let computed = capsule.computed()?;
        match &capsule.capsule_hash {
            None => Err(CapsuleError::Invalid("capsule_hash is missing".into())),
            Some(stored) if *stored != computed => Err(CapsuleError::OtherHash {
                stored: shown(stored),
                computed,
            }),
            Some(_) => Ok(capsule),
        }
    }

    /// Judges everything but the hash.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn validate(&self) -> Result<(), CapsuleError> {
        let invalid = |reason: String| Err(CapsuleError::Invalid(reason));
        if self.format != FORMAT {
            let format = shown(&self.format);
            return invalid(format!("format is '{format}', not {FORMAT}"));
        }
        if !is_plain_name(&self.name) {
            return invalid(format!(
                "name '{}' is no name of a folder",
                shown(&self.name)
            ));
        }
        if !is_pinned(&self.image) {
            return Err(CapsuleError::NotPinned(self.image.clone()));
        }
        if self.network != NO_NETWORK {
            let network = shown(&self.network);
            return invalid(format!(
                "network is '{network}', and only {NO_NETWORK} is known"
            ));
        }
        let workspace = &self.mounts.workspace;
        // A colon would end the path in a container runtime's option and start its flags.
        if !workspace.starts_with('/') || workspace.contains(':') || has_control(workspace) {
            let workspace = shown(workspace);
            return invalid(format!(
                "mounts.workspace '{workspace}' is no absolute path without colons"
            ));
        }
        if self
            .entrypoint
            .iter()
            .flatten()
            .any(|word| word.contains('\0'))
        {
            return invalid("entrypoint has a NUL".into());
        }
        // The emitter leaves this name without quotes, and readers take it for a merge.
        if self.env.contains_key("<<") {
            return invalid("env: '<<' is no name of a variable".into());
        }
        check_env(&self.env).map_err(|reason| CapsuleError::Invalid(format!("env: {reason}")))
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
        Ok(crate::encode::blake3_hex(bare.to_yaml()?.as_bytes()))
    }

    /// Returns the capsule as the YAML document that is stored.
    ///
    /// # Errors
    /// As [`Capsule::hash`].
    pub fn to_yaml(&self) -> Result<String, yaml_serde::Error> {
        yaml_serde::to_string(self)
    }

    fn computed(&self) -> Result<String, CapsuleError> {
        self.hash()
            .map_err(|error| CapsuleError::Invalid(error.to_string()))
    }
}

fn take(place: Place) -> Result<Capsule, Fault> {
    let mut keys = place.keys()?;
    let capsule = Capsule {
        format: keys.required("format")?.text()?,
        name: keys.required("name")?.text()?,
        image: keys.required("image")?.text()?,
        entrypoint: keys.optional("entrypoint").map(Place::texts).transpose()?,
        env: keys
            .given("env")
            .map_or(Ok(BTreeMap::new()), Place::text_map)?,
        mounts: {
            let mut mounts = keys.required("mounts")?.keys()?;
            let workspace = mounts.required("workspace")?.text()?;
            mounts.end_ignoring_unknown();
            Mounts { workspace }
        },
        network: keys.required("network")?.text()?,
        capsule_hash: keys.optional("capsule_hash").map(Place::text).transpose()?,
    };
    keys.end_ignoring_unknown();
    Ok(capsule)
}

/// `repository@sha256:<64 hexadecimal digits>`, and nothing that a runtime takes for an option.
fn is_pinned(image: &str) -> bool {
    image
        .split_once("@sha256:")
        .is_some_and(|(repository, digest)| {
            let plain = |c: char| !c.is_control() && !c.is_whitespace();
            is_lower_hex_64(digest)
                && !repository.is_empty()
                && !repository.starts_with('-')
                && repository.chars().all(plain)
        })
}
