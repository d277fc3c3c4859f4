//! Conditions and ranges of RFC 9110 for bytes that never change and have one strong tag.

use axum::http::{HeaderMap, header};

/// The part of the bytes that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of them.
    Whole,
    /// From the first to the last of these, both included.
    Bytes {
        /// The first.
        first: u64,
        /// The last.
        last: u64,
    },
    /// A part that the bytes do not have.
    Unsatisfiable,
}

/// How the conditions of a request judge a representation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    /// The method is carried out.
    Holds,
    /// The client has it already.
    NotModified,
    /// The client wants another one.
    Failed,
}

/// Judges `If-Match` and `If-None-Match` against a strong tag, its quotes included.
pub(crate) fn condition(headers: &HeaderMap, tag: &str) -> Condition {
    let mentions = |name: header::HeaderName, weak_too: bool| {
        let values: Vec<_> = headers.get_all(name).iter().collect();
        let tags = || {
            values
                .iter()
                .flat_map(|value| value.to_str().unwrap_or_default().split(','))
        };
        let matches = tags().map(str::trim).any(|one| {
            one == "*" || one == tag || (weak_too && one.strip_prefix("W/") == Some(tag))
        });
        (!values.is_empty()).then_some(matches)
    };
    if mentions(header::IF_MATCH, false) == Some(false) {
        return Condition::Failed;
    }
    if mentions(header::IF_NONE_MATCH, true) == Some(true) {
        return Condition::NotModified;
    }
    Condition::Holds
}

/// Which part of `length` bytes a GET asks for. Ranges that are malformed, several, of another
/// unit or for other bytes (`If-Range`) mean the whole.
pub(crate) fn part(headers: &HeaderMap, tag: &str, length: u64) -> Part {
    let mut values = headers.get_all(header::RANGE).iter();
    let (Some(range), None) = (values.next(), values.next()) else {
        return Part::Whole;
    };
    // Only the tag can be compared strongly; there are no dates here.
    if let Some(condition) = headers.get(header::IF_RANGE)
        && condition.as_bytes() != tag.as_bytes()
    {
        return Part::Whole;
    }
    range
        .to_str()
        .ok()
        .and_then(|text| satisfy(text, length))
        .unwrap_or(Part::Whole)
}

fn satisfy(text: &str, length: u64) -> Option<Part> {
    let (unit, set) = text.split_once('=')?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = set.trim_matches([' ', '\t']).split_once('-')?;
    match (first, last) {
        ("", suffix) => {
            let suffix = position(suffix)?;
            if suffix == 0 || length == 0 {
                return Some(Part::Unsatisfiable);
            }
            Some(Part::Bytes {
                first: length.saturating_sub(suffix),
                last: length - 1,
            })
        }
        (first, last) => {
            let first = position(first)?;
            let last = match last {
                "" => u64::MAX,
                last => position(last)?,
            };
            if last < first {
                return None;
            }
            if first >= length {
                return Some(Part::Unsatisfiable);
            }
            Some(Part::Bytes {
                first,
                last: last.min(length - 1),
            })
        }
    }
}

/// Digits alone; more than 64 bits hold is beyond the end of anything.
fn position(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use test_case::test_case;

    use super::*;

    const TAG: &str = "\"sha256:aa\"";

    fn headers(pairs: &[(header::HeaderName, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name.clone(), HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test_case("bytes=0-0", Part::Bytes { first: 0, last: 0 })]
    #[test_case("bytes=2-5", Part::Bytes { first: 2, last: 5 })]
    #[test_case("BYTES=2-", Part::Bytes { first: 2, last: 9 })]
    #[test_case("bytes=9-99999999999999999999999", Part::Bytes { first: 9, last: 9 })]
    #[test_case("bytes=-3", Part::Bytes { first: 7, last: 9 })]
    #[test_case("bytes=-99", Part::Bytes { first: 0, last: 9 })]
    #[test_case("bytes=-0", Part::Unsatisfiable)]
    #[test_case("bytes=10-", Part::Unsatisfiable)]
    #[test_case("bytes=99999999999999999999999-", Part::Unsatisfiable)]
    #[test_case("bytes=5-2", Part::Whole)]
    #[test_case("bytes=0-1,3-4", Part::Whole)]
    #[test_case("bytes=", Part::Whole)]
    #[test_case("bytes=-", Part::Whole)]
    #[test_case("bytes=+1-2", Part::Whole)]
    #[test_case("bytes= 1 - 2", Part::Whole)]
    #[test_case("lines=1-2", Part::Whole)]
    #[test_case("nonsense", Part::Whole)]
    fn a_range_of_ten_bytes(text: &str, wanted: Part) {
        assert_eq!(part(&headers(&[(header::RANGE, text)]), TAG, 10), wanted);
    }

    #[test]
    fn nothing_of_nothing_can_be_had() {
        for text in ["bytes=0-", "bytes=-1"] {
            let asked = headers(&[(header::RANGE, text)]);
            assert_eq!(part(&asked, TAG, 0), Part::Unsatisfiable, "{text}");
        }
    }

    #[test]
    fn a_range_counts_only_for_the_bytes_that_it_was_meant_for() {
        let range = (header::RANGE, "bytes=1-2");
        let some = Part::Bytes { first: 1, last: 2 };
        for (condition, wanted) in [
            (TAG, some),
            ("\"sha256:bb\"", Part::Whole),
            ("W/\"sha256:aa\"", Part::Whole),
            ("Tue, 01 Dec 2026 00:00:00 GMT", Part::Whole),
        ] {
            let asked = headers(&[range.clone(), (header::IF_RANGE, condition)]);
            assert_eq!(part(&asked, TAG, 10), wanted, "{condition}");
        }
        let twice = headers(&[range.clone(), range]);
        assert_eq!(part(&twice, TAG, 10), Part::Whole);
    }

    #[test]
    fn conditions_compare_tags() {
        let judge = |name: header::HeaderName, value| condition(&headers(&[(name, value)]), TAG);
        for value in [
            TAG,
            "*",
            "W/\"sha256:aa\"",
            "\"x\", \"sha256:aa\"",
            "\"x\",W/\"sha256:aa\"",
        ] {
            assert_eq!(
                judge(header::IF_NONE_MATCH, value),
                Condition::NotModified,
                "{value}"
            );
        }
        for value in ["\"x\"", "sha256:aa", ""] {
            assert_eq!(
                judge(header::IF_NONE_MATCH, value),
                Condition::Holds,
                "{value}"
            );
        }
        assert_eq!(judge(header::IF_MATCH, TAG), Condition::Holds);
        assert_eq!(judge(header::IF_MATCH, "*"), Condition::Holds);
        assert_eq!(
            judge(header::IF_MATCH, "W/\"sha256:aa\""),
            Condition::Failed
        );
        assert_eq!(judge(header::IF_MATCH, "\"x\""), Condition::Failed);
        assert_eq!(condition(&HeaderMap::new(), TAG), Condition::Holds);
    }
}
