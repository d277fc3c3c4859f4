//! Proves, without git, that nobody has touched a workspace since git wrote its files.
//!
//! A workspace that was made ahead may wait for days: long enough for a cleaner of temporary
//! folders to take files away, or for a process of an earlier plugin to put some there. Every file
//! must be what the index remembers, down to the inode and the time of its last change, which no
//! process can set; and there must be nothing else.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::Path,
};

use crate::index::{self, Entry};

/// Whether `folder` holds the files of the index, none without one, and nothing but `.git` beside
/// them. Blocks.
pub(crate) fn is_untouched(folder: &Path, index: Option<&[u8]>) -> bool {
    let mut files: BTreeMap<&[u8], Entry<'_>> = BTreeMap::new();
    let mut folders = BTreeSet::new();
    let Some(index) = index else {
        return matches(folder, &files, folders);
    };
    let read = index::read(index, |entry| {
        for (at, _) in entry
            .path
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'/')
        {
            folders.insert(entry.path.get(..at).unwrap_or_default());
        }
        if entry.is_link() {
            folders.insert(entry.path);
        } else {
            files.insert(entry.path, entry);
        }
    });
    read.is_some() && matches(folder, &files, folders)
}

/// Whether a folder still has what it was made with; a cleaner takes empty folders too. Blocks.
pub(crate) fn has_all(folder: &Path, names: &[&str]) -> bool {
    names
        .iter()
        .all(|name| fs_err::symlink_metadata(folder.join(name)).is_ok())
}

/// Walks the tree and strikes off what was found.
fn matches(root: &Path, files: &BTreeMap<&[u8], Entry<'_>>, mut folders: BTreeSet<&[u8]>) -> bool {
    let mut pending = vec![Vec::new()];
    let mut seen = 0;
    while let Some(folder) = pending.pop() {
        let Ok(listing) = fs_err::read_dir(root.join(OsStr::from_bytes(&folder))) else {
            return false;
        };
        for entry in listing {
            let Ok(entry) = entry else { return false };
            let name = entry.file_name();
            if folder.is_empty() && name == ".git" {
                continue;
            }
            let mut path = folder.clone();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend(name.as_bytes());
            if let Some(known) = files.get(path.as_slice()) {
                if !entry.metadata().is_ok_and(|found| is_same(known, &found)) {
                    return false;
                }
                seen += 1;
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir())
                && folders.remove(path.as_slice())
            {
                pending.push(path);
            } else {
                return false;
            }
        }
    }
    seen == files.len() && folders.is_empty()
}

/// Whether a file is still the one that git saw.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the index has the low 32 bits of each number"
)]
fn is_same(known: &Entry<'_>, found: &std::fs::Metadata) -> bool {
    let is_same_moment = |known: (u32, u32), seconds: i64, nanoseconds: i64| {
        // A git that was built without fractions of seconds leaves them out.
        known.0 == seconds as u32 && (known.1 == 0 || known.1 == nanoseconds as u32)
    };
    is_same_moment(known.changed, found.ctime(), found.ctime_nsec())
        && is_same_moment(known.modified, found.mtime(), found.mtime_nsec())
        && known.inode == found.ino() as u32
        && known.size == found.size() as u32
}
