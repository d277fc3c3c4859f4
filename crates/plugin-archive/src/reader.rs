//! Reads the tar stream as it comes out of the decompression.

use std::collections::{BTreeMap, BTreeSet};

use crate::budget::Budget;
use crate::error::{ArchiveError, Rule};
use crate::header::{self, BLOCK, Block, Kind};
use crate::path::check_path;
use crate::{Limits, Snapshot};

pub(crate) struct Reader {
    budget: Budget,
    state: State,
    block: Block,
    number: u64,
    /// The name of the entry at hand, for messages.
    name: Vec<u8>,
    snapshot: Snapshot,
    folders: BTreeSet<String>,
}

enum State {
    Header {
        filled: usize,
    },
    Body {
        path: String,
        contents: Vec<u8>,
        left: usize,
        padding: usize,
    },
    Padding {
        left: usize,
    },
    End {
        bytes: u64,
    },
}

impl Reader {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            budget: Budget::new(limits),
            state: State::Header { filled: 0 },
            block: [0; BLOCK],
            number: 0,
            name: Vec::new(),
            snapshot: Snapshot::default(),
            folders: BTreeSet::new(),
        }
    }

    pub(crate) fn feed(&mut self, mut bytes: &[u8]) -> Result<(), ArchiveError> {
        while !bytes.is_empty() {
            let taken = self.step(bytes).map_err(|rule| self.error(rule))?;
            bytes = bytes.get(taken..).unwrap_or_default();
        }
        Ok(())
    }

    fn error(&self, rule: Rule) -> ArchiveError {
        // at the end of an archive there is no entry that could be named
        match self.state {
            State::End { .. } => ArchiveError::whole(rule),
            _ => ArchiveError::at(self.number, &self.name, rule),
        }
    }

    fn step(&mut self, bytes: &[u8]) -> Result<usize, Rule> {
        match &mut self.state {
            State::Header { filled } => {
                let (_, empty) = self.block.split_at_mut(*filled);
                let taken = bytes.len().min(empty.len());
                for (to, from) in empty.iter_mut().zip(bytes) {
                    *to = *from;
                }
                *filled += taken;
                if *filled == BLOCK {
                    self.entry()?;
                }
                Ok(taken)
            }
            State::Body { contents, left, .. } => {
                let taken = bytes.len().min(*left);
                contents.extend_from_slice(bytes.get(..taken).unwrap_or_default());
                *left -= taken;
                if *left == 0 {
                    self.end_of_body();
                }
                Ok(taken)
            }
            State::Padding { left } => {
                let taken = bytes.len().min(*left);
                zero(bytes.iter().take(taken), Rule::TarPadding)?;
                *left -= taken;
                if *left == 0 {
                    self.state = State::Header { filled: 0 };
                }
                Ok(taken)
            }
            State::End { bytes: seen } => {
                zero(bytes.iter(), Rule::TarTrailing)?;
                *seen += bytes.len() as u64;
                Ok(bytes.len())
            }
        }
    }

    fn entry(&mut self) -> Result<(), Rule> {
        if self.block.iter().all(|byte| *byte == 0) {
            self.state = State::End {
                bytes: BLOCK as u64,
            };
            return Ok(());
        }
        self.number += 1;
        self.name = header::raw_path(&self.block);
        self.budget.next_entry()?;
        let header = header::parse(&self.block)?;
        let path = std::str::from_utf8(&self.name)
            .map_err(|_| Rule::PathUtf8)?
            .to_owned();
        match header.kind {
            Kind::Folder => self.folder(path)?,
            Kind::File => self.file(path, header.mode, header.size)?,
        }
        Ok(())
    }

    fn folder(&mut self, mut path: String) -> Result<(), Rule> {
        if path.len() > 1 && path.ends_with('/') {
            path.pop();
        }
        self.check(&path)?;
        if self.snapshot.files.contains_key(&path) {
            return Err(Rule::Conflict);
        }
        if !self.folders.insert(path) {
            return Err(Rule::Duplicate);
        }
        self.state = State::Header { filled: 0 };
        Ok(())
    }

    fn file(&mut self, path: String, mode: u32, size: u64) -> Result<(), Rule> {
        self.check(&path)?;
        if self.snapshot.files.contains_key(&path) {
            return Err(Rule::Duplicate);
        }
        if self.folders.contains(&path)
            || has_below(&self.snapshot.files, &path)
            || has_folder_below(&self.folders, &path)
        {
            return Err(Rule::Conflict);
        }
        self.budget.contents(size)?;
        let size = usize::try_from(size).map_err(|_| Rule::HeaderSize)?;
        self.snapshot.modes.insert(path.clone(), mode);
        let padding = size.next_multiple_of(BLOCK) - size;
        // as large as the limits allow at most, and exactly as large as it will be
        self.state = State::Body {
            path,
            contents: Vec::with_capacity(size),
            left: size,
            padding,
        };
        if size == 0 {
            self.end_of_body();
        }
        Ok(())
    }

    fn check(&self, path: &str) -> Result<(), Rule> {
        check_path(path)?;
        self.budget.depth(path)?;
        let mut above = path.match_indices('/').map(|(at, _)| &path[..at]);
        if above.any(|folder| self.snapshot.files.contains_key(folder)) {
            Err(Rule::Conflict)
        } else {
            Ok(())
        }
    }

    fn end_of_body(&mut self) {
        let state = std::mem::replace(&mut self.state, State::Header { filled: 0 });
        if let State::Body {
            path,
            contents,
            padding,
            ..
        } = state
        {
            self.snapshot.files.insert(path, contents);
            if padding > 0 {
                self.state = State::Padding { left: padding };
            }
        }
    }

    pub(crate) fn finish(self) -> Result<Snapshot, ArchiveError> {
        match self.state {
            State::End { bytes } if bytes < 2 * BLOCK as u64 => {
                Err(ArchiveError::whole(Rule::TarEnd))
            }
            State::End { bytes } if bytes % BLOCK as u64 != 0 => {
                Err(ArchiveError::whole(Rule::TarTruncated))
            }
            State::End { .. } => Ok(self.snapshot),
            State::Header { filled: 0 } => Err(ArchiveError::whole(Rule::TarEnd)),
            State::Header { .. } => Err(ArchiveError::whole(Rule::TarTruncated)),
            State::Body { .. } | State::Padding { .. } => Err(self.error(Rule::TarTruncated)),
        }
    }
}

fn zero<'a>(mut bytes: impl Iterator<Item = &'a u8>, rule: Rule) -> Result<(), Rule> {
    if bytes.all(|byte| *byte == 0) {
        Ok(())
    } else {
        Err(rule)
    }
}

/// Folders that have no entry of their own are kept nowhere: the order of the names tells them.
pub(crate) fn has_below<T>(files: &BTreeMap<String, T>, path: &str) -> bool {
    let below = format!("{path}/");
    files
        .range(below.clone()..)
        .next()
        .is_some_and(|(name, _)| name.starts_with(&below))
}

fn has_folder_below(folders: &BTreeSet<String>, path: &str) -> bool {
    let below = format!("{path}/");
    folders
        .range(below.clone()..)
        .next()
        .is_some_and(|name| name.starts_with(&below))
}
