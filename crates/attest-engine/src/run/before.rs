//! What is looked at before anything of a pipeline runs.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use attest_receipt::pipeline::{MAX_BYTES, Pipeline};
use rustix::fs::{Access, CWD, FlockOperation, Mode, OFlags, access, flock, openat};
use rustix::io::Errno;

use super::conclude::check_place;
use super::{LoadKey, Place, RunError, RunOptions};
use crate::hooks::Hooks;
use crate::layout::{FOLDER, State};
use crate::output::Observer;

/// How often a workspace that another run holds is looked at again.
const AGAIN: Duration = Duration::from_millis(50);

/// Reads a pipeline file.
///
/// # Errors
/// It cannot be read, or is no pipeline.
pub fn load(path: &Path) -> Result<Pipeline, RunError> {
    let failed = |source: Box<dyn std::error::Error + Send + Sync>| RunError::PipelineFile {
        path: path.to_owned(),
        source,
    };
    let bytes = safe_fs::read_bounded(path, MAX_BYTES as u64).map_err(|e| failed(e.into()))?;
    Pipeline::read(&bytes).map_err(|error| failed(error.into()))
}

/// Refuses a run that could not end well, before it starts, and finds the receipt's file.
pub(super) fn check(
    options: &RunOptions<'_>,
    hooks: &dyn Hooks,
) -> Result<Option<PathBuf>, RunError> {
    let state = &options.state;
    state.check()?;
    check_key(options.signing)?;
    state.make()?;
    let target = check_place(&options.place)?;
    refuse_plugins(state, hooks)?;
    if options.place != Place::Memory {
        writable(&state.ledger())?;
    }
    if options.place == Place::Receipts {
        writable(&state.receipts())?;
    }
    Ok(target)
}

/// Finds out that a key cannot sign before something runs that would be in vain.
pub(crate) fn check_key(signing: Option<&dyn LoadKey>) -> Result<(), RunError> {
    signing.map_or(Ok(()), LoadKey::check)
}

/// Plugins that are declared are asked or refused, never ignored.
///
/// # Errors
/// They are declared, and `hooks` asks nobody.
pub fn refuse_plugins(state: &State, hooks: &dyn Hooks) -> Result<(), RunError> {
    if hooks.know_declarations() {
        return Ok(());
    }
    let path = state.workspace().join(FOLDER).join("plugins.toml");
    match fs_err::symlink_metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        _ => Err(RunError::PluginsDeclared { path }),
    }
}

fn writable(folder: &Path) -> Result<(), RunError> {
    access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(|errno| RunError::Write {
        what: "into the state folder",
        source: format!("`{}`: {}", folder.display(), io::Error::from(errno)).into(),
    })
}

/// Keeps other runs of the workspace out until it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    /// Closing the descriptor ends the lock; commands do not inherit it.
    _workspace: Option<OwnedFd>,
}

/// Waits until no other run of a pipeline works in the workspace: each would hash what the other
/// one writes. The lock is on the folder itself, so that it needs no file and no write permission.
pub(super) async fn hold(
    options: &RunOptions<'_>,
    observer: &dyn Observer,
) -> Result<Held, RunError> {
    let workspace = options.state.workspace();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder =
        openat(CWD, workspace, flags, Mode::empty()).map_err(|errno| RunError::Internal {
            what: "cannot open the workspace",
            source: io::Error::from(errno).into(),
        })?;
    let mut told = false;
    loop {
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                return Ok(Held {
                    _workspace: Some(folder),
                });
            }
            Err(Errno::WOULDBLOCK) => {}
            Err(Errno::INTR) => continue,
            // A file system without locks: nobody can be kept out.
            Err(_) => return Ok(Held { _workspace: None }),
        }
        // A step that runs its own pipeline again would wait for itself.
        if options.environment.get("ATTEST_STEP_NAME").is_some() {
            return Err(RunError::Nested);
        }
        if !told {
            observer.waiting("waiting for another run in this workspace to end");
            told = true;
        }
        tokio::select! {
            () = options.cancel.cancelled() => return Err(RunError::Cancelled),
            () = tokio::time::sleep(AGAIN) => {}
        }
    }
}
