//! Counting against the limits, the same for archives and for folders that become archives.

use crate::Limits;
use crate::error::{ArchiveError, LimitName, Rule};

/// What has been taken of the limits so far.
#[derive(Debug, Clone)]
pub struct Budget {
    limits: Limits,
    entries: u64,
    files: u64,
    total_bytes: u64,
}

impl Budget {
    /// Nothing taken.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self {
            limits: *limits,
            entries: 0,
            files: 0,
            total_bytes: 0,
        }
    }

    /// The limits that it counts against.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Takes a file or folder.
    ///
    /// # Errors
    ///
    /// One entry too many, or a path with too many components.
    pub fn entry(&mut self, path: &str) -> Result<(), ArchiveError> {
        self.next_entry()
            .and_then(|()| self.depth(path))
            .map_err(|rule| ArchiveError::at(0, path.as_bytes(), rule))
    }

    /// Takes the contents of a file that was taken by [`Budget::entry`].
    ///
    /// # Errors
    ///
    /// One file too many, or too many bytes in it or in all files.
    pub fn file(&mut self, path: &str, bytes: u64) -> Result<(), ArchiveError> {
        self.contents(bytes)
            .map_err(|rule| ArchiveError::at(0, path.as_bytes(), rule))
    }

    pub(crate) fn next_entry(&mut self) -> Result<(), Rule> {
        self.entries = self.entries.saturating_add(1);
        within(LimitName::Entries, self.entries, self.limits.entries)
    }

    pub(crate) fn depth(&self, path: &str) -> Result<(), Rule> {
        let components = path.split('/').count() as u64;
        within(LimitName::Depth, components, self.limits.depth)
    }

    pub(crate) fn contents(&mut self, bytes: u64) -> Result<(), Rule> {
        self.files = self.files.saturating_add(1);
        within(LimitName::Files, self.files, self.limits.files)?;
        within(LimitName::FileBytes, bytes, self.limits.file_bytes)?;
        self.total_bytes = self.total_bytes.saturating_add(bytes);
        within(
            LimitName::TotalBytes,
            self.total_bytes,
            self.limits.total_bytes,
        )
    }
}

pub(crate) fn within(name: LimitName, value: u64, limit: u64) -> Result<(), Rule> {
    if value <= limit {
        Ok(())
    } else {
        Err(Rule::Limit { name, limit })
    }
}
