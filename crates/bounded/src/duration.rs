//! Durations in the notation of the Go standard library, as the configuration files use it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::BoundError;

/// Longest duration, in nanoseconds: what 64 signed bits hold.
const MAX_NANOS: u64 = i64::MAX.unsigned_abs();

/// A duration of 0 to 2^63-1 nanoseconds, written like `1h2m3.5s`, `250ms` or `0`.
///
/// `Display` gives the form that Go prints, so equal durations read the same everywhere.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GoDuration(u64);

impl GoDuration {
    /// Reads the notation; signs are refused except a leading `+`.
    pub fn new(text: impl AsRef<str>) -> Result<Self, BoundError> {
        let text = text.as_ref();
        if text.starts_with('-') {
            return Err(broken("it must not be negative"));
        }
        let mut rest = text.strip_prefix('+').unwrap_or(text);
        if rest == "0" {
            return Ok(Self(0));
        }
        if rest.is_empty() {
            return Err(broken("it is empty"));
        }
        let mut total: u64 = 0;
        while !rest.is_empty() {
            let (nanos, after) = component(rest)?;
            total = total.checked_add(nanos).ok_or_else(too_long)?;
            rest = after;
        }
        Self::from_nanos(total)
    }

    /// Makes a duration from nanoseconds.
    pub fn from_nanos(nanos: u64) -> Result<Self, BoundError> {
        if nanos <= MAX_NANOS {
            Ok(Self(nanos))
        } else {
            Err(too_long())
        }
    }

    /// Returns the nanoseconds.
    pub fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the duration of the standard library.
    pub fn duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }
}

impl From<GoDuration> for Duration {
    fn from(value: GoDuration) -> Self {
        value.duration()
    }
}

impl TryFrom<Duration> for GoDuration {
    type Error = BoundError;

    fn try_from(value: Duration) -> Result<Self, BoundError> {
        u64::try_from(value.as_nanos())
            .map_err(|_| too_long())
            .and_then(Self::from_nanos)
    }
}

impl FromStr for GoDuration {
    type Err = BoundError;

    fn from_str(text: &str) -> Result<Self, BoundError> {
        Self::new(text)
    }
}

impl TryFrom<String> for GoDuration {
    type Error = BoundError;

    fn try_from(text: String) -> Result<Self, BoundError> {
        Self::new(text)
    }
}

impl From<GoDuration> for String {
    fn from(value: GoDuration) -> Self {
        value.to_string()
    }
}

impl fmt::Display for GoDuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0;
        let text = match nanos {
            0 => "0s".to_owned(),
            1..1_000 => format!("{nanos}ns"),
            1_000..1_000_000 => format!("{}µs", decimal(nanos, 1_000, 3)),
            1_000_000..NANOS_PER_SECOND => format!("{}ms", decimal(nanos, 1_000_000, 6)),
            _ => {
                let minutes = nanos / (60 * NANOS_PER_SECOND);
                let seconds = decimal(nanos % (60 * NANOS_PER_SECOND), NANOS_PER_SECOND, 9);
                match (minutes / 60, minutes % 60) {
                    (0, 0) => format!("{seconds}s"),
                    (0, minutes) => format!("{minutes}m{seconds}s"),
                    (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
                }
            }
        };
        formatter.pad(&text)
    }
}

impl fmt::Debug for GoDuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Reads one number with its unit; returns its nanoseconds and what follows.
fn component(text: &str) -> Result<(u64, &str), BoundError> {
    let (whole, rest) = digits(text);
    let (fraction, rest) = rest.strip_prefix('.').map_or(("", rest), digits);
    if whole.is_empty() && fraction.is_empty() {
        return Err(broken("a number is missing"));
    }
    let end = rest
        .find(|c: char| c == '.' || c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (unit, rest) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let unit = match unit {
        "ns" => 1,
        // Both the micro sign and the Greek letter are in use.
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => NANOS_PER_SECOND,
        "m" => 60 * NANOS_PER_SECOND,
        "h" => 3_600 * NANOS_PER_SECOND,
        "" => return Err(broken("a unit is missing")),
        _ => return Err(broken("units are ns, us, ms, s, m and h")),
    };
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().map_err(|_| too_long())?
    };
    let whole = whole.checked_mul(unit).ok_or_else(too_long)?;
    Ok((
        whole
            .checked_add(fraction_nanos(fraction, unit))
            .ok_or_else(too_long)?,
        rest,
    ))
}

