//! Reads from our own index which of its entries are links to commits (submodules).
//!
//! The format is git's documented index format, versions 2 and 3; the version is pinned by the
//! configuration of every run. Asking git for the same would cost one more process per attempt.

use std::collections::BTreeMap;

/// The entries with mode 160000: path and commit.
pub(crate) type Gitlinks = BTreeMap<Vec<u8>, [u8; 20]>;

const HEADER: usize = 12;
/// Times, device, inode, mode, owner, group and size, before the object name.
const MODE_AT: usize = 24;
const NAME_AT: usize = 40;
const FLAGS_AT: usize = 60;
const PATH_AT: usize = 62;
const GITLINK: u32 = 0o160_000;
const EXTENDED: u16 = 0x4000;

/// Returns the links to commits, or `None` if this is not such an index.
pub(crate) fn gitlinks(index: &[u8]) -> Option<Gitlinks> {
    let signature = index.get(..4)?;
    let version = number(index, 4)?;
    if signature != b"DIRC" || !matches!(version, 2 | 3) {
        return None;
    }
    let mut links = Gitlinks::new();
    let mut at = HEADER;
    for _ in 0..number(index, 8)? {
        let entry = index.get(at..)?;
        let mode = number(entry, MODE_AT)?;
        let flags = u16::from_be_bytes(entry.get(FLAGS_AT..PATH_AT)?.try_into().ok()?);
        let path_at = if flags & EXTENDED == 0 {
            PATH_AT
        } else {
            PATH_AT + 2
        };
        let rest = entry.get(path_at..)?;
        let path = rest.get(..rest.iter().position(|byte| *byte == 0)?)?;
        if mode == GITLINK {
            links.insert(
                path.to_vec(),
                entry.get(NAME_AT..FLAGS_AT)?.try_into().ok()?,
            );
        }
        // One to eight NUL bytes fill the entry up to a multiple of eight.
        at = at.checked_add((path_at + path.len() + 8) & !7)?;
    }
    Some(links)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(
        bytes.get(at..at.checked_add(4)?)?.try_into().ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

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
