//! Artifacts as objects: in a bucket, or in memory.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use object_store::aws::{AmazonS3Builder, Checksum};
use object_store::client::{HttpClient, HttpConnector};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    ClientOptions, Error, GetOptions, GetRange, ObjectStore, ObjectStoreExt as _, PutMode,
    PutOptions,
};

use super::{Kept, Key, S3, failed};
use crate::{ByteStream, StoreError};

const CONNECT: Duration = Duration::from_secs(5);
/// Longest time without a byte.
const SILENCE: Duration = Duration::from_secs(30);

/// Artifacts as objects.
#[derive(Debug, Clone)]
pub(crate) struct Objects {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
}

impl Objects {
    pub(crate) fn in_memory() -> Self {
        Self {
            store: Arc::new(InMemory::new()),
            prefix: Path::default(),
        }
    }

    pub(crate) fn in_bucket(s3: S3) -> Result<Self, StoreError> {
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(s3.bucket)
            .with_region(s3.region)
            .with_access_key_id(s3.access_key_id)
            .with_secret_access_key(s3.secret_access_key)
            .with_checksum_algorithm(Checksum::SHA256)
            .with_http_connector(Connector(s3.tls));
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
        })
    }

    fn path(&self, key: Key) -> Path {
        let path = self.prefix.clone().join("sha256").join(key.shard());
        path.join(key.name())
    }

    /// Writes bytes. What is addressed by its digest is not written again where the service can
    /// tell; a receipt replaces what an interrupted one left.
    pub(crate) async fn put(&self, key: Key, bytes: Bytes) -> Result<(), StoreError> {
        let path = self.path(key);
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if matches!(key, Key::Artifact(_)) {
            let only_new = PutOptions::from(PutMode::Create);
            match self
                .store
                .put_opts(&path, bytes.clone().into(), only_new)
                .await
            {
                Ok(_) => return Ok(()),
                // Its length is what a look can tell; whatever it is, these bytes are the right ones.
                Err(Error::AlreadyExists { .. }) if self.length(key).await? == Some(length) => {
                    return Ok(());
                }
                Err(Error::AlreadyExists { .. } | Error::NotImplemented { .. }) => {}
                Err(error) => return Err(failed("write", error)),
            }
        }
        match self.store.put(&path, bytes.into()).await {
            Ok(_) => Ok(()),
            Err(error) => Err(failed("write", error)),
        }
    }

    /// Tells how many bytes there are.
    pub(crate) async fn length(&self, key: Key) -> Result<Option<u64>, StoreError> {
        match self.store.head(&self.path(key)).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(failed("look", error)),
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
        let length = range.end.saturating_sub(range.start);
        let options = GetOptions {
            range: Some(GetRange::Bounded(range)),
            ..GetOptions::default()
        };
        let got = match self.store.get_opts(&path, options).await {
            Ok(got) => got,
            Err(Error::NotFound { .. }) => return Err(missing()),
            Err(error) => return Err(failed("read", error)),
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
                        Some(piece) => piece.map_err(|error| failed("read", error))?,
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

    /// Removes what is there.
    pub(crate) async fn delete(&self, key: Key) -> Result<(), StoreError> {
        match self.store.delete(&self.path(key)).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed("remove", error)),
        }
    }
}

/// Speaks with the service by the TLS settings that were given, and follows it nowhere.
#[derive(Debug)]
struct Connector(Arc<rustls::ClientConfig>);

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = reqwest::Client::builder()
            .user_agent(concat!("backplane/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT)
            .read_timeout(SILENCE)
            .tls_backend_preconfigured((*self.0).clone())
            .build()
            .map_err(|source| Error::Generic {
                store: "S3",
                source: Box::new(source),
            })?;
        Ok(HttpClient::new(client))
    }
}
