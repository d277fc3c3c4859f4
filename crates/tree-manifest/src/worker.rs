//! One thread's part: folders are listed, files hashed, large files shared with the others.

use std::{ffi::CStr, iter, sync::Arc};

use attest_receipt::{encode::blake3_hex, manifest::Entry, receipt::ArtifactKind};
use rustix::{
    fs::{Dir, FileType, readlinkat},
    io::Errno,
};

use crate::{
    error::ManifestError,
    file::{self, BUFFER, Large, Opened},
    folder::Folder,
    job::Job,
    links::Link,
};

/// How many files go to a thread at a time.
const BATCH: usize = 64;

/// A piece of the work.
#[derive(Debug)]
pub(crate) enum Task {
    /// List a folder.
    Folder { parent: Arc<Folder>, name: String },
    /// Hash files of a folder; a NUL ends each name.
    Files { folder: Arc<Folder>, names: String },
    /// Note a link.
    Link { folder: Arc<Folder>, name: String },
    /// Help with a large file.
    Large(Arc<Large>),
}

/// What a thread found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) entries: Vec<(String, Entry)>,
    pub(crate) links: Vec<Link>,
}

impl Findings {
    pub(crate) fn append(&mut self, mut other: Self) {
        self.entries.append(&mut other.entries);
        self.links.append(&mut other.links);
    }
}

/// One thread's state.
#[derive(Debug)]
pub(crate) struct Worker<'a> {
    job: &'a Job,
    buffer: Vec<u8>,
    findings: Findings,
    /// The other threads are not started.
    alone: bool,
}

impl Task {
    pub(crate) fn files(folder: Arc<Folder>, name: &str) -> Self {
        Self::Files {
            folder,
            names: format!("{name}\0"),
        }
    }
}

impl<'a> Worker<'a> {
    pub(crate) fn new(job: &'a Job) -> Self {
        Self {
            job,
            buffer: vec![0; BUFFER],
            findings: Findings::default(),
            alone: false,
        }
    }

    /// Works until there is enough for other threads, or nothing; tells whether there is enough.
    pub(crate) fn work_alone(&mut self) -> bool {
        self.alone = self.job.threads > 1;
        while self.step() {
            if self.alone && self.job.queue.len() > 1 {
                self.alone = false;
                return true;
            }
        }
        false
    }

    /// Works until nothing is left.
    pub(crate) fn work(&mut self) {
        while self.step() {}
    }

    fn step(&mut self) -> bool {
        let Some((task, _running)) = self.job.queue.take() else {
            return false;
        };
        if let Err(error) = self.run(task) {
            self.job.fail(error);
        }
        true
    }

    /// Hands over what was found, sorted by path while every thread sorts its own.
    pub(crate) fn into_findings(mut self) -> Findings {
        let entries = &mut self.findings.entries;
        entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        self.findings
    }

    fn run(&mut self, task: Task) -> Result<(), ManifestError> {
        match task {
            Task::Folder { parent, name } => self.list(&parent, &name),
            Task::Files { folder, names } => names
                .split_terminator('\0')
                .try_for_each(|name| self.hash(&folder, name)),
            Task::Link { folder, name } => self.note_link(&folder, &name),
            Task::Large(large) => self.help(&large),
        }
    }

    fn list(&mut self, parent: &Folder, name: &str) -> Result<(), ManifestError> {
        let folder = Arc::new(parent.open(name)?);
        let fault = |errno: Errno| ManifestError::io("list", &folder.path, errno);
        let mut names = String::new();
        let mut count = 0;
        let mut folders = Vec::new();
        let mut dir = Dir::read_from(&folder.fd).map_err(fault)?;
        while let Some(entry) = dir.read() {
            let entry = entry.map_err(fault)?;
            if matches!(entry.file_name().to_bytes(), b"." | b"..") {
                continue;
            }
            let name = self.admit(&folder, entry.file_name())?;
            let kind = match entry.file_type() {
                FileType::Unknown => folder.kind(name).map_err(fault)?,
                kind => kind,
            };
            match kind {
                FileType::RegularFile => {
                    names.push_str(name);
                    names.push('\0');
                    count += 1;
                    if count == BATCH {
                        count = 0;
                        self.job.queue.add([Task::Files {
                            folder: Arc::clone(&folder),
                            names: std::mem::take(&mut names),
                        }]);
                    }
                }
                FileType::Directory => folders.push(Task::Folder {
                    parent: Arc::clone(&folder),
                    name: name.to_owned(),
                }),
                FileType::Symlink => self.note_link(&folder, name)?,
                kind => return Err(special_error(kind, folder.join(name))),
            }
        }
        self.job.queue.add_later(folders);
        if !names.is_empty() {
            self.job.queue.add([Task::Files { folder, names }]);
        }
        Ok(())
    }

