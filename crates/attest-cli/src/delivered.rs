//! Files that a receipt lists, hashed as they lie in a folder. No link on the way is followed.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use attest_exchange::import::{Delivered, FileHashes};
use attest_receipt::encode::{blake3_hex, hex};
use attest_receipt::manifest::check_path;
use attest_receipt::receipt::{Artifact, ArtifactKind};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat, readlinkat};
use rustix::io::{Errno, read, retry_on_intr};
use sha2::{Digest, Sha256};

const BUFFER: usize = 128 * 1024;

/// A folder with the outputs of a run.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }
}

impl Delivered for Folder {
    fn hashes(&self, artifact: &Artifact) -> Result<FileHashes, String> {
        check_path(&artifact.path).map_err(|error| error.to_string())?;
        let (above, name) = match artifact.path.rsplit_once('/') {
            Some((above, name)) => (Some(above), name),
            None => (None, artifact.path.as_str()),
        };
        let parent = self.open_folder(above).map_err(told)?;
        match artifact.kind {
            ArtifactKind::File => hash_file(&parent, name),
            ArtifactKind::Symlink => hash_link(&parent, name),
        }
    }
}

impl Folder {
    /// Opens the folder that a path leads to, component by component. Whoever names the first one
    /// may name a link.
    fn open_folder(&self, below: Option<&str>) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut at = openat(CWD, &self.0, flags, Mode::empty())?;
        for part in below.into_iter().flat_map(|below| below.split('/')) {
            at = openat(&at, part, flags | OFlags::NOFOLLOW, Mode::empty())?;
        }
        Ok(at)
    }
}

fn hash_file(parent: &OwnedFd, name: &str) -> Result<FileHashes, String> {
    // A pipe must not keep this waiting for its writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(parent, name, flags, Mode::empty()).map_err(told)?;
    let found = fstat(&file).map_err(told)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err("is not a regular file".to_owned());
    }
    let (mut blake3, mut sha256) = (blake3::Hasher::new(), Sha256::new());
    let mut buffer = vec![0; BUFFER];
    loop {
        let length = retry_on_intr(|| read(&file, buffer.as_mut_slice())).map_err(told)?;
        let Some(bytes) = buffer.get(..length).filter(|bytes| !bytes.is_empty()) else {
            break;
        };
        blake3.update(bytes);
        sha256.update(bytes);
    }
    Ok(FileHashes {
        blake3: blake3.finalize().to_hex().to_string(),
        sha256: hex(&sha256.finalize()),
    })
}

fn hash_link(parent: &OwnedFd, name: &str) -> Result<FileHashes, String> {
    let target = readlinkat(parent, name, Vec::new()).map_err(|errno| match errno {
        Errno::INVAL => "is not a symbolic link".to_owned(),
        errno => told(errno),
    })?;
    Ok(FileHashes {
        blake3: blake3_hex(target.as_bytes()),
        sha256: hex(&Sha256::digest(target.as_bytes())),
    })
}

fn told(errno: Errno) -> String {
    match errno {
        Errno::NOENT => "is not there".to_owned(),
        Errno::LOOP | Errno::NOTDIR => "is behind a link, or is one".to_owned(),
        errno => std::io::Error::from(errno).to_string(),
    }
}
