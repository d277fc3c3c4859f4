//! Where to ask: the base URL, the prefix under it, and the paths that may follow.

use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;

use url::Url;

use crate::error::{AddressError, PathError};

/// What stands between the base URL and every endpoint.
pub const PREFIX: &str = "/plugin-protocol/v1";

/// The longest URL, base and query included.
pub const LONGEST_URL: usize = 8 * 1024;

/// The base of all URLs: scheme, host, port and perhaps a path, without a slash at its end.
///
/// `http` is taken here; whether it may be used with that host is the transport's question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl {
    text: String,
}

impl BaseUrl {
    /// Returns the URL of an endpoint; `rest` is checked and encoded.
    pub(crate) fn endpoint(&self, rest: &str) -> Option<String> {
        let length = self.text.len() + PREFIX.len() + rest.len();
        (length <= LONGEST_URL).then(|| format!("{}{PREFIX}{rest}", self.text))
    }
}

impl FromStr for BaseUrl {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if text.len() > LONGEST_URL {
            return Err(AddressError::TooLong { limit: LONGEST_URL });
        }
        if text.contains(|c: char| c == '\\' || c.is_control() || c.is_whitespace()) {
            return Err(AddressError::Character);
        }
        let url = Url::parse(text).map_err(|error| AddressError::Syntax {
            reason: error.to_string(),
        })?;
        if !matches!(url.scheme(), "https" | "http") {
            return Err(AddressError::Scheme);
        }
        // The parser drops an empty `@`, which was somebody's password all the same.
        if !url.username().is_empty() || url.password().is_some() || authority(text).contains('@') {
            return Err(AddressError::Password);
        }
        if url.query().is_some() {
            return Err(AddressError::Query);
        }
        if url.fragment().is_some() {
            return Err(AddressError::Fragment);
        }
        let text = url.as_str().trim_end_matches('/').to_owned();
        Ok(Self { text })
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// Returns what stands between the scheme and the path, however many slashes there are.
fn authority(text: &str) -> &str {
    let rest = text.split_once(':').map_or("", |(_, rest)| rest);
    let rest = rest.trim_start_matches('/');
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// A path under the prefix: starts with `/`, stays under it and names no query.
///
/// What a URL cannot hold plainly, such as a space or a letter beyond ASCII, is percent-encoded; what
/// is percent-encoded stays so. [`RequestPath::segment`] encodes an id for use in one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestPath {
    encoded: String,
}

impl RequestPath {
    /// Encodes an id as one segment of a path. A `/`, a `\` and an id of dots alone cannot be
    /// carried: such ids go into a query or a body.
    pub fn segment(id: &str) -> Result<String, PathError> {
        if id.contains('/') {
            return Err(PathError::EncodedSlash);
        }
        let mut out = String::new();
        for c in id.chars() {
            match c {
                '%' | '?' | '#' => encode(&mut out, c),
                c => out.push(c),
            }
        }
        format!("/{out}").parse::<Self>()?;
        if out.is_empty() {
            return Err(PathError::EmptySegment);
        }
        Ok(out)
    }

    /// Returns the path as it stands in a URL.
    pub fn as_str(&self) -> &str {
        &self.encoded
    }
}

impl FromStr for RequestPath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        if text.len() > LONGEST_URL {
            return Err(PathError::TooLong { limit: LONGEST_URL });
        }
        if !text.starts_with('/') {
            return Err(PathError::NotAbsolute);
        }
        if text.contains("//") {
            return Err(PathError::EmptySegment);
        }
        escapes(text)?;
        let mut encoded = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '?' => return Err(PathError::Query),
                '#' => return Err(PathError::Fragment),
                '\\' => return Err(PathError::Backslash),
                c if c.is_control() => return Err(PathError::Control),
                '/' | '%' => encoded.push(c),
                c if plain(c) => encoded.push(c),
                c => encode(&mut encoded, c),
            }
        }
        if text.split('/').any(is_dots) {
            return Err(PathError::Traversal);
        }
        Ok(Self { encoded })
    }
}

/// Refuses escapes that a server could decode into structure.
fn escapes(text: &str) -> Result<(), PathError> {
    for behind in text.split('%').skip(1) {
        let digits = behind.get(..2).ok_or(PathError::Percent)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(PathError::Percent);
        }
        match u8::from_str_radix(digits, 16) {
            Ok(b'/') => return Err(PathError::EncodedSlash),
            Ok(b'\\') => return Err(PathError::Backslash),
            Ok(b'.') => return Err(PathError::Traversal),
            Ok(byte) if byte.is_ascii_control() => return Err(PathError::Control),
            Ok(_) => {}
            Err(_) => return Err(PathError::Percent),
        }
    }
    Ok(())
}

fn is_dots(segment: &str) -> bool {
    matches!(segment, "." | "..")
}

/// Tells whether a segment of a path holds the character as it is (RFC 3986, `pchar`).
fn plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@".contains(c)
}

fn encode(out: &mut String, c: char) {
    let mut bytes = [0; 4];
    for byte in c.encode_utf8(&mut bytes).bytes() {
        let _infallible = write!(out, "%{byte:02X}");
    }
}

#[cfg(test)]
mod tests;
