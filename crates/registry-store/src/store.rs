//! The store.

use std::ops::Range;
use std::path::Path;

use bytes::Bytes;
use digest_text::Sha256Text;
use jiff::Timestamp;

use crate::{
    Admission, Artifact, ArtifactPlace, ByteStream, CatalogEntry, ChannelName, Checked, Collected,
    Installation, InstallationFilter, Limits, Listed, Page, PluginId, Published, Receipt, Release,
    ReleaseId, Report, StoreError, Uploaded, Wanted,
};

/// The memory of one registry; clones are the same one.
#[derive(Debug, Clone)]
pub struct Store {}

impl Store {
    /// Opens the registry in a folder, or makes one there. Blocks.
    ///
    /// # Errors
    /// Nothing that is found wrong is repaired.
    pub fn open(_root: &Path, _place: ArtifactPlace, _limits: Limits) -> Result<Self, StoreError> {
        Err(StoreError::Closed)
    }

    /// Waits until there is memory for one more package.
    ///
    /// # Errors
    /// [`StoreError::Closed`].
    pub async fn admit(&self) -> Result<Admission, StoreError> {
        Err(StoreError::Closed)
    }

    /// Keeps a package until it is released; what nobody releases in time is removed.
    ///
    /// # Errors
    /// The place or the database failed.
    pub async fn upload(&self, _checked: Checked, _now: Timestamp) -> Result<Uploaded, StoreError> {
        Err(StoreError::Closed)
    }

    /// Tells what is known of a digest, released or not.
    ///
    /// # Errors
    /// The database failed.
    pub async fn artifact(&self, _digest: Sha256Text) -> Result<Option<Artifact>, StoreError> {
        Err(StoreError::Closed)
    }

    /// Reads a part of a released artifact.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] of what is not released, [`StoreError::Invalid`] of a range that
    /// is not inside the artifact, [`StoreError::Damaged`].
    pub async fn read(
        &self,
        _digest: Sha256Text,
        _range: Range<u64>,
    ) -> Result<ByteStream, StoreError> {
        Err(StoreError::Closed)
    }

    /// Hashes what is kept of an artifact and of its receipt.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Damaged`].
    pub async fn verify(&self, _digest: Sha256Text) -> Result<(), StoreError> {
        Err(StoreError::Closed)
    }

    /// Lists digests in their order, for [`Store::verify`].
    ///
    /// # Errors
    /// The database failed.
    pub async fn digests(
        &self,
        _after: Option<Sha256Text>,
        _limit: u32,
    ) -> Result<Vec<Sha256Text>, StoreError> {
        Err(StoreError::Closed)
    }

    /// Publishes an upload: release, channel and catalog in one step. Bytes that were published
    /// before give the same release; a channel that meanwhile points elsewhere is not moved back.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] without an upload, [`StoreError::Yanked`],
    /// [`StoreError::ChannelTaken`], [`StoreError::TooMany`] channels.
    pub async fn publish(
        &self,
        _artifact: Sha256Text,
        _channel: Option<ChannelName>,
        _publisher: String,
        _now: Timestamp,
    ) -> Result<Published, StoreError> {
        Err(StoreError::Closed)
    }

    /// Lists plugins by id, those alone that have a release which is not yanked.
    ///
    /// # Errors
    /// [`StoreError::Invalid`], [`StoreError::InvalidCursor`].
    pub async fn catalog(
        &self,
        _query: Option<String>,
        _page: Page,
    ) -> Result<Listed<CatalogEntry>, StoreError> {
        Err(StoreError::Closed)
    }

    /// Finds one release.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if it is not said which one, [`StoreError::NotFound`],
    /// [`StoreError::Yanked`] where a channel points at a yanked one.
    pub async fn resolve(&self, _wanted: Wanted) -> Result<Release, StoreError> {
        Err(StoreError::Closed)
    }

    /// Lists the releases of a plugin, the newest first, without their manifests.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Invalid`], [`StoreError::InvalidCursor`].
    pub async fn releases(
        &self,
        _plugin: PluginId,
        _page: Page,
    ) -> Result<Listed<Release>, StoreError> {
        Err(StoreError::Closed)
    }

    /// Lets a channel point at a release.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Yanked`], [`StoreError::ChannelMoved`],
    /// [`StoreError::TooMany`] channels.
    pub async fn promote(
        &self,
        _plugin: PluginId,
        _channel: ChannelName,
        _release: ReleaseId,
        _expected: Option<ReleaseId>,
        _now: Timestamp,
    ) -> Result<Release, StoreError> {
        Err(StoreError::Closed)
    }

    /// Takes a release out of use; a reason replaces the one before.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Invalid`] reason.
    pub async fn yank(
        &self,
        _release: ReleaseId,
        _reason: Option<String>,
        _now: Timestamp,
    ) -> Result<Release, StoreError> {
        Err(StoreError::Closed)
    }

    /// Takes a release into use again.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn unyank(
        &self,
        _release: ReleaseId,
        _now: Timestamp,
    ) -> Result<Release, StoreError> {
        Err(StoreError::Closed)
    }

    /// Keeps a receipt beside an artifact that was uploaded. It must be a receipt that names the
    /// artifact among what was made; whether it is to be trusted is not judged. Tells whether it is
    /// new.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::ReceiptMismatch`], [`StoreError::ReceiptExists`].
    pub async fn put_receipt(
        &self,
        _artifact: Sha256Text,
        _receipt: Bytes,
        _by: String,
        _now: Timestamp,
    ) -> Result<bool, StoreError> {
        Err(StoreError::Closed)
    }

    /// Reads the receipt beside a released artifact.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Damaged`].
    pub async fn receipt(&self, _artifact: Sha256Text) -> Result<Receipt, StoreError> {
        Err(StoreError::Closed)
    }

    /// Remembers what a host says of an installation, in place of what it said before.
    ///
    /// # Errors
    /// [`StoreError::Invalid`], [`StoreError::NotFound`] release,
    /// [`StoreError::InstallationTaken`], [`StoreError::TooMany`].
    pub async fn report(
        &self,
        _report: Report,
        _by: String,
        _now: Timestamp,
    ) -> Result<Installation, StoreError> {
        Err(StoreError::Closed)
    }

    /// Lists installations by id.
    ///
    /// # Errors
    /// [`StoreError::Invalid`], [`StoreError::InvalidCursor`].
    pub async fn installations(
        &self,
        _filter: InstallationFilter,
        _page: Page,
    ) -> Result<Listed<Installation>, StoreError> {
        Err(StoreError::Closed)
    }

    /// Removes uploads that nobody released in time, and what uploads left that were interrupted.
    ///
    /// # Errors
    /// The place or the database failed; what was removed until then is gone.
    pub async fn collect(&self, _now: Timestamp) -> Result<Collected, StoreError> {
        Err(StoreError::Closed)
    }

    /// Tells whether the database answers.
    ///
    /// # Errors
    /// It does not.
    pub async fn ping(&self) -> Result<(), StoreError> {
        Err(StoreError::Closed)
    }
}
