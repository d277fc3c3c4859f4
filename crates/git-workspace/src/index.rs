//! Reads from our own index what git would not tell without another process: which entries are
//! links to commits (submodules), what each file looked like when git wrote it, and whether git
//! could overlook an edit of one of them.
//!
//! Git takes a file for unchanged if its size and times are those of the index, down to seconds
//! only in the usual build, unless the file was *modified* as late as the index was written. A
//! file whose modification time was put back evades that: edited again in the same second, with
//! the same size and the time put back once more, it looks unchanged. [`Facts::may_hide_edits`]
//! tells, by the change time, that there is such a file.
//!
//! The format is git's documented index format, versions 2 and 3; the version is pinned by the
//! configuration of every run. Asking git for the same would cost one more process per attempt.

use std::collections::BTreeMap;

/// The name of an object.
pub(crate) type ObjectName = [u8; 20];

/// The entries with mode 160000: path and commit.
pub(crate) type Gitlinks = BTreeMap<Vec<u8>, ObjectName>;

/// What an index says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) links: Gitlinks,
    /// The `.gitattributes` files, which say how others are written.
    pub(crate) attributes: BTreeMap<Vec<u8>, ObjectName>,
    /// Whether git could take an edited file for an unchanged one.
    pub(crate) may_hide_edits: bool,
}

/// A moment as the index has it: seconds and nanoseconds, cut to 32 bits.
pub(crate) type Moment = (u32, u32);

/// One entry of an index: what a file is, and what git saw of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) path: &'a [u8],
    pub(crate) changed: Moment,
    pub(crate) modified: Moment,
    pub(crate) inode: u32,
    pub(crate) mode: u32,
    pub(crate) size: u32,
    name: ObjectName,
}

impl Entry<'_> {
    /// Whether this is a link to a commit, a submodule.
    pub(crate) fn is_link(&self) -> bool {
        self.mode == GITLINK
    }
}

const HEADER: usize = 12;
const MODIFIED_AT: usize = 8;
/// After times and device.
const INODE_AT: usize = 20;
const MODE_AT: usize = 24;
/// After owner and group.
const SIZE_AT: usize = 36;
const NAME_AT: usize = 40;
const FLAGS_AT: usize = 60;
const PATH_AT: usize = 62;
const GITLINK: u32 = 0o160_000;
const EXTENDED: u16 = 0x4000;

/// Reads an index that was written in the second `written`; `None` if it is no such index.
pub(crate) fn facts(index: &[u8], written: i64) -> Option<Facts> {
    let mut facts = Facts::default();
    read(index, |entry| {
        facts.may_hide_edits |=
            i64::from(entry.changed.0) >= written && i64::from(entry.modified.0) < written;
        if entry.path.rsplit(|byte| *byte == b'/').next() == Some(b".gitattributes") {
            facts.attributes.insert(entry.path.to_vec(), entry.name);
        }
        if entry.is_link() {
            facts.links.insert(entry.path.to_vec(), entry.name);
        }
    })?;
    Some(facts)
}

/// Hands over each entry of an index, in their order.
pub(crate) fn read<'a>(index: &'a [u8], mut each: impl FnMut(Entry<'a>)) -> Option<()> {
    let signature = index.get(..4)?;
    let version = number(index, 4)?;
    if signature != b"DIRC" || !matches!(version, 2 | 3) {
        return None;
    }
    let mut at = HEADER;
    for _ in 0..number(index, 8)? {
        let entry = index.get(at..)?;
        let flags = u16::from_be_bytes(entry.get(FLAGS_AT..PATH_AT)?.try_into().ok()?);
        let path_at = if flags & EXTENDED == 0 {
            PATH_AT
        } else {
            PATH_AT + 2
        };
        let rest = entry.get(path_at..)?;
        let path = rest.get(..rest.iter().position(|byte| *byte == 0)?)?;
        each(Entry {
            path,
            changed: (number(entry, 0)?, number(entry, 4)?),
            modified: (number(entry, MODIFIED_AT)?, number(entry, MODIFIED_AT + 4)?),
            inode: number(entry, INODE_AT)?,
            mode: number(entry, MODE_AT)?,
            size: number(entry, SIZE_AT)?,
            name: entry.get(NAME_AT..FLAGS_AT)?.try_into().ok()?,
        });
        // One to eight NUL bytes fill the entry up to a multiple of eight.
        at = at.checked_add((path_at + path.len() + 8) & !7)?;
    }
    Some(())
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(
        bytes.get(at..at.checked_add(4)?)?.try_into().ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gitlinks(index: &[u8]) -> Option<Gitlinks> {
        facts(index, 1).map(|facts| facts.links)
    }

    fn index(entries: &[(&str, u32)]) -> Vec<u8> {
        let mut bytes = b"DIRC".to_vec();
        bytes.extend(2_u32.to_be_bytes());
        bytes.extend(u32::try_from(entries.len()).unwrap().to_be_bytes());
        for (path, mode) in entries {
            let start = bytes.len();
            bytes.extend([0; MODE_AT]);
            bytes.extend(mode.to_be_bytes());
            bytes.extend([0; 12]);
            bytes.extend([7; 20]);
            bytes.extend(u16::try_from(path.len()).unwrap().to_be_bytes());
            bytes.extend(path.bytes());
            bytes.push(0);
            while !(bytes.len() - start).is_multiple_of(8) {
                bytes.push(0);
            }
        }
        bytes
    }

    #[test]
    fn links_are_found_between_files_of_all_lengths() {
        for length in 1..20 {
            let (before, after) = ("a".repeat(length), "z".repeat(length));
            let bytes = index(&[(&before, 0o100_644), ("sub", GITLINK), (&after, 0o120_000)]);
            let links = gitlinks(&bytes).unwrap();
            assert_eq!(
                links.into_iter().collect::<Vec<_>>(),
                [(b"sub".to_vec(), [7; 20])]
            );
        }
    }

    #[test]
    fn a_time_put_back_in_the_second_of_writing_may_hide_edits() {
        let mut bytes = index(&[("file", 0o100_644)]);
        let mut hides = |changed: u8, modified: u8, written| {
            (bytes[HEADER + 3], bytes[HEADER + MODIFIED_AT + 3]) = (changed, modified);
            facts(&bytes, written).unwrap().may_hide_edits
        };
        assert!(hides(10, 4, 10));
        assert!(hides(11, 4, 10));
        assert!(!hides(9, 4, 10), "a later edit has a later change time");
        assert!(!hides(10, 10, 10), "git compares the content itself");
    }

    #[test]
    fn every_cut_is_noticed() {
        let bytes = index(&[("file", 0o100_644), ("sub", GITLINK)]);
        assert!(gitlinks(&bytes).is_some());
        for end in 0..bytes.len() - 8 {
            assert!(gitlinks(&bytes[..end]).is_none(), "cut at {end}");
        }
    }

    #[test]
    fn other_formats_are_refused() {
        let mut bytes = index(&[]);
        bytes[7] = 4;
        assert!(gitlinks(&bytes).is_none());
        assert!(gitlinks(b"TREE").is_none());
        assert!(gitlinks(b"").is_none());
    }
}
