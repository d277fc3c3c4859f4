//! Calls that carry bytes which are no JSON: artifacts that are published, and receipts.

use digest_text::Sha256Text;
use strict_json::{Json, Object};

use crate::address::LONGEST_URL;
use crate::answer;
use crate::auth::Header;
use crate::call::Call;
use crate::client::Client;
use crate::error::{AddressError, AnswerError, ClientError};
use crate::transport::{MAX_JSON_BYTES, Method, Request};

/// The longest receipt, sent or received.
pub const MAX_RECEIPT_BYTES: usize = 16 * 1024 * 1024;

const JSON: &str = "application/json";
const ARTIFACT: &str = "application/x-tar+gzip";
const YAML: &str = "application/yaml";
const RECEIPT: &str = "application/yaml, application/octet-stream";

impl<T> Client<T> {
    /// Makes the call that sends an artifact. Its digest is taken here, and an answer that
    /// confirms another one is refused.
    pub fn upload_call(&self, artifact: Vec<u8>) -> Result<Call<Object>, ClientError> {
        let digest = Sha256Text::of(&artifact);
        let rest = format!("/artifacts/{digest}");
        let request = self.put(&rest, ARTIFACT, artifact, self.longest_artifact())?;
        Ok(Call::new(request, move |answer, _| {
            let object = answer::object(answer)?;
            match object.get("artifact_digest") {
                Some(Json::Text(confirmed)) if *confirmed == digest.to_string() => Ok(object),
                _ => Err(AnswerError::OtherArtifact.into()),
            }
        }))
    }

    /// Makes the call for the receipt beside an artifact. Whether it is to be trusted is not
    /// decided here.
    pub fn receipt_call(&self, digest: &str) -> Result<Call<Vec<u8>>, ClientError> {
        let digest: Sha256Text = digest.parse()?;
        let request = Request {
            method: Method::Get,
            url: self.file_url(&format!("/artifacts/{digest}/receipt"))?,
            headers: self.with_credentials(vec![Header::own("accept", RECEIPT)])?,
            body: None,
            answer_limit: MAX_RECEIPT_BYTES,
            refusal_limit: 0,
        };
        Ok(Call::new(request, |answer, _| {
            answer::bytes(answer, MAX_RECEIPT_BYTES)
        }))
    }

    /// Makes the call that puts a receipt beside an artifact.
    pub fn put_receipt_call(
        &self,
        digest: &str,
        receipt: Vec<u8>,
    ) -> Result<Call<Object>, ClientError> {
        let digest: Sha256Text = digest.parse()?;
        let rest = format!("/artifacts/{digest}/receipt");
        let request = self.put(&rest, YAML, receipt, MAX_RECEIPT_BYTES)?;
        Ok(Call::new(request, |answer, _| answer::object(answer)))
    }

    fn put(
        &self,
        rest: &str,
        content_type: &str,
        body: Vec<u8>,
        limit: usize,
    ) -> Result<Request, ClientError> {
        let actual = body.len();
        if actual > limit {
            return Err(ClientError::BodyTooLong { limit, actual });
        }
        let own = vec![
            Header::own("accept", JSON),
            Header::own("content-type", content_type),
        ];
        Ok(Request {
            method: Method::Put,
            url: self.file_url(rest)?,
            headers: self.with_credentials(own)?,
            body: Some(body),
            answer_limit: MAX_JSON_BYTES,
            refusal_limit: 0,
        })
    }

    fn file_url(&self, rest: &str) -> Result<String, ClientError> {
        let url = self.base.endpoint(rest);
        Ok(url.ok_or(AddressError::TooLong { limit: LONGEST_URL })?)
    }
}
