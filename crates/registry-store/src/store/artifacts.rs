//! Bytes: uploads, reading, checking what is kept, and removing what nobody released.

use std::ops::Range;
use std::sync::Arc;

use digest_text::Sha256Text;
use futures_util::StreamExt as _;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::{Inner, Store};
use crate::place::{Kept, Key};
use crate::sqlite::{self, Known, Waiting};
use crate::{Artifact, ByteStream, Checked, Collected, StoreError, Uploaded};

/// Most digests of one list.
const MAX_DIGESTS: u32 = 1_000;
/// Uploads that a clean-up looks up at once.
const COLLECTED: u32 = 64;

impl Store {
    /// Keeps a package until it is released; what nobody releases in time is removed.
    ///
    /// # Errors
    /// The place or the database failed.
    pub async fn upload(&self, checked: Checked, now: Timestamp) -> Result<Uploaded, StoreError> {
        let Inner {
            database, place, ..
        } = &*self.inner;
        let shared = Arc::clone(&self.inner.bytes).read_owned().await;
        let checked = Arc::new(checked);
        let begun = Arc::clone(&checked);
        let known = database
            .write("begin an upload", move |connection| {
                sqlite::begin(connection, &begun, now)
            })
            .await?;
        let key = Key::Artifact(checked.digest);
        let created = !known.is_some_and(|known| known.kept);
        let held = Arc::new((shared, Arc::clone(&checked)));
        // Bytes that were lost or damaged since come back with the next upload of them.
        if created || self.hash(checked.digest, checked.length()).await.is_err() {
            let bytes = checked.bytes.clone();
            place.put(key, bytes, Arc::clone(&held)).await?;
        }
        self.keep(checked.digest, now).await?;
        drop(held);
        Ok(Uploaded {
            artifact_digest: checked.digest,
            artifact_bytes: checked.length(),
            unpacked_bytes: checked.unpacked_bytes,
            files: checked.files,
            plugin_id: checked.plugin_id.clone(),
            version: checked.version.clone(),
            diagnostics: checked.diagnostics.clone(),
            created,
        })
    }

    /// Tells whether the place of the artifacts can be used, as far as looking can tell.
    ///
    /// # Errors
    /// It cannot, and this says why.
    pub async fn check_place(&self) -> Result<(), StoreError> {
        self.inner.place.look().await
    }

    /// Tells what is known of a digest, released or not.
    ///
    /// # Errors
    /// The database failed.
    pub async fn artifact(&self, digest: Sha256Text) -> Result<Option<Artifact>, StoreError> {
        Ok(self.known(digest).await?.map(|known| known.artifact))
    }

    /// Reads a part of a released artifact.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] of what is not released, [`StoreError::Invalid`] of a range that
    /// is not inside the artifact, [`StoreError::Damaged`].
    pub async fn read(
        &self,
        digest: Sha256Text,
        range: Range<u64>,
    ) -> Result<ByteStream, StoreError> {
        let artifact = self.artifact(digest).await?;
        let artifact = artifact
            .filter(|artifact| artifact.released)
            .ok_or(StoreError::NotFound { what: "artifact" })?;
        if range.start > range.end || range.end > artifact.bytes {
            return Err(StoreError::Invalid {
                what: "range",
                rule: "must lie inside of the artifact",
            });
        }
        let kept = Kept {
            key: Key::Artifact(digest),
            bytes: artifact.bytes,
        };
        self.inner.place.get(kept, range).await
    }

    /// Hashes what is kept of an artifact and of its receipt.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Damaged`].
    pub async fn verify(&self, digest: Sha256Text) -> Result<(), StoreError> {
        let known = self.known(digest).await?;
        let known = known
            .filter(|known| known.kept)
            .ok_or(StoreError::NotFound { what: "artifact" })?;
        self.hash(digest, known.artifact.bytes).await?;
        self.stored_receipt(digest).await.map(drop)
    }

    /// Reads what is kept of an artifact, all of it.
    async fn hash(&self, digest: Sha256Text, bytes: u64) -> Result<(), StoreError> {
        let key = Key::Artifact(digest);
        let kept = Kept { key, bytes };
        let mut pieces = self.inner.place.get(kept, 0..bytes).await?;
        let mut hash = Sha256::new();
        while let Some(piece) = pieces.next().await {
            hash.update(piece?);
        }
        if Sha256Text::from_bytes(hash.finalize().into()) != digest {
            return Err(kept.damaged("its bytes are others".to_owned()));
        }
        Ok(())
    }

    /// Lists digests in their order, for [`Store::verify`].
    ///
    /// # Errors
    /// The database failed.
    pub async fn digests(
        &self,
        after: Option<Sha256Text>,
        limit: u32,
    ) -> Result<Vec<Sha256Text>, StoreError> {
        self.inner
            .database
            .read("list digests", move |connection| {
                sqlite::digests(connection, after, limit.min(MAX_DIGESTS))
            })
            .await
    }

    /// Removes uploads that nobody released in time, and what uploads left that were interrupted.
    ///
    /// # Errors
    /// The place or the database failed; what was removed until then is gone.
    pub async fn collect(&self, now: Timestamp) -> Result<Collected, StoreError> {
        let since = now
            .checked_sub(self.inner.limits.unreleased)
            .unwrap_or(Timestamp::MIN);
        let mut collected = Collected::default();
        loop {
            let waiting = self
                .inner
                .database
                .read("look for old uploads", move |connection| {
                    sqlite::waiting(connection, since, COLLECTED)
                })
                .await?;
            if waiting.is_empty() {
                return Ok(collected);
            }
            for upload in waiting {
                if self.remove(upload, since).await? && upload.kept {
                    collected.uploads += 1;
                    collected.bytes += upload.bytes;
                }
            }
        }
    }

    pub(super) async fn known(&self, digest: Sha256Text) -> Result<Option<Known>, StoreError> {
        self.inner
            .database
            .read("find an artifact", move |connection| {
                sqlite::find(connection, digest)
            })
            .await
    }

    pub(super) async fn keep(&self, digest: Sha256Text, now: Timestamp) -> Result<(), StoreError> {
        self.inner
            .database
            .write("keep an upload", move |connection| {
                sqlite::keep(connection, digest, now)
            })
            .await
    }

    /// Removes one upload: first out of reach, then the bytes, then what is known of them. What
    /// is interrupted goes on with the next clean-up.
    pub(super) async fn remove(
        &self,
        upload: Waiting,
        since: Timestamp,
    ) -> Result<bool, StoreError> {
        let Inner {
            database,
            place,
            bytes,
            ..
        } = &*self.inner;
        let alone = bytes.write().await;
        let digest = upload.digest;
        let still = database
            .write("take an upload away", move |connection| {
                sqlite::mark_pending(connection, digest, since)
            })
            .await?;
        if still {
            place.delete(Key::Receipt(digest)).await?;
            place.delete(Key::Artifact(digest)).await?;
            database
                .write("forget an upload", move |connection| {
                    sqlite::drop_row(connection, digest)
                })
                .await?;
        }
        drop(alone);
        Ok(still)
    }
}
