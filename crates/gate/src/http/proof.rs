//! `GET /install-proof`: proves to whoever knows the owner's token which build
//! answers, without telling the token to anybody else.

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::answer::{ApiError, json};
use crate::state::GateState;

const DOMAIN: &str = "agent-forge/install-ready/v2";
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

#[derive(Serialize)]
struct Proof<'a> {
    commit: &'a str,
    proof: String,
    status: &'static str,
    version: &'a str,
}

pub(super) async fn install_proof(
    State(state): State<GateState>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let challenge = query
        .as_deref()
        .and_then(|query| query.strip_prefix("challenge="))
        .filter(|challenge| is_challenge(challenge))
        .ok_or(ApiError::Plain {
            status: StatusCode::BAD_REQUEST,
            error: "invalid challenge",
            reason: None,
        })?;
    let (version, commit) = cli_shell::version()
        .split_once(' ')
        .unwrap_or(("dev", "unknown"));
    let message = [DOMAIN, challenge, version, commit].join("\0");
    let proof = Proof {
        commit,
        proof: base64url(&hmac(state.tokens().owner_key(), message.as_bytes())),
        status: "ready",
        version,
    };
    Ok(json(StatusCode::OK, &proof))
}

/// 43 characters of base64url whose last one has no stray bits: 32 bytes.
fn is_challenge(text: &str) -> bool {
    let digit = |byte: u8| ALPHABET.iter().position(|known| *known == byte);
    text.len() == 43
        && text.bytes().all(|byte| digit(byte).is_some())
        && text
            .bytes()
            .next_back()
            .and_then(digit)
            .is_some_and(|last| last.trailing_zeros() >= 2)
}

/// HMAC-SHA256 (RFC 2104) with a key of one digest.
fn hmac(key: &[u8; 32], message: &[u8]) -> [u8; 32] {
    let mut inner = [0x36_u8; 64];
    let mut outer = [0x5c_u8; 64];
    for (index, byte) in key.iter().enumerate() {
        for pad in [&mut inner, &mut outer] {
            if let Some(place) = pad.get_mut(index) {
                *place ^= byte;
            }
        }
    }
    let digest = Sha256::new()
        .chain_update(inner)
        .chain_update(message)
        .finalize();
    Sha256::new()
        .chain_update(outer)
        .chain_update(digest)
        .finalize()
        .into()
}

/// Base64 of RFC 4648 section 5 without padding.
fn base64url(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..=chunk.len() {
            let index = (group >> (18 - 6 * digit)) & 63;
            let index = usize::try_from(index).unwrap_or(0);
            text.push(char::from(ALPHABET.get(index).copied().unwrap_or(b'A')));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hmac_agrees_with_an_independent_implementation() {
        // python3: hmac.new(bytes(range(32)), b"agent", "sha256").hexdigest()
        let key: [u8; 32] = std::array::from_fn(|index| u8::try_from(index).unwrap());
        assert_eq!(hex::encode(hmac(&key, b"agent")), HMAC_AGENT);
        assert_eq!(base64url(&hmac(&key, b"agent")), HMAC_AGENT_BASE64);
    }

    #[test]
    fn base64_has_no_padding() {
        // RFC 4648 section 10.
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg"),
        ] {
            assert_eq!(base64url(bytes.as_bytes()), text);
        }
        assert_eq!(base64url(&[0xfb, 0xff]), "-_8");
    }

    #[test]
    fn a_challenge_is_exactly_32_bytes() {
        assert!(is_challenge(&base64url(&[0xff; 32])));
        assert!(!is_challenge(&base64url(&[0xff; 31])));
        assert!(!is_challenge(&base64url(&[0xff; 33])));
        assert!(!is_challenge(&"A".repeat(42)));
        assert!(!is_challenge(&format!("{}B", "A".repeat(42))));
        assert!(!is_challenge(&format!("{}+", "A".repeat(42))));
    }

    const HMAC_AGENT: &str = "bb3c797db851b4cd17cec536b30b851bfd3ea4052abf1bde424ec0d1fb1ad13b";
    const HMAC_AGENT_BASE64: &str = "uzx5fbhRtM0XzsU2swuFG_0-pAUqvxveQk7A0fsa0Ts";
}
