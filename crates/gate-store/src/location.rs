//! Where a database is, in the spellings that the configuration allows: a plain path, a `file:`
//! URI with `mode=rwc` and `cache=private|shared` at most, or memory.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::StoreError;

const MAX_BYTES: usize = 4096;

/// Where a database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// In memory, gone with the store.
    Memory,
    /// In a file.
    File(PathBuf),
}

impl Location {
    /// Returns the path of a file.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Memory => None,
            Self::File(path) => Some(path),
        }
    }
}

impl FromStr for Location {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map_err(|reason| StoreError::InvalidLocation {
            location: bounded::text::visible(text),
            reason,
        })
    }
}

fn parse(text: &str) -> Result<Location, &'static str> {
    if text.is_empty() || text.len() > MAX_BYTES {
        return Err("it must be 1 to 4096 bytes");
    }
    if text.contains('\0') {
        return Err("it must hold no NUL");
    }
    if text == ":memory:" {
        return Ok(Location::Memory);
    }
    match text.strip_prefix("file:") {
        Some(uri) => parse_uri(uri),
        None => Ok(Location::File(PathBuf::from(text))),
    }
}

fn parse_uri(uri: &str) -> Result<Location, &'static str> {
    if uri.contains('#') {
        return Err("a fragment is not supported");
    }
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let path = match path.strip_prefix("//") {
        None => path,
        Some(rest) => rest
            .strip_prefix("localhost")
            .filter(|path| path.starts_with('/'))
            .unwrap_or(rest),
    };
    if uri.starts_with("//") && !path.starts_with('/') {
        return Err("a host other than localhost is not supported");
    }
    let path = percent_decode(path)?;
    let mut memory = path == ":memory:";
    let (mut mode, mut cache) = (false, false);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let seen = match pair {
            "mode=rwc" => &mut mode,
            "mode=memory" => {
                memory = true;
                &mut mode
            }
            "cache=private" | "cache=shared" => &mut cache,
            _ => return Err("only `mode=rwc` and `cache=private` or `cache=shared` are supported"),
        };
        if std::mem::replace(seen, true) {
            return Err("a parameter is given twice");
        }
    }
    if memory {
        return Ok(Location::Memory);
    }
    if path.is_empty() {
        return Err("it names no file");
    }
    Ok(Location::File(PathBuf::from(path)))
}

fn percent_decode(text: &str) -> Result<String, &'static str> {
    const BROKEN: &str = "it holds a broken percent escape";
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || {
            rest.next()
                .and_then(|digit| char::from(digit).to_digit(16))
                .ok_or(BROKEN)
        };
        let value = digit()? * 16 + digit()?;
        bytes.push(
            u8::try_from(value)
                .ok()
                .filter(|byte| *byte != 0)
                .ok_or(BROKEN)?,
        );
    }
    String::from_utf8(bytes).map_err(|_| BROKEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spellings_of_the_configuration_pass() {
        for (text, path) in [
            ("gate.db", "gate.db"),
            ("/var/lib/gate/gate.db", "/var/lib/gate/gate.db"),
            ("file:gate.db", "gate.db"),
            ("file:/a/b.db?mode=rwc", "/a/b.db"),
            ("file:/a/b.db?cache=private&mode=rwc", "/a/b.db"),
            ("file:///a/b.db?cache=shared", "/a/b.db"),
            ("file://localhost/a/b.db", "/a/b.db"),
            ("file:/a%20b/c.db", "/a b/c.db"),
        ] {
            assert_eq!(
                text.parse::<Location>().unwrap(),
                Location::File(path.into()),
                "{text}"
            );
        }
        for text in [
            ":memory:",
            "file::memory:",
            "file::memory:?cache=shared",
            "file:x?mode=memory&cache=shared",
        ] {
            assert_eq!(
                text.parse::<Location>().unwrap(),
                Location::Memory,
                "{text}"
            );
        }
    }

    #[test]
    fn everything_else_is_refused() {
        let long = "x".repeat(MAX_BYTES + 1);
        for text in [
            "",
            &long,
            "a\0b",
            "file:",
            "file:?mode=rwc",
            "file:a?mode=ro",
            "file:a?mode=rwc&mode=rwc",
            "file:a?mode=rwc&mode=memory",
            "file:a?cache=shared&cache=private",
            "file:a?vfs=unix-none",
            "file:a?immutable=1",
            "file:a#b",
            "file://host/a",
            "file:a%2",
            "file:a%zz",
            "file:a%00",
            "file:a%ff",
        ] {
            let error = text.parse::<Location>().unwrap_err();
            assert_eq!(
                error.startup_code().as_str(),
                "invalid_database_location",
                "{text}"
            );
        }
        assert!("x".repeat(MAX_BYTES).parse::<Location>().is_ok());
    }
}
