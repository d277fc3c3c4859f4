//! Where artifacts are kept.

use std::fmt;

use bytes::Bytes;
use futures_util::stream::BoxStream;

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
    pub tls: std::sync::Arc<rustls::ClientConfig>,
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
