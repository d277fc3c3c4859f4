//! How domain values are written into columns and read back.

use std::fmt::Display;
use std::str::FromStr;

use jiff::Timestamp;
use rusqlite::Row;

use crate::StoreError;

/// Nanoseconds since 1970; times beyond the range of the column stay at its end.
pub(super) fn nanos(time: Timestamp) -> i64 {
    let nanos = time.as_nanosecond();
    i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}

/// Reads a time back.
pub(super) fn time(nanos: i64) -> Timestamp {
    // Every i64 of nanoseconds lies inside the range of a timestamp.
    Timestamp::from_nanosecond(i128::from(nanos)).unwrap_or_default()
}

/// Reads a column whose text has a type of its own.
pub(super) fn parsed<T>(row: &Row<'_>, index: usize) -> Result<T, StoreError>
where
    T: FromStr,
    T::Err: Display,
{
    let text = row
        .get_ref(index)?
        .as_str()
        .map_err(rusqlite::Error::from)?;
    parse(row, index, text)
}

/// Reads such a column where it may be null.
pub(super) fn opt_parsed<T>(row: &Row<'_>, index: usize) -> Result<Option<T>, StoreError>
where
    T: FromStr,
    T::Err: Display,
{
    match row
        .get_ref(index)?
        .as_str_or_null()
        .map_err(rusqlite::Error::from)?
    {
        Some(text) => parse(row, index, text).map(Some),
        None => Ok(None),
    }
}

/// Names stored data that cannot be what this store wrote.
pub(super) fn inconsistent(what: impl Into<String>, reason: impl Display) -> StoreError {
    StoreError::Inconsistent {
        what: what.into(),
        reason: reason.to_string(),
    }
}

fn parse<T>(row: &Row<'_>, index: usize, text: &str) -> Result<T, StoreError>
where
    T: FromStr,
    T::Err: Display,
{
    text.parse().map_err(|error: T::Err| {
        let column = row
            .as_ref()
            .column_name(index)
            .unwrap_or("a column")
            .to_owned();
        inconsistent(format!("column `{column}`"), error)
    })
}
