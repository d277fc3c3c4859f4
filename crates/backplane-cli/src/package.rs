//! Packages where they lie: in a directory, or in an archive.

use std::io::ErrorKind;
use std::path::Path;

use agent_plugin::{Diagnostic, Package};
use agent_plugin_dir::ReadError;
use cli_shell::CliError;
use plugin_archive::{ArchiveError, Limits, Modes, Rule, Snapshot};
use safe_fs::SafeFsError;

/// What a load came to; the modes are there for a rejected package too.
pub(crate) struct Loaded {
    pub(crate) result: Result<Package, Vec<Diagnostic>>,
    pub(crate) modes: Modes,
}

const EITHER: &str = "name the directory of a package, or an archive that `backplane pack` wrote";
const ARCHIVE: &str = "name an archive that `backplane pack` wrote";
const DIRECTORY: &str = "name the directory that holds `plugin.json`";

/// Tells a directory from an archive. That nothing is there is an error with a hint.
pub(crate) fn is_directory(path: &Path) -> Result<bool, CliError> {
    judged(path, EITHER)
}

/// Refuses what is no directory.
pub(crate) fn need_directory(path: &Path) -> Result<(), CliError> {
    if judged(path, DIRECTORY)? {
        return Ok(());
    }
    Err(CliError::usage(format!("`{}` is no directory", path.display())).hint(DIRECTORY))
}

fn judged(path: &Path, hint: &str) -> Result<bool, CliError> {
    let found = fs_err::metadata(path).map_err(|error| {
        if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) {
            CliError::operation(format!("`{}` is not there", path.display())).hint(hint)
        } else {
            CliError::operation(error)
        }
    })?;
    Ok(found.is_dir())
}

/// Reads the bytes of an archive, no more than one may have.
pub(crate) fn archive_bytes(path: &Path) -> Result<Vec<u8>, CliError> {
    if judged(path, ARCHIVE)? {
        let word = safe_fs::shell_word(path);
        return Err(
            CliError::usage(format!("`{}` is a directory, no archive", path.display())).hint(
                format!("`backplane pack {word} -o FILE` makes one of it and prints its digest"),
            ),
        );
    }
    let limit = Limits::default().archive_bytes;
    safe_fs::read_bounded(path, limit).map_err(|error| match error {
        SafeFsError::TooLarge { .. } => CliError::no(format!(
            "`{}` is refused: more than max_archive_bytes allows, which is {limit} (limit_exceeded)",
            path.display()
        )),
        other => CliError::operation(other).hint(ARCHIVE),
    })
}

/// Takes an archive apart in memory; that it is refused is an answer.
pub(crate) fn snapshot_of(archive: &[u8], path: &Path) -> Result<Snapshot, CliError> {
    plugin_archive::unpack_with_metadata(archive, &Limits::default())
        .map_err(|error| refused_archive(&error, path))
}

fn refused_archive(error: &ArchiveError, path: &Path) -> CliError {
    let refused = CliError::no(format!("`{}` is refused: {error}", path.display()));
    match error.rule {
        Rule::GzipHeader => refused.hint(
            "an archive is what `backplane pack` writes; a package is named by its directory",
        ),
        _ => refused,
    }
}

/// Reads a directory as `pack` does.
pub(crate) fn read(path: &Path, follows_links: bool) -> Result<Snapshot, CliError> {
    let limits = Limits::default();
    let read = if follows_links {
        agent_plugin_dir::read_following_links(path, &limits).map(|followed| followed.snapshot)
    } else {
        agent_plugin_dir::read_directory_with_metadata(path, &limits)
    };
    read.map_err(|error| unread(error, path))
}

/// The files of a package, from a directory or from an archive.
pub(crate) fn snapshot(path: &Path, follows_links: bool) -> Result<Snapshot, CliError> {
    if is_directory(path)? {
        read(path, follows_links)
    } else {
        snapshot_of(&archive_bytes(path)?, path)
    }
}

/// A directory that is not read: an answer where something is in it that may not be, a failure
/// otherwise.
pub(crate) fn unread(error: ReadError, path: &Path) -> CliError {
    let what = format!("`{}` is refused", path.display());
    match error {
        ReadError::Link { .. } => CliError::no(error)
            .because(what)
            .hint("`--follow-links` takes what links inside the directory lead to"),
        ReadError::Special { .. } | ReadError::Cycle { .. } | ReadError::Refused(_) => {
            CliError::no(error).because(what)
        }
        other => CliError::operation(other),
    }
}

/// The modes that every machine agrees on: whoever may run a file, or nobody.
pub(crate) fn normalize(modes: &mut Modes) {
    for mode in modes.values_mut() {
        *mode = if is_executable(*mode) { 0o755 } else { 0o644 };
    }
}

pub(crate) fn is_executable(mode: u32) -> bool {
    mode & 0o111 != 0
}

/// Bytes of all files together.
pub(crate) fn total(snapshot: &Snapshot) -> u64 {
    snapshot.files.values().map(|file| file.len() as u64).sum()
}
