//! The parts of a path that a route names.

use std::fmt::Display;
use std::str::FromStr;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use digest_text::Sha256Text;

use super::answer::ApiError;

/// The named parts, decoded.
#[derive(Debug)]
pub(super) struct Params(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let found = RawPathParams::from_request_parts(parts, state)
            .await
            .map_err(|_| ApiError::invalid("the path is not percent-encoded UTF-8"))?;
        let pairs = found
            .iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(Self(pairs.collect()))
    }
}

impl Params {
    /// Parses a part.
    pub(super) fn get<T>(&self, name: &str) -> Result<T, ApiError>
    where
        T: FromStr,
        T::Err: Display,
    {
        let part = self.0.iter().find(|(known, _)| known == name);
        let text = part.map_or("", |(_, value)| value);
        text.parse()
            .map_err(|reason| ApiError::invalid(format!("`{name}` in the path {reason}")))
    }

    /// Parses the digest of an artifact.
    pub(super) fn digest(&self) -> Result<Sha256Text, ApiError> {
        let part = self.0.iter().find(|(known, _)| known == "digest");
        let text = part.map_or("", |(_, value)| value);
        text.parse().map_err(|_| {
            let rule = "`digest` in the path must be `sha256:` and 64 lowercase hexadecimal digits";
            ApiError::invalid(rule)
        })
    }
}
