//! The beginning of a download in a file, so that another process can go on with it.
//!
//! The file is a line that names its form, the URL, the strong tag of the whole, and then the bytes. A
//! process holds a lock on it. What is in it is believed no more than what a network brings: the
//! digest of the whole is checked at the end.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use fs_err::File;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::ResumeError;
use crate::head::is_strong;

const FORM: &[u8] = b"backplane-part 1\n";
/// The longest head: form, URL, tag.
const LONGEST_HEAD: usize = 16 * 1024;

/// The beginning of a download in a file, readable for its owner alone.
#[derive(Debug)]
pub struct ResumeFile {
    path: PathBuf,
    file: File,
    /// Whether the file has anything to go on with.
    begun: bool,
}

impl ResumeFile {
    /// Opens or makes the file and locks it; no link is followed.
    ///
    /// # Errors
    /// Another download uses it, it is none of a download, or it cannot be read and written.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, ResumeError> {
        let path = path.into();
        let file = open(&path)?;
        check(&path, &file)?;
        let mut resume = Self {
            path,
            file,
            begun: false,
        };
        let head = resume
            .head()
            .map_err(|source| failed(&resume.path, source))?;
        // A head that was cut off while it was written is ours too.
        if !head.starts_with(FORM) && !FORM.starts_with(&head) {
            let path = resume.path;
            return Err(ResumeError::Foreign { path });
        }
        resume.begun = split(&head).is_some();
        Ok(resume)
    }

    /// Returns where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file, as far as that is possible.
    pub fn remove(self) {
        // Removed under the lock, so it is this file and nobody else's.
        let _gone = fs_err::remove_file(&self.path);
    }

    /// Leaves the file for the next process, unless there is nothing in it to go on with.
    pub fn keep(self) {
        if !self.begun {
            self.remove();
        }
    }

    /// Returns tag and bytes, if they are of this URL and no more than `limit`.
    pub(crate) fn load(&mut self, url: &str, limit: usize) -> Option<(String, Vec<u8>)> {
        let head = self.head().ok()?;
        let (of, tag, start) = split(&head)?;
        if of != url {
            return None;
        }
        let (tag, start) = (tag.to_owned(), u64::try_from(start).ok()?);
        self.file.seek(SeekFrom::Start(start)).ok()?;
        let most = u64::try_from(limit).ok()?.saturating_add(1);
        let mut bytes = Vec::new();
        (&mut self.file).take(most).read_to_end(&mut bytes).ok()?;
        (1..=limit).contains(&bytes.len()).then_some((tag, bytes))
    }

    /// Starts anew.
    pub(crate) fn begin(&mut self, url: &str, tag: &str) -> io::Result<()> {
        self.clear()?;
        let mut head = FORM.to_vec();
        head.extend_from_slice(format!("{url}\n{tag}\n").as_bytes());
        self.file.write_all(&head)?;
        self.begun = true;
        Ok(())
    }

    /// Takes more; after `load` that goes behind what was loaded.
    pub(crate) fn append(&mut self, more: &[u8]) -> io::Result<()> {
        self.file.write_all(more)
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        self.begun = false;
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        Ok(())
    }

    fn head(&mut self) -> io::Result<Vec<u8>> {
        self.file.seek(SeekFrom::Start(0))?;
        let most = u64::try_from(LONGEST_HEAD).unwrap_or(u64::MAX);
        let mut head = Vec::new();
        (&mut self.file).take(most).read_to_end(&mut head)?;
        Ok(head)
    }
}

/// Returns URL, tag and where the bytes start, if the head is whole.
fn split(file: &[u8]) -> Option<(&str, &str, usize)> {
    let rest = file.strip_prefix(FORM)?;
    let mut lines = rest.splitn(3, |byte| *byte == b'\n');
    let (url, tag, bytes) = (lines.next()?, lines.next()?, lines.next()?);
    let tag = std::str::from_utf8(tag).ok().filter(|tag| is_strong(tag))?;
    let url = std::str::from_utf8(url).ok()?;
    Some((url, tag, file.len() - bytes.len()))
}

fn open(path: &Path) -> Result<File, ResumeError> {
    // A pipe must not keep us waiting.
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    match rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(File::from_parts(file.into(), path)),
        Err(Errno::LOOP | Errno::ISDIR) => Err(ResumeError::NotAFile {
            path: path.to_owned(),
        }),
        Err(error) => Err(failed(path, error.into())),
    }
}

fn check(path: &Path, file: &File) -> Result<(), ResumeError> {
    let path = || path.to_owned();
    let found = file.metadata().map_err(|source| failed(&path(), source))?;
    if !found.is_file() {
        return Err(ResumeError::NotAFile { path: path() });
    }
    if found.uid() != rustix::process::geteuid().as_raw() || found.nlink() > 1 {
        return Err(ResumeError::Foreign { path: path() });
    }
    match file.try_lock() {
        Ok(()) => {}
        Err(std::fs::TryLockError::WouldBlock) => return Err(ResumeError::InUse { path: path() }),
        Err(std::fs::TryLockError::Error(source)) => return Err(failed(&path(), source)),
    }
    // Who had the lock may have removed the file just now.
    let found = file.metadata().map_err(|source| failed(&path(), source))?;
    if found.nlink() == 0 {
        return Err(ResumeError::InUse { path: path() });
    }
    if found.mode() & 0o077 != 0 {
        let private = std::fs::Permissions::from_mode(0o600);
        let made = file.set_permissions(private);
        made.map_err(|source| failed(&path(), source))?;
    }
    Ok(())
}

fn failed(path: &Path, source: io::Error) -> ResumeError {
    ResumeError::Io {
        path: path.to_owned(),
        source,
    }
}
