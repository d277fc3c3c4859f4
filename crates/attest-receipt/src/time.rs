//! Times as receipts spell them: RFC 3339 in UTC with a fraction of 0, 3, 6 or 9 digits.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

/// A moment in UTC, to the nanosecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(Timestamp);

/// Says why a text is no time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be a time such as 2026-11-30T12:00:00Z, with at most nine digits of a second")]
pub struct TimeError;

impl Time {
    /// The time that hermetic runs record instead of the clock's.
    pub const HERMETIC_SECONDS: i64 = 1_704_067_200;

    /// Returns 2024-01-01T00:00:00Z, which hermetic runs record.
    #[must_use]
    pub fn hermetic() -> Self {
        Self(Timestamp::from_second(Self::HERMETIC_SECONDS).unwrap_or(Timestamp::UNIX_EPOCH))
    }

    /// Returns the time as the ledger hashes it, with `+00:00` instead of `Z`.
    #[must_use]
    pub fn with_offset(self) -> String {
        self.spelled("+00:00")
    }

    /// Returns the moment.
    #[must_use]
    pub fn timestamp(self) -> Timestamp {
        self.0
    }

    fn spelled(self, zone: &str) -> String {
        // The civil time, since a timestamp before 1970 counts its fraction downwards.
        let civil = jiff::tz::Offset::UTC.to_datetime(self.0);
        let nanos = civil.subsec_nanosecond();
        let whole = civil.strftime("%Y-%m-%dT%H:%M:%S");
        if nanos == 0 {
            format!("{whole}{zone}")
        } else if nanos % 1_000_000 == 0 {
            format!("{whole}.{:03}{zone}", nanos / 1_000_000)
        } else if nanos % 1_000 == 0 {
            format!("{whole}.{:06}{zone}", nanos / 1_000)
        } else {
            format!("{whole}.{nanos:09}{zone}")
        }
    }
}

impl From<Timestamp> for Time {
    fn from(timestamp: Timestamp) -> Self {
        Self(timestamp)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spelled("Z"))
    }
}

impl FromStr for Time {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        if !has_the_form(text.as_bytes()) {
            return Err(TimeError);
        }
        // A leap second has no moment of its own here, and jiff would take it for the one before.
        if text.get(17..19) == Some("60") {
            return Err(TimeError);
        }
        let time: Timestamp = text.parse().map_err(|_| TimeError)?;
        Ok(Self(time))
    }
}

/// `YYYY-MM-DDTHH:MM:SS[.1 to 9 digits]Z`
fn has_the_form(bytes: &[u8]) -> bool {
    const FORM: &[u8; 19] = b"0000-00-00T00:00:00";
    let Some((head, tail)) = bytes.split_at_checked(FORM.len()) else {
        return false;
    };
    let head_fits = head.iter().zip(FORM).all(|(byte, form)| match form {
        b'0' => byte.is_ascii_digit(),
        other => byte == other,
    });
    let tail_fits = match tail {
        [b'Z'] => true,
        [b'.', digits @ .., b'Z'] => {
            (1..=9).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    };
    head_fits && tail_fits
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fractions_have_0_3_6_or_9_digits() {
        for (given, spelled) in [
            ("2026-11-30T11:51:16Z", "2026-11-30T11:51:16Z"),
            ("2026-11-30T11:51:16.5Z", "2026-11-30T11:51:16.500Z"),
            ("2026-11-30T11:51:16.570370Z", "2026-11-30T11:51:16.570370Z"),
            (
                "2026-11-30T11:51:16.570383370Z",
                "2026-11-30T11:51:16.570383370Z",
            ),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ] {
            let time: Time = given.parse().unwrap();
            assert_eq!(time.to_string(), spelled);
        }
    }

    #[test]
    fn other_spellings_are_refused() {
        for text in [
            "",
            "2026-11-30",
            "2026-11-30T11:51:16",
            "2026-11-30t11:51:16Z",
            "2026-11-30T11:51:16z",
            "2026-11-30 11:51:16Z",
            "2026-11-30T11:51:16+00:00",
            "2026-11-30T11:51:16.Z",
            "2026-11-30T11:51:16.1234567890Z",
            "2026-11-30T11:51:60Z",
            "2026-02-30T11:51:16Z",
            "2026-11-30T24:00:00Z",
            "+002026-11-30T11:51:16Z",
            "2026-11-30T11:51:16Z ",
            "2026-11-30T11:51:16[UTC]Z",
        ] {
            assert!(text.parse::<Time>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_ledger_spells_the_zone_as_an_offset() {
        let time: Time = "2026-11-30T11:51:16.626730436Z".parse().unwrap();
        assert_eq!(time.with_offset(), "2026-11-30T11:51:16.626730436+00:00");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(seconds in -62_135_596_800i64..253_402_300_799, nanos in 0i32..1_000_000_000) {
            let time = Time::from(Timestamp::new(seconds, if seconds < 0 { -nanos } else { nanos }).unwrap());
            prop_assert_eq!(time.to_string().parse::<Time>().unwrap(), time);
        }
    }
}
