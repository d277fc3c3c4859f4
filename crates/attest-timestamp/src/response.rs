//! What an authority answers.

use bounded::text::visible;
use der::{Decode as _, Encode as _};

use crate::asn1::{PkiStatusInfo, TimeStampResp};
use crate::error::ResponseError;

/// The longest answer that is looked at.
pub const MAX_RESPONSE_BYTES: usize = 1024 * 1024;
/// How much of an authority's own words is shown.
const WORDS: usize = 256;

/// Takes the token out of an authority's answer, in DER. Nothing about it is judged.
///
/// # Errors
/// The answer is too long or none of the protocol, or the authority rejects the request.
pub fn token_of_response(bytes: &[u8]) -> Result<Vec<u8>, ResponseError> {
    if bytes.len() > MAX_RESPONSE_BYTES {
        return Err(ResponseError::TooLong {
            bytes: bytes.len(),
            limit: MAX_RESPONSE_BYTES,
        });
    }
    let malformed = |error: der::Error| ResponseError::Encoding(error.to_string());
    let response = TimeStampResp::from_der(bytes).map_err(malformed)?;
    let granted = response.status.status <= 1;
    match (granted, &response.token) {
        (true, Some(token)) => token.to_der().map_err(malformed),
        (true, None) => Err(ResponseError::NoToken),
        (false, Some(_)) => Err(ResponseError::Contradiction),
        (false, None) => Err(ResponseError::Rejected {
            status: name(response.status.status),
            detail: detail(&response.status),
        }),
    }
}

fn name(status: u32) -> &'static str {
    match status {
        2 => "rejection",
        3 => "waiting",
        4 => "revocation warning",
        5 => "revocation notification",
        _ => "an unknown status",
    }
}

fn detail(status: &PkiStatusInfo) -> String {
    let mut parts: Vec<&str> = status.fail_info.iter().flat_map(failures).collect();
    let words = status.status_string.as_deref().unwrap_or_default();
    let words: Vec<String> = words.iter().take(4).map(|text| shown(text)).collect();
    parts.extend(words.iter().map(String::as_str));
    match parts.as_slice() {
        [] => String::new(),
        parts => format!(": {}", parts.join("; ")),
    }
}

fn shown(text: &str) -> String {
    visible(&text.chars().take(WORDS).collect::<String>())
}

fn failures(bits: &der::asn1::BitString) -> Vec<&'static str> {
    let known = [
        (0, "the algorithm is not supported"),
        (2, "the request is not permitted"),
        (5, "the request is malformed"),
        (14, "its clock is not available"),
        (15, "the policy is not supported"),
        (16, "an extension is not supported"),
        (17, "additional information is not available"),
        (25, "it failed"),
    ];
    let set: Vec<bool> = bits.bits().collect();
    let known = known.into_iter();
    known
        .filter(|(bit, _)| set.get(*bit) == Some(&true))
        .map(|(_, name)| name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u8, rest: &[u8]) -> Vec<u8> {
        let info = [2, 1, status];
        let length = u8::try_from(info.len() + rest.len()).unwrap();
        let body = [&[0x30, length], &info[..], rest].concat();
        [&[0x30, u8::try_from(body.len()).unwrap()], &body[..]].concat()
    }

    #[test]
    fn a_granted_answer_gives_its_token_as_it_is() {
        for status in [0, 1] {
            let bytes = [0x30, 8, 0x30, 3, 2, 1, status, 0x30, 1, 0];
            // The token is not looked at, but it is one value in DER.
            assert!(token_of_response(&bytes).is_ok());
            let token = [0x30, 3, 2, 1, 9];
            let bytes = [&[0x30, 10, 0x30, 3, 2, 1, status], &token[..]].concat();
            assert_eq!(token_of_response(&bytes).unwrap(), token);
            assert_eq!(
                token_of_response(&[0x30, 5, 0x30, 3, 2, 1, status]),
                Err(ResponseError::NoToken)
            );
        }
    }

    #[test]
    fn a_rejection_says_why() {
        let says = |bytes: &[u8]| token_of_response(bytes).unwrap_err().to_string();
        let prefix = "the authority rejected the request: ";
        assert_eq!(says(&answer(2, &[])), format!("{prefix}rejection"));
        assert_eq!(says(&answer(3, &[])), format!("{prefix}waiting"));
        assert_eq!(says(&answer(99, &[])), format!("{prefix}an unknown status"));
        let bad_algorithm = [3, 2, 7, 0x80];
        assert_eq!(
            says(&answer(2, &bad_algorithm)),
            format!("{prefix}rejection: the algorithm is not supported")
        );
        let words = [0x30, 6, 0x0c, 4, b'n', b'o', 0x1b, b'!'];
        assert_eq!(
            says(&answer(2, &words)),
            format!("{prefix}rejection: no\\u{{1b}}!")
        );
        assert_eq!(
            token_of_response(&[0x30, 10, 0x30, 3, 2, 1, 2, 0x30, 3, 2, 1, 9]),
            Err(ResponseError::Contradiction)
        );
    }

    #[test]
    fn other_bytes_are_no_answer() {
        let whole = [0x30, 10, 0x30, 3, 2, 1, 0, 0x30, 3, 2, 1, 9];
        for end in 0..whole.len() {
            assert!(token_of_response(&whole[..end]).is_err(), "{end}");
        }
        let mut trailing = whole.to_vec();
        trailing.push(0);
        assert!(token_of_response(&trailing).is_err());
        assert!(token_of_response(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]).is_err());
        let long = vec![0x30; MAX_RESPONSE_BYTES + 1];
        assert!(matches!(
            token_of_response(&long),
            Err(ResponseError::TooLong { .. })
        ));
    }
}
