//! Which file a plugin's `argv[0]` leads to right now, and its digest, for the log.
//!
//! The program is started by the name in the configuration, so that a switch of what the name
//! leads to takes effect with the next attempt; this only records what was found.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use digest_text::Blake3Text;

/// Digests of the files seen so far, by what tells two versions of a file apart.
#[derive(Debug, Default)]
pub(crate) struct PluginIdentities {
    known: Mutex<BTreeMap<FileVersion, Blake3Text>>,
}

/// One state of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FileVersion {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

/// What a plugin's name led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The file, without links.
    pub(crate) path: PathBuf,
    /// Its digest.
    pub(crate) digest: Blake3Text,
}

/// Versions kept before all are forgotten; a Worker has at most 128 plugins.
const KNOWN: usize = 512;

impl PluginIdentities {
    /// Looks a program up. Blocks for the time it takes to read it, once for each version.
    pub(crate) fn look_up(&self, program: &Path) -> io::Result<Identity> {
        let path = program.canonicalize()?;
        let mut file = fs_err::File::open(&path)?;
        let metadata = file.metadata()?;
        let version = FileVersion {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        };
        let known = self
            .known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&version)
            .copied();
        if let Some(digest) = known {
            return Ok(Identity { path, digest });
        }
        let digest = digest(&mut file)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN {
            known.clear();
        }
        known.insert(version, digest);
        Ok(Identity { path, digest })
    }
}

fn digest(file: &mut fs_err::File) -> io::Result<Blake3Text> {
    let mut hasher = blake3::Hasher::new();
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let count = file.read(&mut chunk)?;
        if count == 0 {
            return Ok(Blake3Text::from_bytes(hasher.finalize().into()));
        }
        hasher.update(chunk.get(..count).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_switch_of_the_link_is_seen_at_the_next_look() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        for name in ["one", "two"] {
            fs_err::write(dir.join(name), name).unwrap();
        }
        let current = dir.join("current");
        symlink("one", &current).unwrap();
        let identities = PluginIdentities::default();
        let first = identities.look_up(&current).unwrap();
        assert_eq!(first.path, dir.join("one"));
        assert_eq!(first.digest, Blake3Text::of(b"one"));
        assert_eq!(identities.look_up(&current).unwrap(), first);

        symlink("two", dir.join("next")).unwrap();
        fs_err::rename(dir.join("next"), &current).unwrap();
        let second = identities.look_up(&current).unwrap();
        assert_eq!(second.path, dir.join("two"));
        assert_eq!(second.digest, Blake3Text::of(b"two"));
        assert!(identities.look_up(&dir.join("absent")).is_err());
    }
}
