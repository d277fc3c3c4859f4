//! Declared paths: literal, relative, spelled in one way.

use crate::manifest::{PathError, check_path};

/// Why a text cannot be a declared path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DeclaredError {
    /// There is no text.
    #[error("is empty")]
    Empty,
    /// It starts at the root of the file system.
    #[error("is absolute; declared paths are relative to the workspace")]
    Absolute,
    /// It would forge a line of the manifest, or cannot be opened at all.
    #[error("has a control character in its name, which a manifest cannot hold")]
    ControlCharacter,
    /// It climbs, or spells a path in a second way.
    #[error("has an empty, `.` or `..` component")]
    NotPlain,
}

/// A path that a step declares, below the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared<'a> {
    /// As it was declared.
    pub text: &'a str,
    /// Without decoration; empty for the workspace itself.
    pub path: &'a str,
    /// Only a folder answers to it.
    pub folder: bool,
}

impl<'a> Declared<'a> {
    /// Takes `a/b`, `a/b/` and `./a`; `.` is the workspace itself.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &'a str) -> Result<Self, DeclaredError> {
        if text.is_empty() {
            return Err(DeclaredError::Empty);
        }
        if text.starts_with('/') {
            return Err(DeclaredError::Absolute);
        }
        let below = if text == "." {
            ""
        } else {
            text.strip_prefix("./").unwrap_or(text)
        };
        let path = below.strip_suffix('/').unwrap_or(below);
        let folder = path.len() < below.len() || below.is_empty();
        if !below.is_empty() {
            check_path(path).map_err(|error| match error {
                PathError::ControlCharacter => DeclaredError::ControlCharacter,
                PathError::NotRelative => DeclaredError::NotPlain,
            })?;
        }
        Ok(Self { text, path, folder })
    }

    /// Tells whether a path below the workspace is this one or lies under it.
    #[must_use]
    pub fn covers(&self, path: &str) -> bool {
        is_under(path, self.path)
    }
}

/// Tells whether `path` is `root` or lies under it; the empty root is the workspace.
#[must_use]
pub fn is_under(path: &str, root: &str) -> bool {
    root.is_empty()
        || path
            .strip_prefix(root)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Says whether a text may be declared as an input or output.
///
/// # Errors
/// What is wrong with it.
pub fn check_declared(text: &str) -> Result<(), DeclaredError> {
    Declared::parse(text).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_path_is_taken_bare_with_a_slash_and_with_a_dot() {
        for (text, path, folder) in [
            ("src", "src", false),
            ("src/", "src", true),
            ("./src/a b", "src/a b", false),
            ("./.x/", ".x", true),
            (".", "", true),
            ("./", "", true),
            ("src/*.txt", "src/*.txt", false),
        ] {
            let expected = Declared { text, path, folder };
            assert_eq!(Declared::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a26_declared_paths_that_climb_or_hide_are_refused() {
        for (text, error) in [
            ("", DeclaredError::Empty),
            ("/", DeclaredError::Absolute),
            ("/etc/passwd", DeclaredError::Absolute),
            ("..", DeclaredError::NotPlain),
            ("../", DeclaredError::NotPlain),
            ("../a", DeclaredError::NotPlain),
            ("a/..", DeclaredError::NotPlain),
            ("a/../b", DeclaredError::NotPlain),
            ("a/./b", DeclaredError::NotPlain),
            ("a/.", DeclaredError::NotPlain),
            ("a//b", DeclaredError::NotPlain),
            ("a//", DeclaredError::NotPlain),
            (".//a", DeclaredError::NotPlain),
            ("././a", DeclaredError::NotPlain),
            (".//", DeclaredError::NotPlain),
            ("a\nf:0 b", DeclaredError::ControlCharacter),
            ("a\0", DeclaredError::ControlCharacter),
            ("\u{9b}a", DeclaredError::ControlCharacter),
        ] {
            assert_eq!(check_declared(text), Err(error), "{text:?}");
        }
    }

    #[test]
    fn a_folder_covers_what_is_under_it_and_not_what_starts_alike() {
        let declared = Declared::parse("a/b/").unwrap();
        assert!(declared.covers("a/b"));
        assert!(declared.covers("a/b/c"));
        assert!(!declared.covers("a/bc"));
        assert!(!declared.covers("a"));
        assert!(Declared::parse(".").unwrap().covers("anything"));
    }
}
