//! The bodies of the fuzz targets, shared with the test that replays their corpora.

use crate::{Authority, Token, token_of_response};

/// Takes a token apart and examines it for a signature that it cannot cover.
pub fn token(bytes: &[u8]) {
    let Ok(token) = Token::from_der(bytes) else {
        return;
    };
    assert!(bytes.len() <= Token::MAX_BYTES, "a limit");
    if let Err(error) = token.examine(&[0; 64], None) {
        shown(&error.to_string());
    }
}

/// Reads an answer; a token in it is looked at too.
pub fn response(bytes: &[u8]) {
    match token_of_response(bytes) {
        Ok(found) => {
            let at = bytes.windows(found.len()).any(|part| part == found);
            assert!(at, "the token is a part of the answer");
            token(&found);
        }
        Err(error) => shown(&error.to_string()),
    }
}

/// Reads a certificate to be pinned; its name shows nothing hidden.
pub fn certificate(bytes: &[u8]) {
    match Authority::new("a", bytes) {
        Ok(authority) => shown(&authority.subject()),
        Err(error) => shown(&error.to_string()),
    }
}

fn shown(text: &str) {
    assert!(!bounded::text::has_control_or_format(text), "{text:?}");
}
