//! The server's half of the opening handshake (RFC 6455 section 4.2): no
//! subprotocol and no extension is ever selected.

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version, header};
use axum::response::{IntoResponse as _, Response};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// Why a request cannot become a WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoUpgrade {
    /// It does not ask for one.
    NotAsked,
    /// It asks for another version of the protocol.
    Version,
    /// Its key is not 16 bytes in base64.
    Key,
}

/// Judges the head of a request and returns the answer to its key.
pub(super) fn accept_key(version: Version, headers: &HeaderMap) -> Result<String, NoUpgrade> {
    let asked = version == Version::HTTP_11
        && has_token(headers, &header::CONNECTION, "upgrade")
        && has_token(headers, &header::UPGRADE, "websocket");
    if !asked {
        return Err(NoUpgrade::NotAsked);
    }
    if single(headers, &header::SEC_WEBSOCKET_VERSION) != Some("13") {
        return Err(NoUpgrade::Version);
    }
    let key = single(headers, &header::SEC_WEBSOCKET_KEY).ok_or(NoUpgrade::Key)?;
    let digits = key.strip_suffix("==").ok_or(NoUpgrade::Key)?;
    let base64 = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    if digits.len() != 22 || !digits.bytes().all(base64) {
        return Err(NoUpgrade::Key);
    }
    Ok(derive_accept_key(key.as_bytes()))
}

/// The answer that ends HTTP on the connection.
pub(super) fn switching(accept_key: &str) -> Response {
    let mut response = StatusCode::SWITCHING_PROTOCOLS.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(value) = HeaderValue::from_str(accept_key) {
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, value);
    }
    response
}

impl NoUpgrade {
    pub(super) fn into_response(self) -> Response {
        match self {
            Self::NotAsked => {
                (StatusCode::BAD_REQUEST, "a WebSocket upgrade is expected\n").into_response()
            }
            Self::Key => (StatusCode::BAD_REQUEST, "invalid Sec-WebSocket-Key\n").into_response(),
            Self::Version => (
                StatusCode::UPGRADE_REQUIRED,
                [(header::SEC_WEBSOCKET_VERSION, "13")],
                "WebSocket version 13 is expected\n",
            )
                .into_response(),
        }
    }
}

fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|part| part.trim().eq_ignore_ascii_case(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(change: impl FnOnce(&mut HeaderMap)) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(
            header::CONNECTION,
            HeaderValue::from_static("keep-alive, Upgrade"),
        );
        headers.insert(header::UPGRADE, HeaderValue::from_static("WebSocket"));
        headers.insert(
            header::SEC_WEBSOCKET_VERSION,
            HeaderValue::from_static("13"),
        );
        headers.insert(
            header::SEC_WEBSOCKET_KEY,
            HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ=="),
        );
        change(&mut headers);
        headers
    }

    #[test]
    fn the_key_of_the_rfc_gets_the_answer_of_the_rfc() {
        let accept = accept_key(Version::HTTP_11, &headers(|_| {})).unwrap();
        assert_eq!(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        let response = switching(&accept);
        assert_eq!(response.status(), 101);
        assert!(
            !response
                .headers()
                .contains_key(header::SEC_WEBSOCKET_EXTENSIONS)
        );
        assert!(
            !response
                .headers()
                .contains_key(header::SEC_WEBSOCKET_PROTOCOL)
        );
    }

    #[test]
    fn what_asks_wrongly_is_told_so() {
        let judge = |change: fn(&mut HeaderMap)| accept_key(Version::HTTP_11, &headers(change));
        let not_asked = Err(NoUpgrade::NotAsked);
        assert_eq!(accept_key(Version::HTTP_10, &headers(|_| {})), not_asked);
        assert_eq!(judge(|h| drop(h.remove(header::UPGRADE))), not_asked);
        assert_eq!(judge(|h| drop(h.remove(header::CONNECTION))), not_asked);
        let version = |h: &mut HeaderMap| drop(h.insert(header::SEC_WEBSOCKET_VERSION, 8.into()));
        assert_eq!(judge(version), Err(NoUpgrade::Version));
        assert_eq!(
            judge(|h| drop(h.remove(header::SEC_WEBSOCKET_KEY))),
            Err(NoUpgrade::Key)
        );
        let short = |h: &mut HeaderMap| {
            drop(h.insert(
                header::SEC_WEBSOCKET_KEY,
                HeaderValue::from_static("c2hvcnQ="),
            ));
        };
        assert_eq!(judge(short), Err(NoUpgrade::Key));
    }
}