/// Cuts off leading decimal digits.
fn digits(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// Returns the nanoseconds of a fraction of a unit, rounded down; digits past the 18th are dropped.
fn fraction_nanos(digits: &str, unit: u64) -> u64 {
    let mut numerator: u128 = 0;
    let mut scale: u128 = 1;
    for digit in digits.chars().take(18).filter_map(|c| c.to_digit(10)) {
        numerator = numerator * 10 + u128::from(digit);
        scale *= 10;
    }
    // Below one unit, so it always fits.
    u64::try_from(numerator * u128::from(unit) / scale).unwrap_or_default()
}

/// Writes `value / unit` with up to `places` decimals and no trailing zeros.
fn decimal(value: u64, unit: u64, places: usize) -> String {
    let (whole, rest) = (value / unit, value % unit);
    if rest == 0 {
        return whole.to_string();
    }
    let fraction = format!("{rest:0places$}");
    format!("{whole}.{}", fraction.trim_end_matches('0'))
}

fn broken(reason: &'static str) -> BoundError {
    BoundError::Duration { reason }
}

fn too_long() -> BoundError {
    broken("it is longer than 2^63-1 nanoseconds")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notation_and_canonical_form() {
        let cases = [
            ("0", 0, "0s"),
            ("0s", 0, "0s"),
            ("1ns", 1, "1ns"),
            ("1.5us", 1_500, "1.5µs"),
            ("1µs", 1_000, "1µs"),
            ("1μs", 1_000, "1µs"),
            ("250ms", 250_000_000, "250ms"),
            ("0.25s", 250_000_000, "250ms"),
            (".5s", 500_000_000, "500ms"),
            ("1.s", NANOS_PER_SECOND, "1s"),
            ("+5s", 5 * NANOS_PER_SECOND, "5s"),
            ("90s", 90 * NANOS_PER_SECOND, "1m30s"),
            ("15m", 900 * NANOS_PER_SECOND, "15m0s"),
            ("1h2m3.5s", 3_723_500_000_000, "1h2m3.5s"),
            ("24h", 86_400 * NANOS_PER_SECOND, "24h0m0s"),
            ("1.000000001s", 1_000_000_001, "1.000000001s"),
            (
                "2562047h47m16.854775807s",
                MAX_NANOS,
                "2562047h47m16.854775807s",
            ),
        ];
        for (text, nanos, canonical) in cases {
            let duration = GoDuration::new(text).unwrap();
            assert_eq!(duration.as_nanos(), nanos, "{text}");
            assert_eq!(duration.to_string(), canonical, "{text}");
            assert_eq!(GoDuration::new(canonical), Ok(duration), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        let bad = [
            "",
            "+",
            "-1s",
            "1",
            "00",
            "s",
            ".s",
            "1d",
            "1 s",
            " 1s",
            "1s ",
            "1S",
            "1e3s",
            "1..s",
            "1_0s",
            "2562047h47m16.854775808s",
            "9999999999999999999999h",
            "1m-1s",
            "１s",
        ];
        for text in bad {
            assert!(GoDuration::new(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn std_durations_convert_within_range() {
        let second = GoDuration::try_from(Duration::from_secs(1)).unwrap();
        assert_eq!(Duration::from(second), Duration::from_secs(1));
        assert!(GoDuration::try_from(Duration::MAX).is_err());
        assert!(GoDuration::from_nanos(MAX_NANOS).is_ok());
        assert!(GoDuration::from_nanos(MAX_NANOS + 1).is_err());
    }
}
