//! Reads the bodies of requests: JSON whole and strictly, uploads in memory that the limit bounds
//! whatever a header promises, and neither without an end.

use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::{HeaderMap, header};
use futures_util::StreamExt as _;
use strict_json::{FieldError, Fields, Layout, Limits};
use tokio::time::{Instant, timeout_at};
use web_server::body::{self, BodyError};

use super::answer::{ApiError, Code};

/// The longest JSON body.
pub(crate) const MAX_JSON: usize = 64 * 1024;
/// The deepest JSON body; none of ours needs more than one level.
const MAX_JSON_DEPTH: usize = 16;
/// For a whole JSON body.
const JSON_DEADLINE: Duration = Duration::from_secs(30);
/// For the next bytes of an upload.
const STALL: Duration = Duration::from_secs(30);
/// What is set aside before anything of an upload is there.
const FIRST_ROOM: usize = 64 * 1024;

/// Reads a JSON object; the decoder must close it with [`Fields::end`].
pub(crate) async fn json<T>(
    headers: &HeaderMap,
    body: Body,
    decode: impl FnOnce(Fields) -> Result<T, FieldError>,
) -> Result<T, ApiError> {
    plain(headers)?;
    media_type(headers, &["application/json"])?;
    let bytes = body::read(headers, body, MAX_JSON, JSON_DEADLINE)
        .await
        .map_err(|error| refused(error, MAX_JSON as u64))?;
    let limits = Limits {
        bytes: MAX_JSON,
        depth: MAX_JSON_DEPTH,
    };
    let object = strict_json::parse_object(&bytes, &limits, Layout::Spaced)
        .map_err(|error| ApiError::invalid(format!("the body is not usable: {error}")))?;
    decode(object.fields(""))
        .map_err(|error| ApiError::invalid(format!("the body is not usable: {error}")))
}

/// As [`json`], but no body at all will do as well.
pub(crate) async fn json_or_nothing<T>(
    headers: &HeaderMap,
    body: Body,
    decode: impl FnOnce(Fields) -> Result<T, FieldError>,
) -> Result<Option<T>, ApiError> {
    if body.is_end_stream() && !headers.contains_key(header::CONTENT_TYPE) {
        return Ok(None);
    }
    json(headers, body, decode).await.map(Some)
}

/// Refuses a body that announces itself as too long, before anything of it is read.
pub(crate) fn announced(headers: &HeaderMap, limit: u64) -> Result<Option<u64>, ApiError> {
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    match announced {
        Some(length) if length > limit => Err(refused(BodyError::TooLarge, limit)),
        other => Ok(other),
    }
}

/// Reads the bytes of an upload, at most `limit` of them within `whole`.
pub(crate) async fn upload(
    headers: &HeaderMap,
    body: Body,
    limit: u64,
    whole: Duration,
) -> Result<Vec<u8>, ApiError> {
    let refuse = |error| refused(error, limit);
    let announced = announced(headers, limit)?;
    let end = Instant::now() + whole;
    let mut stream = body.into_data_stream();
    let mut bytes = Vec::with_capacity(FIRST_ROOM);
    loop {
        let next = timeout_at(end.min(Instant::now() + STALL), stream.next());
        let chunk: Bytes = match next.await {
            Err(_) => return Err(refuse(BodyError::TooSlow)),
            Ok(None) => break,
            Ok(Some(Err(_))) => return Err(refuse(BodyError::Broken)),
            Ok(Some(Ok(chunk))) => chunk,
        };
        if bytes.len() as u64 + chunk.len() as u64 > limit {
            return Err(refuse(BodyError::TooLarge));
        }
        bytes.extend_from_slice(&chunk);
    }
    // What frames a message cannot be wrong here, but half an upload must never look whole.
    if announced.is_some_and(|length| length != bytes.len() as u64) {
        return Err(refuse(BodyError::Broken));
    }
    Ok(bytes)
}

