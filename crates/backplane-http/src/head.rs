//! What the head of an answer says: how long to wait, which bytes it has, and in what form.

use std::time::Duration;

use backplane_client::retry_after;
use jiff::Timestamp;
use reqwest::header::{
    ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_RANGE, ETAG, HeaderMap, HeaderName, RETRY_AFTER,
};

/// The longest entity tag that is remembered.
const LONGEST_TAG: usize = 256;

/// Returns the value of a header that is there once; twice is as good as not at all.
pub(crate) fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

/// Returns the wait that is asked for.
pub(crate) fn wait(headers: &HeaderMap, wall: Timestamp) -> Option<Duration> {
    retry_after(only(headers, &RETRY_AFTER)?, wall)
}

/// Tells whether the body is in a form of its own, which nobody asked for.
pub(crate) fn is_encoded(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(CONTENT_ENCODING).iter();
    !codings.all(|coding| {
        let coding = coding.as_bytes().trim_ascii();
        coding.is_empty() || coding.eq_ignore_ascii_case(b"identity")
    })
}

/// Returns the tag under which the rest of the body can be asked for, if it can.
pub(crate) fn resumable(headers: &HeaderMap) -> Option<String> {
    let units = only(headers, &ACCEPT_RANGES)?;
    let bytes = units
        .split(',')
        .any(|unit| unit.trim().eq_ignore_ascii_case("bytes"));
    let tag = only(headers, &ETAG)?.trim();
    (bytes && is_strong(tag)).then(|| tag.to_owned())
}

/// Tells whether it is an entity tag that stands for the exact bytes (RFC 9110 8.8.3).
pub(crate) fn is_strong(tag: &str) -> bool {
    let inside = tag
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    inside.is_some_and(|inside| {
        tag.len() <= LONGEST_TAG && inside.bytes().all(|b| b.is_ascii_graphic() && b != b'"')
    })
}

/// Returns how long the whole is if the answer has exactly the bytes from `from` to the end of what
/// has this tag.
pub(crate) fn rest_of(headers: &HeaderMap, from: usize, tag: &str) -> Option<usize> {
    if headers.contains_key(ETAG) && only(headers, &ETAG)?.trim() != tag {
        return None;
    }
    let range = only(headers, &CONTENT_RANGE)?.strip_prefix("bytes ")?;
    let (span, whole) = range.split_once('/')?;
    let (first, last) = span.split_once('-')?;
    let whole = number(whole)?;
    let fits = number(first)? == from && number(last)?.checked_add(1)? == whole && from < whole;
    fits.then_some(whole)
}

/// Digits alone: `parse` would take a sign.
fn number(text: &str) -> Option<usize> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_range_is_the_rest_of_the_same_bytes_or_none() {
        let rest = |range| rest_of(&headers(&[("content-range", range)]), 4, "\"a\"");
        assert_eq!(rest("bytes 4-9/10"), Some(10));
        for other in [
            "bytes 3-9/10",
            "bytes 5-9/10",
            "bytes 4-8/10",
            "bytes 4-10/10",
            "bytes 4-9/*",
            "bytes */10",
            "bytes +4-9/10",
            "bytes 4-9",
            "items 4-9/10",
            "bytes 4-3/4",
            "bytes 4-18446744073709551615/18446744073709551616",
            "",
        ] {
            assert_eq!(rest(other), None, "{other}");
        }
        let tagged = |tag| headers(&[("content-range", "bytes 4-9/10"), ("etag", tag)]);
        assert_eq!(rest_of(&tagged("\"a\""), 4, "\"a\""), Some(10));
        assert_eq!(rest_of(&tagged("\"b\""), 4, "\"a\""), None);
        let twice = [
            ("content-range", "bytes 4-9/10"),
            ("content-range", "bytes 4-9/10"),
        ];
        assert_eq!(rest_of(&headers(&twice), 4, "\"a\""), None);
    }

    #[test]
    fn only_a_strong_tag_of_bytes_can_be_resumed() {
        let of = |ranges, tag| resumable(&headers(&[("accept-ranges", ranges), ("etag", tag)]));
        assert_eq!(of("bytes", "\"a\"").as_deref(), Some("\"a\""));
        assert_eq!(of("none, Bytes", "\"\"").as_deref(), Some("\"\""));
        for (ranges, tag) in [
            ("none", "\"a\""),
            ("bytes", "W/\"a\""),
            ("bytes", "a"),
            ("bytes", "\""),
            ("bytes", "\"a\"b\""),
            ("bytes", "\"a b\""),
        ] {
            assert_eq!(of(ranges, tag), None, "{ranges} {tag}");
        }
        assert_eq!(resumable(&headers(&[("etag", "\"a\"")])), None);
    }

    #[test]
    fn identity_is_the_one_coding() {
        assert!(!is_encoded(&headers(&[])));
        assert!(!is_encoded(&headers(&[("content-encoding", "Identity")])));
        for coding in ["gzip", "identity, gzip", "br", "x"] {
            assert!(
                is_encoded(&headers(&[("content-encoding", coding)])),
                "{coding}"
            );
        }
        let both = [
            ("content-encoding", "identity"),
            ("content-encoding", "gzip"),
        ];
        assert!(is_encoded(&headers(&both)));
    }
}
