//! Where artifacts are kept: in the registry's folder, or in a store that speaks S3.

use std::path::PathBuf;

use axum::http::Uri;
use strict_json::{FieldError, Fields};
use tls_files::is_loopback_host;

use super::access::SecretSource;
use super::bounded_text;

/// Where artifacts are kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Artifacts {
    /// Below the root.
    #[default]
    Disk,
    /// In a bucket.
    S3(Box<S3>),
}

/// A bucket and how to reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3 {
    /// Its name.
    pub bucket: String,
    /// Its region.
    pub region: String,
    /// Another service than that of the region.
    pub endpoint: Option<String>,
    /// The only authorities to trust, instead of those of the system.
    pub ca_file: Option<PathBuf>,
    /// What the names of artifacts begin with there.
    pub prefix: Option<String>,
    /// Who asks.
    pub access_key_id: SecretSource,
    /// And proves it.
    pub secret_access_key: SecretSource,
}

impl Artifacts {
    pub(super) fn read(fields: &mut Fields) -> Result<Self, FieldError> {
        let Some(mut fields) = fields.opt_object("artifacts")? else {
            return Ok(Self::default());
        };
        let kind = fields.text("kind")?;
        let artifacts = match kind.as_str() {
            "disk" => Self::Disk,
            "s3" => Self::S3(Box::new(S3::read(&mut fields)?)),
            _ => {
                let at = fields.path_of("kind");
                return Err(FieldError::invalid(at, "must be `disk` or `s3`"));
            }
        };
        fields.end()?;
        Ok(artifacts)
    }
}

impl S3 {
    fn read(fields: &mut Fields) -> Result<Self, FieldError> {
        let optional = |fields: &mut Fields, name: &str| {
            fields
                .contains(name)
                .then(|| bounded_text(fields, name))
                .transpose()
        };
        let s3 = Self {
            bucket: bounded_text(fields, "bucket")?,
            region: bounded_text(fields, "region")?,
            endpoint: optional(fields, "endpoint")?,
            ca_file: optional(fields, "ca_file")?.map(PathBuf::from),
            prefix: optional(fields, "prefix")?,
            access_key_id: SecretSource::read(fields, "access_key_id")?,
            secret_access_key: SecretSource::read(fields, "secret_access_key")?,
        };
        let named = registry_store::S3::is_bucket(&s3.bucket);
        check(fields, "bucket", named, registry_store::S3::BUCKET_RULE)?;
        let named = registry_store::S3::is_region(&s3.region);
        check(fields, "region", named, registry_store::S3::REGION_RULE)?;
        let prefix = s3.prefix.as_deref().unwrap_or_default();
        let named = registry_store::S3::is_prefix(prefix);
        check(fields, "prefix", named, registry_store::S3::PREFIX_RULE)?;
        let plain_allowed = fields.opt_bool("insecure_endpoint")?.unwrap_or(false);
        if let Some(endpoint) = &s3.endpoint {
            check_endpoint(endpoint, plain_allowed)
                .map_err(|rule| FieldError::invalid(fields.path_of("endpoint"), rule))?;
        }
        Ok(s3)
    }
}

fn check(fields: &Fields, name: &str, holds: bool, rule: &'static str) -> Result<(), FieldError> {
    if holds {
        return Ok(());
    }
    Err(FieldError::invalid(fields.path_of(name), rule))
}

fn check_endpoint(endpoint: &str, plain_allowed: bool) -> Result<(), &'static str> {
    const SHAPE: &str = "must be `https://` or `http://` with a host and perhaps a path";
    let address: Uri = endpoint.parse().map_err(|_| SHAPE)?;
    let host = address
        .host()
        .filter(|host| !host.is_empty())
        .ok_or(SHAPE)?;
    let bare = address.query().is_none() && !endpoint.contains(['@', '#']);
    match address.scheme_str() {
        Some("https") if bare => Ok(()),
        Some("http") if bare && (plain_allowed || is_loopback_host(host)) => Ok(()),
        Some("http") if bare => {
            Err("is plain HTTP to another machine; use `https://`, or set `insecure_endpoint`")
        }
        _ => Err(SHAPE),
    }
}
