//! Times as receipts spell them: RFC 3339 in UTC with a fraction of 0, 3, 6 or 9 digits.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Serialize, Serializer};

/// A moment in UTC, to the nanosecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(Timestamp);

/// Says why a text is no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// It looks like none.
    #[error("must be a time such as 2026-11-30T12:00:00Z, with at most nine digits of a second")]
    Form,
    /// An offset from UTC, or no zone at all.
    #[error("must be a time in UTC, which ends in Z")]
    Zone,
    /// The 30th of February, or a month 13.
    #[error("is no day of the calendar")]
    Day,
    /// A leap second has no moment of its own here, and other readers take it for another.
    #[error("has a second 60, which is not read here")]
    LeapSecond,
    /// An hour 24, a minute 60.
    #[error("is no time of the day; the last one is 23:59:59")]
    TimeOfDay,
    /// Later than what can be computed with.
    #[error("is later than 9999-12-30T22:00:00Z, the last time that is read here")]
    Late,
}

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
        check_form(text.as_bytes())?;
        // Two digits each, so that their order is that of the numbers.
        let part = |range| text.get(range).unwrap_or_default();
        part(0..10).parse::<Date>().map_err(|_| TimeError::Day)?;
        let second = part(17..19);
        if part(11..13) > "23" || part(14..16) > "59" || second > "60" {
            return Err(TimeError::TimeOfDay);
        }
        if second == "60" {
            return Err(TimeError::LeapSecond);
        }
        let time: Timestamp = text.parse().map_err(|_| TimeError::Late)?;
        Ok(Self(time))
    }
}

/// `YYYY-MM-DDTHH:MM:SS[.1 to 9 digits]Z`
fn check_form(bytes: &[u8]) -> Result<(), TimeError> {
    const FORM: &[u8; 19] = b"0000-00-00T00:00:00";
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit());
    let year = digits.count();
    if year > 4 && bytes.get(year) == Some(&b'-') {
        return Err(TimeError::Late);
    }
    let (head, tail) = bytes.split_at_checked(FORM.len()).ok_or(TimeError::Form)?;
    let head_fits = head.iter().zip(FORM).all(|(byte, form)| match form {
        b'0' => byte.is_ascii_digit(),
        other => byte == other,
    });
    if !head_fits {
        return Err(TimeError::Form);
    }
    let zone = match tail {
        [b'.', rest @ ..] => {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit());
            let (digits, zone) = rest.split_at(digits.count());
            if !(1..=9).contains(&digits.len()) {
                return Err(TimeError::Form);
            }
            zone
        }
        zone => zone,
    };
    match zone {
        b"Z" => Ok(()),
        [] | [b'+' | b'-' | b'z', ..] => Err(TimeError::Zone),
        _ => Err(TimeError::Form),
    }
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
    fn other_spellings_are_refused_with_what_is_wrong() {
        for (text, wrong) in [
            ("", TimeError::Form),
            ("2026-11-30", TimeError::Form),
            ("2026-11-30T11:51:16", TimeError::Zone),
            ("2026-11-30t11:51:16Z", TimeError::Form),
            ("2026-11-30T11:51:16z", TimeError::Zone),
            ("2026-11-30 11:51:16Z", TimeError::Form),
            ("2026-11-30T11:51:16+00:00", TimeError::Zone),
            ("2026-11-30T11:51:16.5-02:00", TimeError::Zone),
            ("2026-11-30T11:51:16.Z", TimeError::Form),
            ("2026-11-30T11:51:16.1234567890Z", TimeError::Form),
            ("2026-11-30T11:51:60Z", TimeError::LeapSecond),
            ("2016-12-31T23:59:60Z", TimeError::LeapSecond),
            ("2026-11-30T11:51:61Z", TimeError::TimeOfDay),
            ("2026-11-30T11:60:16Z", TimeError::TimeOfDay),
            ("2026-11-30T24:00:00Z", TimeError::TimeOfDay),
            ("2026-11-30T24:00:60Z", TimeError::TimeOfDay),
            ("2026-02-30T11:51:16Z", TimeError::Day),
            ("2026-02-29T11:51:16Z", TimeError::Day),
            ("2026-13-01T11:51:16Z", TimeError::Day),
            ("2026-00-01T11:51:16Z", TimeError::Day),
            ("9999-12-31T00:00:00Z", TimeError::Late),
            ("9999-12-30T22:00:01Z", TimeError::Late),
            ("10000-01-01T00:00:00Z", TimeError::Late),
            ("+002026-11-30T11:51:16Z", TimeError::Form),
            ("2026-11-30T11:51:16Z ", TimeError::Form),
            ("2026-11-30T11:51:16[UTC]Z", TimeError::Form),
        ] {
            assert_eq!(text.parse::<Time>(), Err(wrong), "{text}");
        }
        assert!("9999-12-30T22:00:00Z".parse::<Time>().is_ok());
        assert!("2024-02-29T23:59:59Z".parse::<Time>().is_ok());
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
