//! The file itself: what stands in its place is never taken for nothing.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;

use super::{DeclareError, FILE, MAX_BYTES};

/// Reads the text of the declarations; none only where there is no file or no folder for it.
///
/// Neither may be a link: what is reviewed in the repository is what is read.
pub(super) fn read(workspace: &Path) -> Result<Option<String>, DeclareError> {
    let path = workspace.join(FILE);
    let folder = path.parent().unwrap_or(workspace);
    let passing = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let top =
        openat(CWD, workspace, passing, Mode::empty()).map_err(|errno| failed(workspace, errno))?;
    let Some(held) = open(&top, Path::new(".attest"), passing, folder, "a folder")? else {
        return Ok(None);
    };
    // Without NONBLOCK the opening of a FIFO would wait for a writer.
    let reading = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let Some(file) = open(&held, Path::new("plugins.toml"), reading, &path, WANTED)? else {
        return Ok(None);
    };
    let stat = fstat(&file).map_err(|errno| failed(&path, errno))?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    if kind != FileType::RegularFile {
        return Err(in_the_way(&path, kind, WANTED));
    }
    decode(bytes(file, &path)?).map(Some)
}

const WANTED: &str = "a regular file";

/// Opens an entry that is no link; none only if there is no such entry.
fn open(
    folder: &OwnedFd,
    name: &Path,
    flags: OFlags,
    path: &Path,
    wanted: &'static str,
) -> Result<Option<OwnedFd>, DeclareError> {
    match openat(folder, name, flags | OFlags::NOFOLLOW, Mode::empty()) {
        Ok(fd) => Ok(Some(fd)),
        Err(Errno::NOENT) => Ok(None),
        // A link, no folder, a socket: which of them it is, the entry itself tells.
        Err(errno @ (Errno::LOOP | Errno::NOTDIR | Errno::NXIO | Errno::MLINK)) => {
            match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => Err(in_the_way(
                    path,
                    FileType::from_raw_mode(stat.st_mode),
                    wanted,
                )),
                Err(_) => Err(failed(path, errno)),
            }
        }
        Err(errno) => Err(failed(path, errno)),
    }
}

fn bytes(file: OwnedFd, path: &Path) -> Result<Vec<u8>, DeclareError> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX);
    // One byte more than allowed tells "too long" from "just as long as allowed".
    fs_err::File::from_parts(file.into(), path)
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|source| DeclareError::Read {
            path: path.to_owned(),
            source,
        })?;
    if bytes.len() > MAX_BYTES {
        return Err(DeclareError::TooLong);
    }
    Ok(bytes)
}

fn decode(bytes: Vec<u8>) -> Result<String, DeclareError> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = error.as_bytes().iter().take(valid);
        DeclareError::NotUtf8 {
            line: 1 + before.filter(|byte| **byte == b'\n').count(),
        }
    })
}

fn failed(path: &Path, errno: Errno) -> DeclareError {
    DeclareError::Read {
        path: path.to_owned(),
        source: io::Error::from(errno),
    }
}

fn in_the_way(path: &Path, kind: FileType, wanted: &'static str) -> DeclareError {
    DeclareError::InTheWay {
        path: PathBuf::from(path),
        found: match kind {
            FileType::RegularFile => "a file",
            FileType::Directory => "a folder",
            FileType::Symlink => "a symbolic link",
            FileType::Fifo => "a FIFO",
            FileType::Socket => "a socket",
            FileType::CharacterDevice | FileType::BlockDevice => "a device",
            FileType::Unknown => "something else",
        },
        wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn told(workspace: &Path) -> String {
        match read(workspace) {
            Ok(found) => panic!("expected a refusal, got {found:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn only_an_absent_file_or_folder_is_no_declaration() {
        let workspace = tempfile::tempdir().unwrap();
        let path = workspace.path();
        assert!(read(path).unwrap().is_none());
        fs_err::create_dir(path.join(".attest")).unwrap();
        assert!(read(path).unwrap().is_none());
        fs_err::write(path.join(FILE), "").unwrap();
        assert_eq!(read(path).unwrap().as_deref(), Some(""));
        assert!(read(&path.join("gone")).is_err());
    }

    #[test]
    fn a_link_a_fifo_and_a_folder_are_refused_whatever_they_lead_to() {
        let workspace = tempfile::tempdir().unwrap();
        let (path, file) = (workspace.path(), workspace.path().join(FILE));
        fs_err::create_dir(path.join(".attest")).unwrap();
        fs_err::write(path.join("real"), "schema_version = 1\n").unwrap();
        for target in ["real", "nowhere", "/dev/null"] {
            symlink(path.join(target), &file).unwrap();
            assert!(told(path).contains("is a symbolic link"), "{target}");
            fs_err::remove_file(&file).unwrap();
        }
        rustix::fs::mknodat(CWD, &file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(told(path).contains("is a FIFO"));
        fs_err::remove_file(&file).unwrap();
        let socket = std::os::unix::net::UnixListener::bind(&file).unwrap();
        assert!(told(path).contains("is a socket"));
        drop(socket);
        fs_err::remove_file(&file).unwrap();
        fs_err::create_dir(&file).unwrap();
        assert!(told(path).contains("is a folder"));
    }

    #[test]
    fn a_folder_that_is_a_link_or_a_file_is_refused() {
        let workspace = tempfile::tempdir().unwrap();
        let path = workspace.path();
        fs_err::create_dir(path.join("real")).unwrap();
        symlink("real", path.join(".attest")).unwrap();
        assert!(told(path).contains("is a symbolic link"));
        fs_err::remove_file(path.join(".attest")).unwrap();
        fs_err::write(path.join(".attest"), "").unwrap();
        assert!(told(path).contains("is a file"));
    }

    #[test]
    fn the_limit_is_met_exactly() {
        let workspace = tempfile::tempdir().unwrap();
        let (path, file) = (workspace.path(), workspace.path().join(FILE));
        fs_err::create_dir(path.join(".attest")).unwrap();
        fs_err::write(&file, "#".repeat(MAX_BYTES)).unwrap();
        assert_eq!(read(path).unwrap().unwrap().len(), MAX_BYTES);
        fs_err::write(&file, "#".repeat(MAX_BYTES + 1)).unwrap();
        assert!(matches!(read(path), Err(DeclareError::TooLong)));
        fs_err::write(&file, b"a\nb\n\xff").unwrap();
        assert!(matches!(read(path), Err(DeclareError::NotUtf8 { line: 3 })));
    }
}
