//! A token or key that cannot be printed, and the two places it may come from.
//!
//! Secrets come from a file or from a named environment variable, never from an argument. The
//! bytes are wiped when the value is dropped.

use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;
use zeroize::Zeroizing;

use crate::env::{self, EnvError};

/// The longest accepted secret, in bytes.
pub(crate) const SECRET_BYTES: usize = 4096;

/// Why a secret cannot be used. No variant carries any of its bytes.
#[derive(Debug, Error)]
pub enum SecretError {
    /// The file cannot be read.
    #[error("cannot read the secret file `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The variable is missing or not text.
    #[error("cannot read a secret from the environment")]
    Env {
        /// Why.
        #[source]
        source: EnvError,
    },
    /// The content is not a usable secret.
    #[error("the secret in {place} {problem}")]
    Unusable {
        /// File or variable, in words.
        place: String,
        /// What is wrong, in words.
        problem: &'static str,
    },
}

/// A secret text of 1 to `SECRET_BYTES` visible ASCII characters.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Reads a secret from a file; one line feed at the end is not part of it.
    ///
    /// # Errors
    /// The file cannot be read, is too long, empty or holds other than visible ASCII.
    pub fn from_file(path: &Path) -> Result<Self, SecretError> {
        let read = |source| SecretError::Read {
            path: path.to_owned(),
            source,
        };
        let limit = SECRET_BYTES + 1; // the line feed
        let mut bytes = Zeroizing::new(Vec::with_capacity(limit + 1));
        fs_err::File::open(path)
            .map_err(read)?
            .take(limit as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(read)?;
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        Self::checked(&bytes, || format!("file `{}`", path.display()))
    }

    /// Reads a secret from an environment variable, which stays set.
    ///
    /// # Errors
    /// The variable is unset, empty, too long or holds other than visible ASCII.
    pub fn from_env(name: &str) -> Result<Self, SecretError> {
        let value = env::required(name).map_err(|source| SecretError::Env { source })?;
        let value = Zeroizing::new(value);
        Self::checked(value.as_bytes(), || format!("variable `{name}`"))
    }

    /// Returns the secret itself. Hand it to a comparison or a header, never to a message.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    fn checked(bytes: &[u8], place: impl FnOnce() -> String) -> Result<Self, SecretError> {
        let problem = if bytes.is_empty() {
            "is empty"
        } else if bytes.len() > SECRET_BYTES {
            "is longer than 4096 bytes"
        } else if !bytes.iter().all(u8::is_ascii_graphic) {
            "holds white space or bytes that are not visible ASCII"
        } else {
            return Ok(Self(Zeroizing::new(
                String::from_utf8_lossy(bytes).into_owned(),
            )));
        };
        Err(SecretError::Unusable {
            place: place(),
            problem,
        })
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(bytes: &[u8]) -> Result<Secret, SecretError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        fs_err::write(&path, bytes).unwrap();
        Secret::from_file(&path)
    }

    #[test]
    fn one_line_feed_is_trimmed_and_no_more() {
        assert_eq!(from(b"canary\n").unwrap().expose(), "canary");
        assert_eq!(from(b"canary").unwrap().expose(), "canary");
        assert!(from(b"canary\n\n").is_err());
        assert!(from(b" canary\n").is_err());
        assert!(from(b"canary\r\n").is_err());
    }

    #[test]
    fn length_limit_is_exact() {
        let mut text = vec![b'x'; SECRET_BYTES];
        assert!(from(&text).is_ok());
        text.push(b'\n');
        assert!(from(&text).is_ok());
        text[SECRET_BYTES] = b'x';
        assert!(from(&text).is_err());
        assert!(from(b"").is_err());
        assert!(from(b"\n").is_err());
    }

    #[test]
    fn nothing_prints_it() {
        let secret = from(b"canary").unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(..)");
        let error = from(b"can ary").unwrap_err();
        assert!(!format!("{error:?} {error}").contains("can ary"));
    }

    #[test]
    fn a_missing_place_is_named() {
        let error = Secret::from_file(Path::new("/nonexistent/token")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot read the secret file `/nonexistent/token`"
        );
        assert!(Secret::from_env("FORGE_SURELY_UNSET_2").is_err());
    }
}
