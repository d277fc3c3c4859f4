//! A directory that is there whole or not at all: written beside its place, then moved there.
//!
//! Whoever is killed meanwhile leaves a directory of a name that only this makes. It holds a lock
//! for as long as its writer lives, so the next writer tells it from one that is in use.

use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cli_shell::CliError;
use fs_err::os::unix::fs::OpenOptionsExt;
use plugin_archive::{DEFAULT_MODE, Snapshot};
use safe_fs::{LockGuard, PrivateTempDir, SafeFsError, lock_exclusive};

const PREFIX: &str = ".backplane-unpack-";
/// How many digits follow it.
const DIGITS: usize = 16;
const LOCK: &str = "lock";
const TREE: &str = "tree";
/// A directory with more entries is not read to its end: this is tidying, and somebody waits.
const ENTRIES: usize = 10_000;
/// How often another sweeper may take a stage before it is locked.
const ATTEMPTS: usize = 8;

/// The place of a directory that is to be made.
pub(crate) struct Target {
    parent: PathBuf,
    place: PathBuf,
    /// As it was given.
    named: PathBuf,
}

impl Target {
    /// Finds the place, and refuses one where something is.
    pub(crate) fn find(path: &Path) -> Result<Self, CliError> {
        let place = place(path)?;
        let parent = place.parent().unwrap_or(Path::new("/")).to_owned();
        let target = Self {
            parent,
            place,
            named: path.to_owned(),
        };
        target.check_free()?;
        Ok(target)
    }

    fn check_free(&self) -> Result<(), CliError> {
        let found = match fs_err::symlink_metadata(&self.place) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(CliError::operation(error)),
        };
        if !found.is_dir() {
            return Err(self.taken("is there already, and is no directory"));
        }
        let mut entries = fs_err::read_dir(&self.place).map_err(CliError::operation)?;
        if entries.next().is_some() {
            return Err(self.taken("is a directory that is not empty"));
        }
        let here = std::env::current_dir().ok();
        if here.is_some_and(|here| here == self.place) {
            return Err(self.taken("is the directory that you are in, which would be replaced"));
        }
        Ok(())
    }

    /// Says why the directory did not get its name.
    fn unnamed(&self, error: std::io::Error) -> CliError {
        match error.kind() {
            ErrorKind::DirectoryNotEmpty | ErrorKind::NotADirectory => {
                self.taken("is there meanwhile")
            }
            ErrorKind::ResourceBusy => {
                self.taken("is where a file system is mounted, and cannot be replaced")
            }
            _ => CliError::operation(error),
        }
    }

    fn taken(&self, how: &str) -> CliError {
        CliError::usage(format!("`{}` {how}", self.named.display()))
            .hint("name a directory that is not there; nothing was changed")
    }

    /// Writes the files, and then gives the directory its name.
    pub(crate) fn write(&self, snapshot: &Snapshot) -> Result<(), CliError> {
        sweep(&self.parent);
        let (stage, lock) = stage(&self.parent).map_err(CliError::operation)?;
        let tree = stage.path().join(TREE);
        let written = fs_err::create_dir(&tree)
            .map_err(CliError::operation)
            .and_then(|()| write_files(&tree, snapshot))
            .and_then(|()| self.publish(&tree));
        // The stage goes first and its lock last, so that nobody takes it for left over meanwhile.
        // What stays of it, the next run sweeps: the directory is there, so that is no failure.
        stage.close().ok();
        drop(lock);
        written
    }

    fn publish(&self, tree: &Path) -> Result<(), CliError> {
        // All files at once: one by one costs a wait for the disk for each.
        let opened = fs_err::File::open(tree).map_err(CliError::operation)?;
        rustix::fs::syncfs(&opened)
            .map_err(|errno| CliError::operation(errno).because("cannot write to the disk"))?;
        fs_err::rename(tree, &self.place).map_err(|error| self.unnamed(error))?;
        fs_err::File::open(&self.parent)
            .and_then(|parent| parent.sync_all())
            .map_err(CliError::operation)
    }
}

/// The absolute place without links, whether something is there or not.
fn place(path: &Path) -> Result<PathBuf, CliError> {
    if fs_err::symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
        return fs_err::canonicalize(path).map_err(CliError::operation);
    }
    let Some(name) = path.file_name() else {
        return Err(
            CliError::usage(format!("`{}` names no directory to make", path.display()))
                .hint("end the path with the name of a directory"),
        );
    };
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let found = fs_err::canonicalize(parent).map_err(|error| {
        let gone = error.kind() == ErrorKind::NotFound;
        let what = format!("there is no directory `{}`", parent.display());
        let word = safe_fs::shell_word(parent);
        if gone {
            CliError::operation(what).hint(format!("`mkdir -p {word}` makes it"))
        } else {
            CliError::operation(error)
        }
    })?;
    Ok(found.join(name))
}

/// Makes a stage and locks it. A sweeper may be faster between the two, and then takes it; each
/// sweeps once, so this does not go on.
fn stage(parent: &Path) -> Result<(PrivateTempDir, LockGuard), SafeFsError> {
    let mut attempt = 1;
    loop {
        match locked_stage(parent) {
            Err(_) if attempt < ATTEMPTS => attempt += 1,
            done => return done,
        }
    }
}

