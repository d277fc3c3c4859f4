//! What differs between two manifests of the same paths, for people.

use std::fmt;

use attest_receipt::manifest::Manifest;

/// How many files are named.
const NAMED: usize = 5;

/// The first files that differ, each on a line of its own, and how many more there are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    lines: Vec<String>,
    more: usize,
}

impl Changes {
    /// Compares what was there before with what is there now.
    #[must_use]
    pub fn between(before: &Manifest, after: &Manifest) -> Self {
        let mut old = before.entries().peekable();
        let mut new = after.entries().peekable();
        let mut changes = Self::default();
        loop {
            // Both are sorted by path.
            match (old.peek().copied(), new.peek().copied()) {
                (None, None) => return changes,
                (Some((path, _)), other) if other.is_none_or(|(with, _)| path < with) => {
                    changes.add("gone", path);
                    old.next();
                }
                (other, Some((path, _))) if other.is_none_or(|(with, _)| path < with) => {
                    changes.add("new", path);
                    new.next();
                }
                (was, is) => {
                    if let (Some((path, was)), Some((_, is))) = (was, is)
                        && was != is
                    {
                        changes.add("changed", path);
                    }
                    old.next();
                    new.next();
                }
            }
        }
    }

    fn add(&mut self, what: &str, path: &str) {
        if self.lines.len() < NAMED {
            let path = bounded::text::visible(path);
            self.lines.push(format!("{what}: `{path}`"));
        } else {
            self.more += 1;
        }
    }
}

impl fmt::Display for Changes {
    /// Starts with a line feed, to follow a message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            write!(f, "\n  {line}")?;
        }
        match self.more {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use attest_receipt::manifest::Entry;
    use attest_receipt::receipt::ArtifactKind;

    use super::*;

    fn manifest(entries: &[(&str, &str)]) -> Manifest {
        let mut manifest = Manifest::of_outputs();
        for (path, digest) in entries {
            let entry = Entry {
                kind: ArtifactKind::File,
                digest: (*digest).into(),
            };
            manifest.add(*path, entry).unwrap();
        }
        manifest
    }

    #[test]
    fn files_that_differ_are_told_by_what_became_of_them() {
        let before = manifest(&[("a", "1"), ("b", "1"), ("d", "1"), ("z", "1")]);
        let after = manifest(&[("b", "2"), ("c", "1"), ("d", "1"), ("e", "1")]);
        assert_eq!(
            Changes::between(&before, &after).to_string(),
            "\n  gone: `a`\n  changed: `b`\n  new: `c`\n  new: `e`\n  gone: `z`"
        );
        assert_eq!(
            Changes::between(&before, &manifest(&[])).to_string(),
            "\n  gone: `a`\n  gone: `b`\n  gone: `d`\n  gone: `z`"
        );
        assert_eq!(Changes::between(&before, &before).to_string(), "");
    }

    #[test]
    fn only_the_first_files_are_named() {
        let many: Vec<String> = (0..8).map(|number| format!("f{number}")).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "1")).collect();
        let told = Changes::between(&manifest(&[]), &manifest(&many)).to_string();
        assert!(told.ends_with("\n  new: `f4`\n  and 3 more"), "{told}");
    }
}