/// Refuses a media type that is none of these; `None` is enough where the route says what it is.
pub(crate) fn media_type(headers: &HeaderMap, allowed: &[&str]) -> Result<(), ApiError> {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let given = match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().unwrap_or_default(),
        _ => "",
    };
    let (essence, parameters) = given.split_once(';').unwrap_or((given, ""));
    let parameters = parameters.trim();
    let utf8 = parameters.is_empty()
        || parameters.eq_ignore_ascii_case("charset=utf-8")
        || parameters.eq_ignore_ascii_case("charset=\"utf-8\"");
    let known = allowed
        .iter()
        .any(|one| one.eq_ignore_ascii_case(essence.trim()));
    if known && utf8 {
        return Ok(());
    }
    let allowed = allowed.join("` or `");
    Err(ApiError::new(
        Code::UnsupportedMediaType,
        format!("the body must have the content type `{allowed}`"),
    ))
}

/// Refuses bodies that are encoded or a part of something.
pub(crate) fn plain(headers: &HeaderMap) -> Result<(), ApiError> {
    let encoded = headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .any(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"));
    if encoded {
        return Err(ApiError::new(
            Code::UnsupportedMediaType,
            "the body must not have a content encoding",
        ));
    }
    if headers.contains_key(header::CONTENT_RANGE) {
        return Err(ApiError::invalid("a part of something cannot be sent"));
    }
    Ok(())
}

fn refused(error: BodyError, limit: u64) -> ApiError {
    match error {
        BodyError::TooLarge => ApiError::new(
            Code::LimitExceeded,
            format!("the body is longer than the {limit} bytes allowed here"),
        ),
        BodyError::TooSlow => ApiError::new(Code::Timeout, "the body did not arrive in time"),
        BodyError::Broken => ApiError::invalid("the body broke off"),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use futures_util::stream;

    use super::*;

    type Chunk = Result<Bytes, std::io::Error>;

    fn announcing(length: u64) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_LENGTH, length.into());
        headers
    }

    async fn five(headers: &HeaderMap, body: Body) -> Result<Vec<u8>, Code> {
        let whole = Duration::from_secs(300);
        upload(headers, body, 5, whole)
            .await
            .map_err(|error| error.code())
    }

    #[tokio::test]
    async fn the_limit_passes_and_one_more_fails_whatever_is_announced() {
        let none = HeaderMap::new();
        assert_eq!(five(&none, Body::from("12345")).await.unwrap(), b"12345");
        assert_eq!(
            five(&none, Body::from("123456")).await,
            Err(Code::LimitExceeded)
        );
        let unread = Body::from_stream(stream::pending::<Chunk>());
        assert_eq!(five(&announcing(6), unread).await, Err(Code::LimitExceeded));
        assert_eq!(
            five(&announcing(3), Body::from("123456")).await,
            Err(Code::LimitExceeded)
        );
    }

    #[tokio::test]
    async fn half_a_body_is_none() {
        let broken = stream::iter([Ok(Bytes::from("12")), Err(std::io::Error::other("cut"))]);
        assert_eq!(
            five(&HeaderMap::new(), Body::from_stream(broken)).await,
            Err(Code::InvalidRequest)
        );
        assert_eq!(
            five(&announcing(4), Body::from("12")).await,
            Err(Code::InvalidRequest)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_upload_may_neither_stand_still_nor_crawl() {
        let start = Instant::now();
        let stuck = Body::from_stream(stream::pending::<Chunk>());
        assert_eq!(five(&HeaderMap::new(), stuck).await, Err(Code::Timeout));
        assert_eq!(start.elapsed(), STALL);
        let start = Instant::now();
        let crawl = stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_secs(20)).await;
            Some((Ok::<_, std::io::Error>(Bytes::new()), ()))
        });
        let crawl = Body::from_stream(crawl);
        assert_eq!(five(&HeaderMap::new(), crawl).await, Err(Code::Timeout));
        assert_eq!(start.elapsed().as_secs(), 300);
    }

    #[test]
    fn content_types_are_compared_without_case_and_parameters() {
        let judge = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(value));
            media_type(&headers, &["application/json"]).is_ok()
        };
        for good in [
            "application/json",
            "Application/JSON; charset=UTF-8",
            "application/json;charset=\"utf-8\"",
        ] {
            assert!(judge(good), "{good}");
        }
        for bad in [
            "",
            "text/json",
            "application/json; charset=latin1",
            "application/jsonx",
        ] {
            assert!(!judge(bad), "{bad}");
        }
        assert!(media_type(&HeaderMap::new(), &["application/json"]).is_err());
    }
}
