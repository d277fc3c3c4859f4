//! Artifacts as objects: in a bucket, or in memory.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, Checksum};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    BackoffConfig, Error, GetOptions, GetRange, ObjectStore, ObjectStoreExt as _, RetryConfig,
};

use super::service::Connector;
use super::{Kept, Key, S3, failed};
use crate::{ByteStream, StoreError};

/// What fails for a moment is tried again so often; somebody waits meanwhile.
const TRIES: usize = 4;
/// And not after this long.
const RETRYING: Duration = Duration::from_secs(20);
/// Slowest upload to the service that is waited for, in bytes a second.
const SLOWEST: u64 = 256 * 1024;
/// Most that is told of an error, in bytes; a service may answer anything.
const REASON: usize = 2048;

/// Artifacts as objects.
#[derive(Debug, Clone)]
pub(crate) struct Objects {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    /// Longest time that a service may say nothing.
    silence: Option<Duration>,
}

impl Objects {
    pub(crate) fn in_memory() -> Self {
        Self {
            store: Arc::new(InMemory::new()),
            prefix: Path::default(),
            silence: None,
        }
    }

    pub(crate) fn in_bucket(s3: S3) -> Result<Self, StoreError> {
        s3.check()?;
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(s3.bucket)
            .with_region(s3.region)
            .with_access_key_id(s3.access_key_id)
            .with_secret_access_key(s3.secret_access_key)
            .with_checksum_algorithm(Checksum::SHA256)
            // Removing many at once is not spoken by every service, and only one is removed at a time.
            .with_config(AmazonS3ConfigKey::DisableBulkDelete, "true")
            .with_retry(RetryConfig {
                backoff: BackoffConfig::default(),
                max_retries: TRIES,
                retry_timeout: RETRYING,
            })
            .with_http_connector(Connector {
                tls: s3.tls,
                silence: s3.silence,
            });
        if let Some(endpoint) = &s3.endpoint {
            builder = builder
                .with_endpoint(endpoint)
                .with_allow_http(endpoint.starts_with("http://"));
        }
        let prefix = Path::parse(s3.prefix.as_deref().unwrap_or_default())
            .map_err(|error| failed("use the prefix", error))?;
        let store = builder
            .build()
            .map_err(|error| failed("use the bucket", error))?;
        Ok(Self {
            store: Arc::new(store),
            prefix,
            silence: Some(s3.silence),
        })
    }

    fn path(&self, key: Key) -> Path {
        let path = self.prefix.clone().join("sha256").join(key.shard());
        path.join(key.name())
    }

    /// Writes bytes in place of whatever is there: what has the right length may be damaged all the
    /// same, and a write on a condition is not spoken by every service.
    pub(crate) async fn put(&self, key: Key, bytes: Bytes) -> Result<(), StoreError> {
        let path = self.path(key);
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let put = self.store.put(&path, bytes.into());
        let put = match self.silence {
            Some(silence) => {
                let most = silence + RETRYING + Duration::from_secs(length / SLOWEST);
                tokio::time::timeout(most, put)
                    .await
                    .map_err(|slow| away("write", slow))?
            }
            None => put.await,
        };
        put.map(drop).map_err(|error| lost("write", &error))
    }

    /// Tells how many bytes there are.
    pub(crate) async fn length(&self, key: Key) -> Result<Option<u64>, StoreError> {
        match self.store.head(&self.path(key)).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(lost("look", &error)),
        }
    }

    /// Reads a part.
    pub(crate) async fn get(
        &self,
        kept: Kept,
        range: Range<u64>,
    ) -> Result<ByteStream, StoreError> {
        let path = self.path(kept.key);
        let missing = || kept.damaged("it is missing".to_owned());
        if range.is_empty() {
            let length = self.length(kept.key).await?.ok_or_else(missing)?;
            kept.check_length(length)?;
            return Ok(stream::empty().boxed());
        }
        let (start, length) = (range.start, range.end.saturating_sub(range.start));
        let options = GetOptions {
            range: Some(GetRange::Bounded(range)),
            ..GetOptions::default()
        };
        let got = match self.store.get_opts(&path, options).await {
            Ok(got) => got,
            Err(Error::NotFound { .. }) => return Err(missing()),
            Err(error) => {
                // A part that begins behind the end of what is there is refused as such.
                if start > 0
                    && let Ok(Some(found)) = self.length(kept.key).await
                {
                    kept.check_length(found)?;
                }
                return Err(lost("read", &error));
            }
        };
        kept.check_length(got.meta.size)?;
        let pieces = got.into_stream();
        // Neither more nor less than was asked for, whatever the service says.
        Ok(
            stream::try_unfold((pieces, length), move |(mut pieces, left)| async move {
                if left == 0 {
                    return Ok(None);
                }
                loop {
                    let piece = match pieces.next().await {
                        Some(piece) => piece.map_err(|error| lost("read", &error))?,
                        None => return Err(kept.damaged("it ends too early".to_owned())),
                    };
                    let count = u64::try_from(piece.len()).unwrap_or(u64::MAX);
                    let Some(left) = left.checked_sub(count) else {
                        return Err(kept.damaged("it does not end where it should".to_owned()));
                    };
                    if count > 0 {
                        return Ok(Some((piece, (pieces, left))));
                    }
                }
            })
            .boxed(),
        )
    }

    /// Asks for something that is not there: who is refused hears of it here first.
    pub(crate) async fn look(&self) -> Result<(), StoreError> {
        let nothing = self.prefix.clone().join("sha256").join("nothing");
        match self.store.get(&nothing).await {
            Ok(_) => Ok(()),
            Err(error @ Error::NotFound { .. }) if reason(&error).contains("NoSuchBucket") => {
                Err(lost("find the bucket", &error))
            }
            Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(lost("look", &error)),
        }
    }

    /// Removes what is there.
    pub(crate) async fn delete(&self, key: Key) -> Result<(), StoreError> {
        match self.store.delete(&self.path(key)).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(lost("remove", &error)),
        }
    }
}

/// What the service refuses by name stays refused; everything else may work again later.
fn lost(doing: &'static str, error: &Error) -> StoreError {
    let source = reason(error);
    match error {
        Error::Generic { .. } => away(doing, source),
        _ => failed(doing, source),
    }
}

/// An error with its causes, each said once: most repeat those below them, with all that a service
/// answered.
fn reason(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(cause) = below {
        let said = cause.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        below = cause.source();
    }
    bounded::text::head(&text, REASON).to_owned()
}

fn away(
    doing: &'static str,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> StoreError {
    StoreError::ArtifactsAway {
        doing,
        source: source.into(),
    }
}
