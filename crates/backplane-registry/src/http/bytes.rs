//! Answers to a GET or HEAD of bytes that never change under their name: tag, conditions, ranges.

use std::ops::Range;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use digest_text::Sha256Text;

use super::answer::{ApiError, Code};
use super::range::{Condition, Part, condition, part};

/// What is served.
#[derive(Debug, Clone, Copy)]
pub(super) struct Representation {
    /// What the tag is made of.
    pub(super) digest: Sha256Text,
    /// How many bytes there are.
    pub(super) length: u64,
    /// The media type.
    pub(super) media_type: &'static str,
    /// Whether a shared cache may keep it.
    pub(super) public: bool,
}

/// What is to be sent.
#[derive(Debug)]
pub(super) enum Reply {
    /// No bytes: the answer is whole.
    Done(Response),
    /// These bytes, under this head.
    Send(Range<u64>, Box<Response>),
}

impl Representation {
    /// Judges the request.
    pub(super) fn answer(&self, method: &Method, headers: &HeaderMap) -> Result<Reply, ApiError> {
        let tag = format!("\"{}\"", self.digest);
        match condition(headers, &tag) {
            Condition::Failed => {
                let message = "the bytes have another tag than `if-match` says";
                return Err(ApiError::new(Code::PreconditionFailed, message));
            }
            Condition::NotModified => {
                let mut answer = self.head(StatusCode::NOT_MODIFIED, &tag)?;
                // The router would say 0 to a HEAD, which is the length of something else.
                if *method == Method::HEAD {
                    let fields = answer.headers_mut();
                    fields.insert(header::CONTENT_LENGTH, self.length.into());
                }
                return Ok(Reply::Done(answer));
            }
            Condition::Holds => {}
        }
        // A range is a range of a GET.
        let part = match *method {
            Method::GET => part(headers, &tag, self.length),
            _ => Part::Whole,
        };
        let (status, range) = match part {
            Part::Whole => (StatusCode::OK, 0..self.length),
            Part::Bytes { first, last } => (StatusCode::PARTIAL_CONTENT, first..last + 1),
            Part::Unsatisfiable => return Err(self.unsatisfiable()),
        };
        let mut answer = self.head(status, &tag)?;
        let fields = answer.headers_mut();
        if status == StatusCode::PARTIAL_CONTENT {
            let (first, last) = (range.start, range.end - 1);
            let shown = format!("bytes {first}-{last}/{}", self.length);
            fields.insert(header::CONTENT_RANGE, value(shown)?);
        }
        fields.insert(header::CONTENT_LENGTH, (range.end - range.start).into());
        let media_type = HeaderValue::from_static(self.media_type);
        fields.insert(header::CONTENT_TYPE, media_type);
        Ok(match *method {
            Method::HEAD => Reply::Done(answer),
            _ => Reply::Send(range, Box::new(answer)),
        })
    }

    fn head(&self, status: StatusCode, tag: &str) -> Result<Response, ApiError> {
        let mut answer = (status, Body::empty()).into_response();
        let caching = match self.public {
            true => "public, max-age=31536000, immutable",
            false => "private, max-age=31536000, immutable",
        };
        let fields = answer.headers_mut();
        fields.insert(header::ETAG, value(tag.to_owned())?);
        fields.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
        fields.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        Ok(answer)
    }

    fn unsatisfiable(&self) -> ApiError {
        let message = format!("there are {} bytes, and none of the range", self.length);
        let refusal = ApiError::new(Code::RangeNotSatisfiable, message);
        match value(format!("bytes */{}", self.length)) {
            Ok(length) => refusal.with(header::CONTENT_RANGE, length),
            Err(failed) => failed,
        }
    }
}

fn value(text: String) -> Result<HeaderValue, ApiError> {
    HeaderValue::try_from(text).map_err(|error| ApiError::internal(&error))
}
