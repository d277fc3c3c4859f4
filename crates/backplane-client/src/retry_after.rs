//! Reads `Retry-After`: seconds, or a date against a wall clock that is given.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

/// The longest value that is looked at.
const LONGEST: usize = 64;
const DATES: DateTimeParser = DateTimeParser::new();

/// Returns the wait that a header `Retry-After` asks for; what is neither form asks for none.
///
/// A date in the past asks for no wait. How long a wait may be is the deadline's question.
pub fn retry_after(value: &str, wall_clock: Timestamp) -> Option<Duration> {
    let value = value.trim_matches([' ', '\t']);
    if value.is_empty() || value.len() > LONGEST {
        return None;
    }
    if value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit are a very long wait all the same.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    if !value.ends_with(" GMT") {
        return None;
    }
    let date = DATES.parse_timestamp(value).ok()?;
    let wait = date.duration_since(wall_clock);
    Some(wait.try_into().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_read_and_nothing_else() {
        let now: Timestamp = "2026-10-21T07:28:00Z".parse().unwrap();
        let read = |value: &str| retry_after(value, now).map(|wait| wait.as_secs());
        assert_eq!(read("0"), Some(0));
        assert_eq!(read("120"), Some(120));
        assert_eq!(read(" 7\t"), Some(7));
        assert_eq!(read("99999999999999999999999"), Some(u64::MAX));
        assert_eq!(read("Wed, 21 Oct 2026 07:28:30 GMT"), Some(30));
        assert_eq!(read("Wed, 21 Oct 2026 07:27:00 GMT"), Some(0));
        for other in [
            "",
            "-1",
            "1.5",
            "1s",
            "soon",
            "Wed, 21 Oct 2026 07:28:30 +0100",
            "2026-10-21T07:28:30Z",
            "Wed, 99 Oct 2026 07:28:30 GMT",
            "00000000000000000000000000000000000000000000000000000000000000001",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
