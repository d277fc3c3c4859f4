//! The making of one manifest: declared paths found, threads started, findings put together.

use std::{
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use attest_receipt::declared::{Declared, is_under};
use attest_receipt::manifest::Manifest;
use blake3::Hash;
use rustix::fs::FileType;

use crate::{
    Limits, Options,
    error::{ManifestError, Role},
    folder::{Folder, Found},
    links,
    queue::Queue,
    worker::{Findings, Task, Worker, shown, special_error},
};

/// What the threads share.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) queue: Queue<Task>,
    pub(crate) threads: usize,
    limits: Limits,
    entries: AtomicUsize,
    path_bytes: AtomicUsize,
    error: Mutex<Option<ManifestError>>,
}

/// Adds what the declared paths hold to a manifest.
pub(crate) fn fill(
    mut manifest: Manifest,
    workspace: &Path,
    role: Role,
    declared: &[String],
    options: &Options,
) -> Result<Manifest, ManifestError> {
    let declared = parse(role, declared)?;
    let folder = Folder::workspace(workspace)?;
    let tasks = tasks(&folder, role, &declared)?;
    let mut findings = Job::new(tasks, *options).run()?;
    links::check(workspace, &declared, findings.links)?;
    // The stable sort merges the threads' sorted parts, and a map takes sorted keys quickest.
    findings
        .entries
        .sort_by(|(one, _), (other, _)| one.cmp(other));
    for (path, entry) in findings.entries {
        manifest
            .add(path.as_str(), entry)
            .map_err(|_| ManifestError::Name {
                path: shown(&path),
                reason: "cannot stand in a manifest",
            })?;
    }
    Ok(manifest)
}

/// Hashes one file.
pub(crate) fn hash_one(task: Task, options: Options) -> Result<[u8; 32], ManifestError> {
    let path = match &task {
        Task::Files { names, .. } => names.trim_end_matches('\0').to_owned(),
        _ => String::new(),
    };
    let findings = Job::new(vec![task], options).run()?;
    findings
        .entries
        .first()
        .and_then(|(_, entry)| Hash::from_hex(&entry.digest).ok())
        .map(|hash| *hash.as_bytes())
        .ok_or(ManifestError::Changed { path })
}

impl Job {
    fn new(tasks: Vec<Task>, options: Options) -> Self {
        Self {
            queue: Queue::new(tasks),
            threads: options.thread_count(),
            limits: options.limits,
            entries: AtomicUsize::new(0),
            path_bytes: AtomicUsize::new(0),
            error: Mutex::new(None),
        }
    }

    /// Counts an entry of a folder against the limits.
    pub(crate) fn count(&self, folder: &Folder, name: &str) -> Result<(), ManifestError> {
        let refuse = |limit| ManifestError::Limit {
            path: folder.join(name),
            limit,
        };
        let Limits {
            entries,
            path_bytes,
            depth,
        } = self.limits;
        let bytes = folder.path.len() + 1 + name.len();
        if self.entries.fetch_add(1, Ordering::Relaxed) >= entries {
            Err(refuse(format!("{entries} files, links and folders")))
        } else if self.path_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > path_bytes {
            Err(refuse(format!("{path_bytes} bytes of paths")))
        } else if folder.depth >= depth {
            Err(refuse(format!("{depth} levels of folders")))
        } else {
            Ok(())
        }
    }

    /// Keeps a fault and lets the threads end; of several the first by its text is told.
    pub(crate) fn fail(&self, error: ManifestError) {
        let mut kept = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        let earlier = kept
            .as_ref()
            .is_some_and(|kept| kept.to_string() <= error.to_string());
        if !earlier {
            *kept = Some(error);
        }
        drop(kept);
        self.queue.stop();
    }

    fn run(self) -> Result<Findings, ManifestError> {
        let mut first = Worker::new(&self);
        // A thread costs more than a few small files: the others start once there is work for them.
        let mut findings = Findings::default();
        if first.work_alone() {
            thread::scope(|scope| {
                let help = || {
                    let mut worker = Worker::new(&self);
                    worker.work();
                    worker.into_findings()
                };
                let others: Vec<_> = (1..self.threads).map(|_| scope.spawn(help)).collect();
                first.work();
                for other in others {
                    match other.join() {
                        Ok(found) => findings.append(found),
                        Err(panic) => std::panic::resume_unwind(panic),
                    }
                }
            });
        }
        findings.append(first.into_findings());
        let error = self.error.into_inner();
        match error.unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(findings),
        }
    }
}

fn parse<'a>(role: Role, declared: &'a [String]) -> Result<Vec<Declared<'a>>, ManifestError> {
    let parse = |text: &'a String| {
        Declared::parse(text).map_err(|reason| ManifestError::Declared {
            role,
            path: shown(text),
            reason,
        })
    };
    declared.iter().map(parse).collect()
}

/// Finds every declared path; what lies under another one is walked with that one.
fn tasks(
    workspace: &Arc<Folder>,
    role: Role,
    declared: &[Declared<'_>],
) -> Result<Vec<Task>, ManifestError> {
    let mut tasks = Vec::new();
    for (index, one) in declared.iter().enumerate() {
        let Found { parent, name, kind } = workspace.find(one, role)?;
        let elsewhere = |(other_index, other): (usize, &Declared<'_>)| {
            let same = other.path == one.path;
            if same {
                other_index < index
            } else {
                is_under(one.path, other.path)
            }
        };
        if declared.iter().enumerate().any(elsewhere) {
            continue;
        }
        tasks.push(match kind {
            FileType::Directory => Task::Folder { parent, name },
            FileType::Symlink => Task::Link {
                folder: parent,
                name,
            },
            FileType::RegularFile => Task::files(parent, &name),
            kind => return Err(special_error(kind, one.path.to_owned())),
        });
    }
    Ok(tasks)
}
