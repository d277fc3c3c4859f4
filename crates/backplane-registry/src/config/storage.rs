//! Where artifacts are kept: in the registry's folder, or in a store that speaks S3.

use strict_json::{FieldError, Fields};

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
            prefix: optional(fields, "prefix")?,
            access_key_id: SecretSource::read(fields, "access_key_id")?,
            secret_access_key: SecretSource::read(fields, "secret_access_key")?,
        };
        if let Some(endpoint) = &s3.endpoint
            && !endpoint.starts_with("https://")
            && !endpoint.starts_with("http://")
        {
            let at = fields.path_of("endpoint");
            return Err(FieldError::invalid(
                at,
                "must begin with `https://` or `http://`",
            ));
        }
        Ok(s3)
    }
}
