//! How values are written into columns and read back.

use std::str::FromStr;

use digest_text::{Blake3Text, Sha256Text};
use jiff::Timestamp;
use rusqlite::Row;

use crate::{ReleaseId, StoreError};

/// Microseconds since 1970, which is how exact the times of a registry are.
pub(super) fn micros(time: Timestamp) -> i64 {
    time.as_microsecond()
}

/// Reads a time.
pub(super) fn time(row: &Row<'_>, column: &str) -> Result<Timestamp, StoreError> {
    Timestamp::from_microsecond(row.get(column)?).map_err(|_| StoreError::Inconsistent {
        what: "a time is out of range",
    })
}

/// Reads a count, which is written as what SQLite has.
pub(super) fn count(row: &Row<'_>, column: &str) -> Result<u64, StoreError> {
    u64::try_from(row.get::<_, i64>(column)?).map_err(|_| StoreError::Inconsistent {
        what: "a count is negative",
    })
}

/// Writes a count.
pub(super) fn integer(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Reads a text that has a type of its own.
pub(super) fn parsed<T: FromStr>(row: &Row<'_>, column: &str) -> Result<T, StoreError> {
    let text = row.get_ref(column)?;
    let text = text.as_str().map_err(rusqlite::Error::from)?;
    text.parse().map_err(|_| StoreError::Inconsistent {
        what: "a text does not have the form that it was written in",
    })
}

/// Reads a digest.
pub(super) fn sha256(row: &Row<'_>, column: &str) -> Result<Sha256Text, StoreError> {
    Ok(Sha256Text::from_bytes(row.get(column)?))
}

/// Reads a digest.
pub(super) fn blake3(row: &Row<'_>, column: &str) -> Result<Blake3Text, StoreError> {
    Ok(Blake3Text::from_bytes(row.get(column)?))
}

/// Reads the id of a release.
pub(super) fn release_id(row: &Row<'_>, column: &str) -> Result<ReleaseId, StoreError> {
    Ok(ReleaseId::from_bytes(row.get(column)?))
}
