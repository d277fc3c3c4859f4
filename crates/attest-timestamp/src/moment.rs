//! The time of a token: GeneralizedTime in UTC, with seconds and perhaps a fraction.

use der::{Any, Tag, Tagged as _};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::Offset;

use crate::error::TokenError;

/// The longest fraction that is kept; no clock knows more.
const FRACTION: usize = 9;

/// Reads a time as RFC 3161 spells it: `YYYYMMDDhhmmss[.f…]Z`, the fraction without final zeros.
pub(crate) fn read(any: &Any) -> Result<Timestamp, TokenError> {
    let refused = TokenError::Malformed("its time is not a time in UTC to the second");
    if any.tag() != Tag::GeneralizedTime {
        return Err(refused);
    }
    parse(any.value()).ok_or(refused)
}

fn parse(text: &[u8]) -> Option<Timestamp> {
    let text = text.strip_suffix(b"Z")?;
    let (whole, rest) = text.split_at_checked(14)?;
    let nanos = match rest {
        [] => 0,
        [b'.', digits @ ..] => fraction(digits)?,
        _ => return None,
    };
    let year = i16::try_from(number(whole.get(..4)?)?).ok()?;
    let two = |at: usize| {
        let digits = whole.get(at..at.checked_add(2)?)?;
        i8::try_from(number(digits)?).ok()
    };
    let date = Date::new(year, two(4)?, two(6)?).ok()?;
    // A leap second has no moment of its own; jiff refuses it.
    let time = jiff::civil::Time::new(two(8)?, two(10)?, two(12)?, nanos).ok()?;
    Offset::UTC.to_timestamp(date.to_datetime(time)).ok()
}

fn fraction(digits: &[u8]) -> Option<i32> {
    if digits.is_empty() || digits.len() > FRACTION || digits.last() == Some(&b'0') {
        return None;
    }
    let mut nanos = number(digits)?;
    for _ in digits.len()..FRACTION {
        nanos = nanos.checked_mul(10)?;
    }
    i32::try_from(nanos).ok()
}

fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0_u32, |value, digit| {
        let digit = digit.is_ascii_digit().then(|| digit.wrapping_sub(b'0'))?;
        value.checked_mul(10)?.checked_add(digit.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_one_spelling() {
        for (text, time) in [
            ("20261130120000Z", "2026-11-30T12:00:00Z"),
            ("19700101000000Z", "1970-01-01T00:00:00Z"),
            ("20261130120000.5Z", "2026-11-30T12:00:00.5Z"),
            (
                "20261130120000.000000001Z",
                "2026-11-30T12:00:00.000000001Z",
            ),
            ("20240229235959.123Z", "2024-02-29T23:59:59.123Z"),
        ] {
            assert_eq!(
                parse(text.as_bytes()),
                Some(time.parse().unwrap()),
                "{text}"
            );
        }
        for text in [
            "",
            "Z",
            "20261130120000",
            "202611301200Z",
            "20261130120000+0000",
            "20261130120000.Z",
            "20261130120000.0Z",
            "20261130120000.50Z",
            "20261130120000.1234567891Z",
            "20261130120000,5Z",
            "20261130120060Z",
            "20261130240000Z",
            "20260229120000Z",
            "20261330120000Z",
            "2026113012000aZ",
            "20261130 20000Z",
            "+0261130120000Z",
            "20261130120000ZZ",
            "2026\u{20ac}0120000Z",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
}
