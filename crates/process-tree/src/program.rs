//! Finds the program's file and says in words why the system refused to run it.
//!
//! The look-up uses the program's own `PATH`, never the host's.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

use crate::error::StartError;
use crate::spec::Spec;

/// Finds the file of the specification's program. A path with `/` is taken as it is.
pub(crate) fn find(spec: &Spec) -> Result<PathBuf, StartError> {
    let program = spec.check()?;
    if let Some(directory) = &spec.cwd {
        let usable = std::fs::metadata(directory).and_then(|found| {
            if found.is_dir() {
                Ok(())
            } else {
                Err(io::Error::from(Errno::ENOTDIR))
            }
        });
        usable.map_err(|source| StartError::WorkingDirectory {
            path: directory.clone(),
            source,
        })?;
    }
    if program.as_bytes().contains(&b'/') {
        return Ok(PathBuf::from(program));
    }
    search(program, spec.variable("PATH"), spec.cwd.as_deref())
}

/// Turns the error number of a refused start into words.
pub(crate) fn explain(program: &Path, cwd: Option<&Path>, source: io::Error) -> StartError {
    let file = seen_from(program, cwd);
    let program = program.to_path_buf();
    match source.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOENT) => match (file.metadata(), head(&file)) {
            (Ok(_), head) => StartError::MissingInterpreter {
                program,
                interpreter: interpreter(&head.unwrap_or_default()),
            },
            (Err(_), _) => StartError::NotFound { program },
        },
        Some(Errno::EACCES | Errno::EPERM) => StartError::PermissionDenied {
            program,
            why: why_denied(&file),
        },
        Some(Errno::ENOEXEC) => StartError::NotExecutable {
            program,
            why: why_not_executable(&head(&file).unwrap_or_default()),
        },
        Some(Errno::ETXTBSY) => StartError::Busy { program },
        _ => StartError::Refused { program, source },
    }
}

fn search(
    program: &OsStr,
    path: Option<&OsStr>,
    cwd: Option<&Path>,
) -> Result<PathBuf, StartError> {
    let path = path.unwrap_or_default();
    let mut denied = None;
    // An empty entry would mean the working directory; it is skipped, as a program found by
    // accident in a workspace is worse than one not found.
    for directory in path.as_bytes().split(|byte| *byte == b':') {
        if directory.is_empty() {
            continue;
        }
        let candidate = Path::new(OsStr::from_bytes(directory)).join(program);
        let Ok(found) = seen_from(&candidate, cwd).metadata() else {
            continue;
        };
        if !found.is_file() {
            continue;
        }
        if found.permissions().mode() & 0o111 != 0 {
            return Ok(candidate);
        }
        denied.get_or_insert(candidate);
    }
    Err(match denied {
        Some(program) => StartError::PermissionDenied {
            program,
            why: "it has no execute permission",
        },
        None => StartError::NotInPath {
            program: program.to_string_lossy().into_owned(),
            path: path.to_string_lossy().into_owned(),
        },
    })
}

fn seen_from(path: &Path, cwd: Option<&Path>) -> PathBuf {
    cwd.map_or_else(|| path.to_path_buf(), |directory| directory.join(path))
}

/// Reads the first bytes of a file, which hold a script's interpreter line or an ELF header.
fn head(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if file.metadata()?.is_file() {
        fs_err::File::open(file)?
            .take(256)
            .read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

fn interpreter(head: &[u8]) -> String {
    match head.strip_prefix(b"#!") {
        Some(rest) => {
            let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let text = String::from_utf8_lossy(line);
            let path = text.trim_matches([' ', '\t']);
            let path = path.split([' ', '\t']).next().unwrap_or_default();
            format!("`{}`", path.escape_debug())
        }
        None => "(the dynamic loader that it names)".to_owned(),
    }
}

fn why_denied(file: &Path) -> &'static str {
    match file.metadata() {
        Ok(found) if found.is_dir() => "it is a directory",
        Ok(found) if !found.is_file() => "it is not a regular file",
        Ok(found) if found.permissions().mode() & 0o111 == 0 => "it has no execute permission",
        Ok(_) => "its permissions, its interpreter's or its file system's options forbid it",
        Err(_) => "a directory above it is closed to this user",
    }
}

fn why_not_executable(head: &[u8]) -> &'static str {
    if head.is_empty() {
        "the file is empty"
    } else if head.starts_with(b"\x7fELF") {
        "it is built for another architecture or damaged"
    } else if head.starts_with(b"#!") {
        "its interpreter line is malformed or too long"
    } else {
        "it is neither a binary of this system nor a script that starts with #!"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreter_line_is_read_without_its_argument() {
        assert_eq!(interpreter(b"#! /no/such -x\nbody"), "`/no/such`");
        assert_eq!(interpreter(b"#!/a\r\n"), "`/a\\r`");
        assert!(interpreter(b"\x7fELF").contains("dynamic loader"));
    }

    #[test]
    fn lookup_uses_the_given_path_only() {
        let spec = Spec::new(["sh"]);
        assert!(matches!(find(&spec), Err(StartError::NotInPath { .. })));
        let spec = Spec::new(["sh"]).env([("PATH", "::/nowhere:/bin:/usr/bin")]);
        assert_eq!(find(&spec).unwrap(), Path::new("/bin/sh"));
    }
}