fn locked_stage(parent: &Path) -> Result<(PrivateTempDir, LockGuard), SafeFsError> {
    let stage = PrivateTempDir::new_in(parent, PREFIX)?;
    let lock = lock_exclusive(&stage.path().join(LOCK))?;
    Ok((stage, lock))
}

/// Writes below a directory that is new and private, so that nothing stands in it but what this
/// wrote; the paths were judged when the archive was read.
fn write_files(tree: &Path, snapshot: &Snapshot) -> Result<(), CliError> {
    for (path, bytes) in &snapshot.files {
        let place = tree.join(path);
        if let Some(folder) = Path::new(path).parent() {
            make_folder(tree, folder).map_err(|error| unwritten(path, error))?;
        }
        let mode = snapshot.modes.get(path).copied().unwrap_or(DEFAULT_MODE);
        write_file(&place, bytes, mode).map_err(|error| unwritten(path, error))?;
    }
    Ok(())
}

/// Makes a folder below `tree`, never `tree` itself: who moves the stage away meanwhile does not get
/// another one that is neither private nor locked.
fn make_folder(tree: &Path, folder: &Path) -> std::io::Result<()> {
    if folder.as_os_str().is_empty() {
        return Ok(());
    }
    let place = tree.join(folder);
    match fs_err::create_dir(&place) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            make_folder(tree, folder.parent().unwrap_or(Path::new("")))?;
            fs_err::create_dir(&place)
        }
        done => done,
    }
}

fn write_file(place: &Path, bytes: &[u8], mode: u32) -> std::io::Result<()> {
    let mut file = fs_err::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(place)?;
    file.write_all(bytes)?;
    // Of the open file, since the umask would take bits from one that is created with it.
    file.set_permissions(PermissionsExt::from_mode(mode))
}

fn unwritten(path: &str, error: std::io::Error) -> CliError {
    let twice = error.kind() == ErrorKind::AlreadyExists;
    let error = CliError::operation(error).because(format!(
        "`{}` cannot be written",
        plugin_archive::visible(path.as_bytes())
    ));
    if twice {
        error
            .hint("another file has the same name here; names differ only by case or normalisation")
    } else {
        error
    }
}

/// Removes what killed runs left beside the place. What stands in the way of that is no error,
/// since nothing depends on it.
fn sweep(parent: &Path) {
    let entries = fs_err::read_dir(parent).into_iter().flatten();
    for entry in entries.take(ENTRIES).flatten() {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(is_stage);
        if is_ours && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            sweep_one(&entry.path());
        }
    }
}

fn is_stage(name: &str) -> bool {
    let digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    name.strip_prefix(PREFIX)
        .is_some_and(|digits| digits.len() == DIGITS && digits.bytes().all(digit))
}

fn sweep_one(stage: &Path) {
    if let Ok(_lock) = lock_exclusive(&stage.join(LOCK)) {
        // What is left of it is swept by the next run.
        safe_fs::remove_tree_no_follow(stage).ok();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn a_place_that_cannot_be_replaced_is_said_with_a_hint() {
        let parent = tempfile::tempdir().unwrap();
        let target = Target::find(&parent.path().join("out")).unwrap();
        let told = |errno: rustix::io::Errno| target.unnamed(errno.into());
        let busy = told(rustix::io::Errno::BUSY);
        assert!(busy.messages()[0].contains("is where a file system is mounted"));
        assert_eq!(busy.hints().len(), 1);
        assert!(told(rustix::io::Errno::NOTEMPTY).messages()[0].contains("is there meanwhile"));
        assert!(told(rustix::io::Errno::NOSPC).hints().is_empty());
    }

    #[test]
    fn a_stage_that_was_moved_away_is_not_made_again() {
        let parent = tempfile::tempdir().unwrap();
        let mut snapshot = Snapshot::default();
        snapshot.files.insert("a/b/c".to_owned(), Vec::new());
        let tree = parent.path().join("gone").join(TREE);
        write_files(&tree, &snapshot).unwrap_err();
        assert!(!parent.path().join("gone").exists());
        fs_err::create_dir_all(&tree).unwrap();
        write_files(&tree, &snapshot).unwrap();
        assert!(tree.join("a/b/c").is_file());
    }

    #[test]
    fn a_writer_gets_a_stage_though_others_sweep_what_it_has_just_made() {
        const SWEEPERS: usize = 3;
        let parent = tempfile::tempdir().unwrap();
        let together = Barrier::new(SWEEPERS + 1);
        for _ in 0..500 {
            std::thread::scope(|scope| {
                for _ in 0..SWEEPERS {
                    scope.spawn(|| {
                        together.wait();
                        sweep(parent.path());
                    });
                }
                together.wait();
                let (stage, lock) = stage(parent.path()).unwrap();
                assert!(stage.path().join(LOCK).exists());
                drop((stage, lock));
            });
        }
    }
}
