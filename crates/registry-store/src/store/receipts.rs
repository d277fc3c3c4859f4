//! Receipts beside artifacts: whether bytes are a receipt of an artifact, and keeping them. Whether a
//! receipt is to be trusted is the question of who installs.

use std::sync::Arc;

use attest_receipt::receipt::{ArtifactKind, MAX_BYTES, read};
use bytes::{Bytes, BytesMut};
use digest_text::{Blake3Text, Sha256Text};
use futures_util::StreamExt as _;
use jiff::Timestamp;

use super::{Store, check_actor};
use crate::place::{Kept, Key};
use crate::sqlite::{self, KeptReceipt};
use crate::{Receipt, StoreError};

impl Store {
    /// Keeps a receipt beside an artifact that was uploaded. It must be a receipt that names the
    /// artifact among what was made; whether it is to be trusted is not judged. Tells whether it is
    /// new.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::ReceiptMismatch`], [`StoreError::ReceiptExists`].
    pub async fn put_receipt(
        &self,
        artifact: Sha256Text,
        receipt: Bytes,
        by: String,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        check_actor("stored_by", &by)?;
        let known = self.known(artifact).await?;
        let known = known
            .filter(|known| known.kept)
            .ok_or(StoreError::NotFound { what: "artifact" })?;
        let permit = Arc::clone(&self.inner.uploads).acquire_owned().await;
        let permit = permit.map_err(|_| StoreError::Closed)?;
        let digest = check(receipt.clone(), known.blake3).await?;
        let alone = Arc::clone(&self.inner.receipts).lock_owned().await;
        let shared = Arc::clone(&self.inner.bytes).read_owned().await;
        let held = Arc::new((permit, alone, shared));
        let kept = KeptReceipt {
            digest,
            bytes: u64::try_from(receipt.len()).unwrap_or(u64::MAX),
            stored_at: now,
            stored_by: by,
        };
        let key = Key::Receipt(artifact);
        let before = self.receipt_row(artifact).await?;
        match &before {
            Some(before) if before.digest != digest => return Err(StoreError::ReceiptExists),
            Some(before) if self.inner.place.length(key).await? == Some(before.bytes) => {
                return Ok(false);
            }
            _ => {}
        }
        self.inner
            .place
            .put(key, receipt, Arc::clone(&held))
            .await?;
        if before.is_some() {
            return Ok(false);
        }
        self.inner
            .database
            .write("keep a receipt", move |connection| {
                sqlite::keep_receipt(connection, artifact, &kept)
            })
            .await?;
        drop(held);
        Ok(true)
    }

    /// Reads the receipt beside a released artifact.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Damaged`].
    pub async fn receipt(&self, artifact: Sha256Text) -> Result<Receipt, StoreError> {
        let missing = StoreError::NotFound { what: "receipt" };
        let known = self.artifact(artifact).await?;
        if !known.is_some_and(|artifact| artifact.released) {
            return Err(missing);
        }
        self.stored_receipt(artifact).await?.ok_or(missing)
    }

    pub(super) async fn receipt_row(
        &self,
        artifact: Sha256Text,
    ) -> Result<Option<KeptReceipt>, StoreError> {
        self.inner
            .database
            .read("find a receipt", move |connection| {
                sqlite::receipt(connection, artifact)
            })
            .await
    }

    /// Reads a receipt whole, and hashes it.
    pub(super) async fn stored_receipt(
        &self,
        artifact: Sha256Text,
    ) -> Result<Option<Receipt>, StoreError> {
        let Some(row) = self.receipt_row(artifact).await? else {
            return Ok(None);
        };
        let kept = Kept {
            key: Key::Receipt(artifact),
            bytes: row.bytes,
        };
        let mut pieces = self.inner.place.get(kept, 0..row.bytes).await?;
        let mut bytes = BytesMut::new();
        while let Some(piece) = pieces.next().await {
            bytes.extend_from_slice(&piece?);
        }
        if Sha256Text::of(&bytes) != row.digest {
            return Err(kept.damaged("its bytes are others".to_owned()));
        }
        Ok(Some(Receipt {
            bytes: bytes.freeze(),
            digest: row.digest,
            stored_at: row.stored_at,
            stored_by: row.stored_by,
        }))
    }
}

/// Checks a receipt on the blocking pool of the runtime, and gives its digest.
async fn check(receipt: Bytes, artifact: Blake3Text) -> Result<Sha256Text, StoreError> {
    tokio::task::spawn_blocking(move || check_now(&receipt, artifact))
        .await
        .map_err(|_| StoreError::Closed)?
}

fn check_now(receipt: &[u8], artifact: Blake3Text) -> Result<Sha256Text, StoreError> {
    if receipt.len() > MAX_BYTES {
        return Err(StoreError::TooLong {
            what: "receipt",
            limit: MAX_BYTES,
        });
    }
    let read = read(receipt).map_err(|error| StoreError::ReceiptMismatch {
        reason: format!("no receipt: {error}"),
    })?;
    let hex = artifact.to_string();
    let hex = hex.strip_prefix("blake3:").unwrap_or_default();
    let names_it = read
        .provenance
        .iter()
        .flat_map(|provenance| &provenance.artifacts)
        .any(|made| {
            made.kind == ArtifactKind::File && made.algorithm == "blake3" && made.digest == hex
        });
    if !names_it {
        return Err(StoreError::ReceiptMismatch {
            reason: format!(
                "the receipt names no file with the digest of the artifact, {artifact}"
            ),
        });
    }
    Ok(Sha256Text::of(receipt))
}
