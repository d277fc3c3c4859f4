//! The manifest: one line per file, sorted, hashed.

use std::collections::BTreeMap;

use crate::receipt::ArtifactKind;

/// The first line of every manifest.
pub const HEADER: &str = "attest-manifest/v1";

/// What stands behind one `input_hash` or `output_hash`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Manifest {
    /// The hash of the command, for inputs.
    command_hash: Option<String>,
    /// Path below the workspace → kind and hash; the map keeps the order of the path's bytes.
    entries: BTreeMap<String, Entry>,
}

/// One file or link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it is.
    pub kind: ArtifactKind,
    /// BLAKE3 of the content, or of a link's target; 64 hexadecimal digits.
    pub digest: String,
}

/// Says why a path cannot stand in a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It would forge a line.
    #[error("has a control character in its name, which a manifest cannot hold")]
    ControlCharacter,
    /// It is no path below the workspace.
    #[error("is no relative path of plain names")]
    NotRelative,
}

impl Manifest {
    /// Starts the manifest of a step's inputs.
    #[must_use]
    pub fn of_inputs(command_hash: impl Into<String>) -> Self {
        Self {
            command_hash: Some(command_hash.into()),
            entries: BTreeMap::new(),
        }
    }

    /// Starts the manifest of a step's outputs.
    #[must_use]
    pub fn of_outputs() -> Self {
        Self::default()
    }

    /// Adds a file or link; one that is there already is replaced, so overlaps count once.
    ///
    /// # Errors
    /// A path that could not be told from the manifest's own lines.
    pub fn add(&mut self, path: impl Into<String>, entry: Entry) -> Result<(), PathError> {
        let path = path.into();
        check_path(&path)?;
        self.entries.insert(path, entry);
        Ok(())
    }

    /// Iterates over the entries in the order of the lines.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries
            .iter()
            .map(|(path, entry)| (path.as_str(), entry))
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Tells whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the text that is hashed.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::with_capacity(32 + self.entries.len() * 96);
        text.push_str(HEADER);
        text.push('\n');
        if let Some(hash) = &self.command_hash {
            text.push_str("run:");
            text.push_str(hash);
            text.push('\n');
        }
        for (path, entry) in &self.entries {
            text.push_str(match entry.kind {
                ArtifactKind::File => "f:",
                ArtifactKind::Symlink => "l:",
            });
            text.push_str(&entry.digest);
            text.push(' ');
            text.push_str(path);
            text.push('\n');
        }
        text
    }

    /// Returns the BLAKE3 hash of the text, 64 hexadecimal digits.
    #[must_use]
    pub fn hash(&self) -> String {
        crate::encode::blake3_hex(self.text().as_bytes())
    }
}

/// Refuses a path that is absolute, climbs, has empty or `.` components or control characters.
///
/// # Errors
/// Which of them it is.
pub fn check_path(path: &str) -> Result<(), PathError> {
    if path.chars().any(char::is_control) {
        return Err(PathError::ControlCharacter);
    }
    let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    if path.split('/').all(plain) {
        Ok(())
    } else {
        Err(PathError::NotRelative)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(digest: &str) -> Entry {
        Entry {
            kind: ArtifactKind::File,
            digest: digest.into(),
        }
    }

    #[test]
    fn an_empty_list_of_outputs_has_the_known_hash() {
        assert_eq!(
            Manifest::of_outputs().hash(),
            "95aba9c3ec14d9c6acb31a2dd401aff1b5fb3a913a0dbd59ec602fc683a6732d"
        );
    }

    #[test]
    fn lines_are_sorted_by_the_bytes_of_the_path() {
        let mut manifest = Manifest::of_inputs("c");
        for path in ["b", "a/b", "a.b", "é", "B"] {
            manifest.add(path, file("d")).unwrap();
        }
        assert_eq!(
            manifest.text(),
            "attest-manifest/v1\nrun:c\nf:d B\nf:d a.b\nf:d a/b\nf:d b\nf:d é\n"
        );
    }

    #[test]
    fn a26_paths_that_forge_a_line_or_climb_are_refused() {
        let mut manifest = Manifest::of_outputs();
        for (path, error) in [
            ("a\nf:0 b", PathError::ControlCharacter),
            ("a\u{7f}", PathError::ControlCharacter),
            ("a\u{85}", PathError::ControlCharacter),
            ("\0", PathError::ControlCharacter),
            ("/a", PathError::NotRelative),
            ("", PathError::NotRelative),
            ("a//b", PathError::NotRelative),
            ("a/./b", PathError::NotRelative),
            ("a/../b", PathError::NotRelative),
            ("a/", PathError::NotRelative),
        ] {
            assert_eq!(manifest.add(path, file("d")), Err(error), "{path:?}");
        }
        assert!(manifest.is_empty());
    }
}
