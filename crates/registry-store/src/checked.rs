//! Packages that were checked before the store takes them.

use agent_plugin::{Diagnostic, MANIFEST, Options};
use bytes::Bytes;
use digest_text::{Blake3Text, Sha256Text};
use plugin_archive::{ArchiveError, LimitName, Rule};
use tokio::sync::OwnedSemaphorePermit;

use crate::{MAX_VERSION, PluginId, StoreError};

/// The right to have one package in memory; it ends when this is dropped.
#[derive(Debug)]
pub struct Admission {
    permit: OwnedSemaphorePermit,
    limits: plugin_archive::Limits,
}

/// A package whose bytes have the digest that they were announced with, unpack within all limits,
/// and load. It keeps its [`Admission`].
#[derive(Debug)]
pub struct Checked {
    pub(crate) digest: Sha256Text,
    pub(crate) blake3: Blake3Text,
    pub(crate) bytes: Bytes,
    pub(crate) unpacked_bytes: u64,
    pub(crate) files: u64,
    pub(crate) plugin_id: PluginId,
    pub(crate) version: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) manifest: Vec<u8>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    _permit: OwnedSemaphorePermit,
}

impl Admission {
    pub(crate) const fn new(permit: OwnedSemaphorePermit, limits: plugin_archive::Limits) -> Self {
        Self { permit, limits }
    }

    /// Returns how long an archive may be: who reads one need not read further.
    #[must_use]
    pub const fn archive_bytes(&self) -> u64 {
        self.limits.archive_bytes
    }

    /// Checks a package on the blocking pool of the runtime.
    ///
    /// # Errors
    /// [`StoreError::Archive`] with the limit of archives before anything is hashed,
    /// [`StoreError::IntegrityMismatch`] before anything is unpacked, [`StoreError::Archive`] and
    /// [`StoreError::Rejected`] for what is no package, [`StoreError::TooLong`] for its version.
    pub async fn check(self, bytes: Bytes, announced: Sha256Text) -> Result<Checked, StoreError> {
        tokio::task::spawn_blocking(move || self.check_now(bytes, announced))
            .await
            .map_err(|_| StoreError::Closed)?
    }

    fn check_now(self, bytes: Bytes, announced: Sha256Text) -> Result<Checked, StoreError> {
        let limit = self.limits.archive_bytes;
        if u64::try_from(bytes.len()).is_ok_and(|length| length > limit) {
            let name = LimitName::ArchiveBytes;
            return Err(StoreError::Archive(ArchiveError {
                entry: None,
                rule: Rule::Limit { name, limit },
            }));
        }
        let digest = Sha256Text::of(&bytes);
        if digest != announced {
            return Err(StoreError::IntegrityMismatch {
                expected: announced,
                found: digest,
            });
        }
        let files = plugin_archive::unpack(&bytes, &self.limits).map_err(StoreError::Archive)?;
        let package =
            agent_plugin::load(files, &Options::default()).map_err(StoreError::Rejected)?;
        let plugin_id = package
            .name()
            .parse()
            .map_err(|_| StoreError::Inconsistent {
                what: "a package has a name that is none",
            })?;
        let version = package.version().map(str::to_owned);
        if version
            .as_ref()
            .is_some_and(|version| version.len() > MAX_VERSION)
        {
            return Err(StoreError::TooLong {
                what: "version of a package",
                limit: MAX_VERSION,
            });
        }
        let description = match package.manifest.get("description") {
            Some(strict_json::Json::Text(text)) => Some(text.clone()),
            _ => None,
        };
        let sum = package.files.values().map(Vec::len).sum::<usize>();
        Ok(Checked {
            digest,
            blake3: Blake3Text::of(&bytes),
            unpacked_bytes: u64::try_from(sum).unwrap_or(u64::MAX),
            files: u64::try_from(package.files.len()).unwrap_or(u64::MAX),
            plugin_id,
            version,
            description,
            manifest: package.files.get(MANIFEST).cloned().unwrap_or_default(),
            diagnostics: package.diagnostics,
            bytes,
            _permit: self.permit,
        })
    }
}

impl Checked {
    /// Returns the digest of the bytes.
    #[must_use]
    pub const fn digest(&self) -> Sha256Text {
        self.digest
    }

    pub(crate) fn length(&self) -> u64 {
        u64::try_from(self.bytes.len()).unwrap_or(u64::MAX)
    }

    /// Returns the plugin, which whoever publishes it must be allowed to publish.
    #[must_use]
    pub const fn plugin_id(&self) -> &PluginId {
        &self.plugin_id
    }
}
