//! Where artifacts are kept.

mod disk;
mod objects;
mod service;

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use digest_text::Sha256Text;
use futures_util::stream::BoxStream;

use self::disk::Disk;
use self::objects::Objects;

use crate::StoreError;

/// Bytes of an artifact, piece by piece; an error ends it.
pub type ByteStream = BoxStream<'static, Result<Bytes, StoreError>>;

/// Where artifacts are kept.
#[derive(Debug, Clone, Default)]
pub enum ArtifactPlace {
    /// In `artifacts` below the root.
    #[default]
    Disk,
    /// In memory, gone with the store.
    Memory,
    /// In a bucket.
    S3(Box<S3>),
}

/// A bucket of a service that speaks S3, which this registry alone writes to.
#[derive(Clone)]
pub struct S3 {
    /// Its name.
    pub bucket: String,
    /// Its region.
    pub region: String,
    /// Another service than that of the region; `http://` only if it is meant.
    pub endpoint: Option<String>,
    /// What the names of artifacts begin with there.
    pub prefix: Option<String>,
    /// Who asks.
    pub access_key_id: String,
    /// And proves it.
    pub secret_access_key: String,
    /// Whom to believe.
    pub tls: Arc<rustls::ClientConfig>,
    /// Longest time that it may say nothing.
    pub silence: Duration,
}

impl S3 {
    /// What [`S3::silence`] is outside of tests.
    pub const SILENCE: Duration = Duration::from_secs(30);
    /// What [`S3::bucket`] must be.
    pub const BUCKET_RULE: &str =
        "must be 1 to 255 letters, digits, `.`, `_` and `-`, and begin with a letter or digit";
    /// What [`S3::region`] must be.
    pub const REGION_RULE: &str = "must be 1 to 63 letters, digits and `-`";
    /// What [`S3::prefix`] must be.
    pub const PREFIX_RULE: &str =
        "must be at most 512 bytes, without empty parts, `.`, `..` and control characters";

    /// Tells whether a bucket may be called so; services differ, but a name is a part of an address.
    #[must_use]
    pub fn is_bucket(name: &str) -> bool {
        let letters = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        name.len() <= 255
            && name.bytes().all(letters)
            && name.starts_with(|first: char| first.is_ascii_alphanumeric())
    }

    /// Tells whether a region may be called so.
    #[must_use]
    pub fn is_region(name: &str) -> bool {
        let letters = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=63).contains(&name.len()) && name.bytes().all(letters)
    }

    /// Tells whether names may begin so.
    #[must_use]
    pub fn is_prefix(prefix: &str) -> bool {
        prefix.len() <= 512
            && object_store::path::Path::parse(prefix).is_ok()
            && !bounded::text::has_control_or_format(prefix)
    }

    fn check(&self) -> Result<(), StoreError> {
        let prefix = self.prefix.as_deref().unwrap_or_default();
        let (what, rule) = if !Self::is_bucket(&self.bucket) {
            ("bucket", Self::BUCKET_RULE)
        } else if !Self::is_region(&self.region) {
            ("region", Self::REGION_RULE)
        } else if !Self::is_prefix(prefix) {
            ("prefix", Self::PREFIX_RULE)
        } else {
            return Ok(());
        };
        Err(StoreError::Invalid { what, rule })
    }
}

impl fmt::Debug for S3 {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("S3")
            .field("bucket", &self.bucket)
            .field("region", &self.region)
            .field("endpoint", &self.endpoint)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

/// Longest piece that is read at once from a disk.
const PIECE: usize = 64 * 1024;

/// What bytes are kept under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    /// An artifact.
    Artifact(Sha256Text),
    /// The receipt beside an artifact.
    Receipt(Sha256Text),
}

impl Key {
    const fn digest(self) -> Sha256Text {
        match self {
            Self::Artifact(digest) | Self::Receipt(digest) => digest,
        }
    }

    fn hex(self) -> String {
        let text = self.digest().to_string();
        text.strip_prefix("sha256:").unwrap_or_default().to_owned()
    }

    fn shard(self) -> String {
        self.hex().chars().take(2).collect()
    }

    fn name(self) -> String {
        let hex = self.hex();
        match self {
            Self::Artifact(_) => hex,
            Self::Receipt(_) => format!("{hex}.receipt"),
        }
    }
}

/// Bytes that were kept, and how many they were.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept {
    pub(crate) key: Key,
    pub(crate) bytes: u64,
}

impl Kept {
    /// Says that they are not there as they were.
    pub(crate) fn damaged(self, reason: String) -> StoreError {
        StoreError::Damaged {
            what: match self.key {
                Key::Artifact(_) => "artifact",
                Key::Receipt(_) => "the receipt of artifact",
            },
            digest: self.key.digest(),
            reason,
        }
    }

    pub(crate) fn check_length(self, found: u64) -> Result<(), StoreError> {
        if found == self.bytes {
            return Ok(());
        }
        Err(self.damaged(format!("it has {found} bytes, not {}", self.bytes)))
    }
}

/// An open place.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    Disk(Disk),
    Objects(Objects),
}

impl Place {
    /// Opens a place. Blocks.
    pub(crate) fn open(root: &Path, place: ArtifactPlace) -> Result<Self, StoreError> {
        Ok(match place {
            ArtifactPlace::Disk => Self::Disk(Disk::open(root)?),
            ArtifactPlace::Memory => Self::Objects(Objects::in_memory()),
            ArtifactPlace::S3(s3) => Self::Objects(Objects::in_bucket(*s3)?),
        })
    }

    /// Removes what a killed process left beside a key. Blocks.
    pub(crate) fn sweep(&self, key: Key) {
        if let Self::Disk(disk) = self {
            disk.sweep(key);
        }
    }

    /// Writes bytes, durable when it returns. `held` lives as long as the writing does, which may be
    /// longer than the caller waits.
    pub(crate) async fn put(
        &self,
        key: Key,
        bytes: Bytes,
        held: impl Send + 'static,
    ) -> Result<(), StoreError> {
        match self {
            Self::Disk(disk) => disk.put(key, bytes, held).await,
            Self::Objects(objects) => {
                let put = objects.put(key, bytes).await;
                drop(held);
                put
            }
        }
    }

    /// Tells how many bytes there are.
    pub(crate) async fn length(&self, key: Key) -> Result<Option<u64>, StoreError> {
        match self {
            Self::Disk(disk) => disk.length(key).await,
            Self::Objects(objects) => objects.length(key).await,
        }
    }

    /// Reads a part of what was kept; never of anything that has another length.
    pub(crate) async fn get(
        &self,
        kept: Kept,
        range: Range<u64>,
    ) -> Result<ByteStream, StoreError> {
        match self {
            Self::Disk(disk) => disk.get(kept, range).await,
            Self::Objects(objects) => objects.get(kept, range).await,
        }
    }

    /// Tells whether it can be used, as far as looking can tell.
    pub(crate) async fn look(&self) -> Result<(), StoreError> {
        match self {
            Self::Disk(_) => Ok(()),
            Self::Objects(objects) => objects.look().await,
        }
    }

    /// Removes what is there, if anything is.
    pub(crate) async fn delete(&self, key: Key) -> Result<(), StoreError> {
        match self {
            Self::Disk(disk) => disk.delete(key).await,
            Self::Objects(objects) => objects.delete(key).await,
        }
    }
}

fn failed(
    doing: &'static str,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> StoreError {
    StoreError::Artifacts {
        doing,
        source: source.into(),
    }
}
