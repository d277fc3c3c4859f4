//! Artifacts in a folder: `sha256/ab/<hex>`, owner-only, each written whole and durable.
//!
//! Not `object_store`'s local file system: that one makes files with the umask's permissions, leaves
//! temporary files of killed writers behind for good, and brings a second `nix`.

use std::collections::BTreeSet;
use std::io::{Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use safe_fs::{
    SafeFsError, check_private_dir, check_private_file, private_dir, sweep_left_over, write_atomic,
};
use tokio::io::AsyncReadExt as _;

use super::{Kept, Key, PIECE, failed};
use crate::{ByteStream, StoreError};

/// Folders that may be there.
const SHARDS: usize = 256;

/// Artifacts in a folder.
#[derive(Debug, Clone)]
pub(crate) struct Disk {
    shards: PathBuf,
    /// The folders that are durable since this process knows of them.
    durable: Arc<Mutex<BTreeSet<String>>>,
}

impl Disk {
    /// Makes the upper folders, and judges what is in them. Blocks.
    pub(crate) fn open(root: &Path) -> Result<Self, StoreError> {
        let artifacts = root.join("artifacts");
        let shards = artifacts.join("sha256");
        for path in [&artifacts, &shards] {
            private_dir(path).map_err(|source| insecure(path, source))?;
        }
        let listed = fs_err::read_dir(&shards).map_err(|error| failed("list folders", error))?;
        // One for each value of a byte; whatever else is there is not looked at for ever.
        for shard in listed.take(SHARDS) {
            let path = shard.map_err(|error| failed("list folders", error))?.path();
            check_private_dir(&path).map_err(|source| insecure(&path, source))?;
        }
        for folder in [&artifacts, root] {
            synchronise(folder)?;
        }
        Ok(Self {
            shards,
            durable: Arc::default(),
        })
    }

    /// Makes the folder of a key, which must not be lost with what is put into it. Blocks.
    fn prepare(&self, key: Key) -> Result<(), StoreError> {
        let shard = key.shard();
        let is_durable = self
            .durable
            .lock()
            .is_ok_and(|durable| durable.contains(&shard));
        if is_durable {
            return Ok(());
        }
        let folder = self.folder(key);
        private_dir(&folder).map_err(|source| insecure(&folder, source))?;
        synchronise(&self.shards)?;
        if let Ok(mut durable) = self.durable.lock() {
            durable.insert(shard);
        }
        Ok(())
    }

    fn folder(&self, key: Key) -> PathBuf {
        self.shards.join(key.shard())
    }

    fn path(&self, key: Key) -> PathBuf {
        self.folder(key).join(key.name())
    }

    /// Removes what killed writers left beside a key. Blocks.
    pub(crate) fn sweep(&self, key: Key) {
        sweep_left_over(&self.folder(key));
    }

    /// Writes bytes, durable when it returns. `held` lives as long as the writing does, which goes
    /// on when the caller no longer waits.
    pub(crate) async fn put(
        &self,
        key: Key,
        bytes: Bytes,
        held: impl Send + 'static,
    ) -> Result<(), StoreError> {
        let disk = self.clone();
        blocking("write", move || {
            disk.prepare(key)?;
            let written = write_atomic(&disk.path(key), &bytes, 0o600);
            drop((bytes, held));
            written.map_err(|error| failed("write", error))
        })
        .await
    }

    /// Tells how many bytes there are.
    pub(crate) async fn length(&self, key: Key) -> Result<Option<u64>, StoreError> {
        let path = self.path(key);
        blocking("look", move || match fs_err::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_file() => Ok(Some(metadata.len())),
            Ok(_) => Ok(None),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("look", error)),
        })
        .await
    }

    /// Reads a part.
    pub(crate) async fn get(
        &self,
        kept: Kept,
        range: Range<u64>,
    ) -> Result<ByteStream, StoreError> {
        let path = self.path(kept.key);
        let start = range.start;
        let file = blocking("open", move || {
            check_private_file(&path).map_err(|error| {
                let reason = if error.is_not_found() {
                    "it is missing".to_owned()
                } else {
                    error.to_string()
                };
                kept.damaged(reason)
            })?;
            let mut file = fs_err::File::open(&path).map_err(|error| failed("open", error))?;
            let length = file
                .metadata()
                .map_err(|error| failed("open", error))?
                .len();
            kept.check_length(length)?;
            file.seek(SeekFrom::Start(start))
                .map_err(|error| failed("open", error))?;
            Ok(file)
        })
        .await?;
        let file = tokio::fs::File::from_std(file.into_file());
        let length = range.end.saturating_sub(range.start);
        Ok(
            stream::try_unfold((file, length), move |(mut file, left)| async move {
                if left == 0 {
                    return Ok(None);
                }
                let most = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE);
                let mut piece = bytes::BytesMut::with_capacity(most);
                let read = (&mut file).take(left.min(PIECE as u64));
                tokio::pin!(read);
                let count = read
                    .read_buf(&mut piece)
                    .await
                    .map_err(|error| failed("read", error))?;
                if count == 0 {
                    return Err(kept.damaged("it ends too early".to_owned()));
                }
                let left = left.saturating_sub(u64::try_from(count).unwrap_or(u64::MAX));
                Ok(Some((piece.freeze(), (file, left))))
            })
            .boxed(),
        )
    }

    /// Removes what is there.
    pub(crate) async fn delete(&self, key: Key) -> Result<(), StoreError> {
        let path = self.path(key);
        blocking("remove", move || match fs_err::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(failed("remove", error))
            }
            _ => Ok(()),
        })
        .await
    }
}

fn insecure(path: &Path, source: SafeFsError) -> StoreError {
    StoreError::Insecure {
        path: path.to_owned(),
        source,
    }
}

fn synchronise(folder: &Path) -> Result<(), StoreError> {
    fs_err::File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| failed("synchronise a folder", error))
}

async fn blocking<T: Send + 'static>(
    doing: &'static str,
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| failed(doing, error))?
}
