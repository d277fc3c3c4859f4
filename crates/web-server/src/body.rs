//! Reads request bodies up to a limit and within a time. A body that announces
//! itself as too large is refused before a byte of it is read.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use futures_util::StreamExt as _;

/// Why a body was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// It is or will be longer than the limit.
    #[error("the body is larger than allowed")]
    TooLarge,
    /// It did not end by the deadline.
    #[error("the body did not arrive in time")]
    TooSlow,
    /// The peer went away, or framed it wrongly.
    #[error("the body broke off")]
    Broken,
}

/// The whole body: `limit` bytes pass, one more fails.
///
/// # Errors
/// It is too long, too slow, or ends early.
pub async fn read(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    deadline: Duration,
) -> Result<Bytes, BodyError> {
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(BodyError::TooLarge);
    }
    tokio::time::timeout(deadline, collect(body, limit))
        .await
        .unwrap_or(Err(BodyError::TooSlow))
}

async fn collect(body: Body, limit: usize) -> Result<Bytes, BodyError> {
    let mut stream = body.into_data_stream();
    let mut first = Bytes::new();
    let mut rest = Vec::new();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|_| BodyError::Broken)?;
        if first.len() + rest.len() + chunk.len() > limit {
            return Err(BodyError::TooLarge);
        }
        if first.is_empty() {
            first = chunk;
        } else {
            rest.extend_from_slice(&chunk);
        }
    }
    if rest.is_empty() {
        return Ok(first);
    }
    Ok([&first[..], &rest].concat().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read_body(body: Body, limit: usize) -> Result<Bytes, BodyError> {
        read(&HeaderMap::new(), body, limit, Duration::from_secs(30)).await
    }

    #[tokio::test]
    async fn the_limit_passes_and_one_more_fails() {
        let chunks = |count: usize| {
            let chunks = (0..count).map(|_| Ok::<_, std::io::Error>("ab"));
            Body::from_stream(futures_util::stream::iter(chunks))
        };
        assert_eq!(read_body(chunks(5), 10).await.unwrap(), "ababababab");
        assert_eq!(read_body(chunks(5), 9).await, Err(BodyError::TooLarge));
        assert_eq!(read_body(Body::empty(), 0).await.unwrap(), "");
    }

    #[tokio::test]
    async fn an_announced_excess_is_refused_unread() {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_LENGTH, 11.into());
        let unread =
            Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>());
        let verdict = read(&headers, unread, 10, Duration::from_secs(30)).await;
        assert_eq!(verdict, Err(BodyError::TooLarge));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_ends_is_given_up() {
        let stuck =
            Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>());
        assert_eq!(read_body(stuck, 10).await, Err(BodyError::TooSlow));
        let broken = futures_util::stream::iter([Err::<Bytes, _>(std::io::Error::other("cut"))]);
        assert_eq!(
            read_body(Body::from_stream(broken), 10).await,
            Err(BodyError::Broken)
        );
    }
}
