//! Paths of the configuration, compared before the host is asked whether they exist.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

/// The longest accepted path, in bytes.
const PATH_BYTES: usize = 4096;

/// An absolute path of 1 to 4096 bytes without NUL; it may not exist.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPath(PathBuf);

impl HostPath {
    /// Returns the path.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl FromStr for HostPath {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > PATH_BYTES {
            Err("must be at most 4096 bytes")
        } else if text.contains('\0') {
            Err("must not contain a NUL byte")
        } else if !text.starts_with('/') {
            Err("must be an absolute path")
        } else {
            Ok(Self(PathBuf::from(text)))
        }
    }
}

impl fmt::Display for HostPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0.display())
    }
}

/// Whether one path is the other or lies inside it. Paths with `..` are left to the host, which
/// knows what the links in them mean.
pub(crate) fn overlap(one: &Path, other: &Path) -> bool {
    let goes_up = |path: &Path| path.components().any(|part| part == Component::ParentDir);
    !goes_up(one) && !goes_up(other) && (one.starts_with(other) || other.starts_with(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_is_by_component() {
        let overlaps = |one, other| overlap(Path::new(one), Path::new(other));
        assert!(overlaps("/a", "/a/b"));
        assert!(overlaps("/a/b/", "/a"));
        assert!(overlaps("/a", "/a"));
        assert!(!overlaps("/a", "/ab"));
        assert!(!overlaps("/a/b", "/a/c"));
        assert!(!overlaps("/a/../b", "/a"));
    }

    #[test]
    fn length_limit_is_exact() {
        let longest = format!("/{}", "x".repeat(4095));
        assert!(longest.parse::<HostPath>().is_ok());
        assert!(format!("{longest}x").parse::<HostPath>().is_err());
        for bad in ["", "a", "./a", "/a\0b"] {
            assert!(bad.parse::<HostPath>().is_err(), "{bad:?}");
        }
    }
}