    /// Checks a name and counts it.
    fn admit<'n>(&self, folder: &Folder, name: &'n CStr) -> Result<&'n str, ManifestError> {
        let refuse = |reason| ManifestError::Name {
            path: shown(&folder.join(&name.to_string_lossy())),
            reason,
        };
        let Ok(text) = name.to_str() else {
            return Err(refuse("has a name that is not UTF-8"));
        };
        if text.chars().any(char::is_control) {
            return Err(refuse(
                "has a control character in its name, which a manifest cannot hold",
            ));
        }
        self.job.count(folder, text)?;
        Ok(text)
    }

    fn hash(&mut self, folder: &Folder, name: &str) -> Result<(), ManifestError> {
        let path = folder.join(name);
        match file::open(folder, name, &path, &mut self.buffer)? {
            Opened::Done(hash) => {
                self.add(path, ArtifactKind::File, hash.to_hex().to_string());
                Ok(())
            }
            Opened::Large(large) => {
                let large = Arc::<Large>::from(large);
                let share = || Task::Large(Arc::clone(&large));
                let shares = iter::repeat_with(share).take(self.job.threads);
                if self.alone {
                    // Whoever works at it now would keep the others from being started.
                    self.job.queue.add(shares);
                    return Ok(());
                }
                self.job.queue.add(shares.skip(1));
                self.help(&large)
            }
        }
    }

    fn help(&mut self, large: &Large) -> Result<(), ManifestError> {
        if let Some(hash) = large.work(&mut self.buffer)? {
            let digest = hash.to_hex().to_string();
            self.add(large.path.clone(), ArtifactKind::File, digest);
        }
        Ok(())
    }

    fn note_link(&mut self, folder: &Folder, name: &str) -> Result<(), ManifestError> {
        let path = folder.join(name);
        let target = match readlinkat(&folder.fd, name, Vec::new()) {
            Ok(target) => target,
            Err(Errno::INVAL | Errno::NOENT) => return Err(ManifestError::Changed { path }),
            Err(errno) => return Err(ManifestError::io("read", &path, errno)),
        };
        let Ok(target) = target.into_string() else {
            return Err(ManifestError::Name {
                path,
                reason: "is a symlink whose target is not UTF-8",
            });
        };
        let digest = blake3_hex(target.as_bytes());
        self.add(path.clone(), ArtifactKind::Symlink, digest);
        self.findings.links.push(Link { path, target });
        Ok(())
    }

    fn add(&mut self, path: String, kind: ArtifactKind, digest: String) {
        self.findings.entries.push((path, Entry { kind, digest }));
    }
}

/// Names what is neither file nor folder nor link.
pub(crate) fn special(kind: FileType) -> Option<&'static str> {
    match kind {
        FileType::RegularFile => None,
        FileType::Directory => Some("folder"),
        FileType::Symlink => Some("symlink"),
        FileType::Fifo => Some("FIFO"),
        FileType::Socket => Some("socket"),
        FileType::CharacterDevice | FileType::BlockDevice => Some("device"),
        FileType::Unknown => Some("thing of an unknown kind"),
    }
}

pub(crate) fn special_error(kind: FileType, path: String) -> ManifestError {
    ManifestError::Special {
        path,
        kind: special(kind).unwrap_or("file"),
    }
}

/// Makes a text from the disk safe to show on one line.
pub(crate) fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}
