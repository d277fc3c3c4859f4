//! What is found of a declared plugin, without starting it.

use std::error::Error;
use std::path::PathBuf;

use attest_plugin_host::declare::{Command, Declared, Digest};
use attest_plugin_host::{Executable, SearchPath, resolve};
use cli_shell::env;

/// The folders in which bare names are found, as a run has them.
pub(super) fn search() -> SearchPath {
    SearchPath::new(env::var_os("PATH").unwrap_or_default())
}

/// The command as it is declared.
pub(super) fn command(declared: &Declared) -> String {
    match &declared.command {
        Command::Absolute(path) => path.to_string_lossy().into_owned(),
        Command::Bare(name) => name.clone(),
    }
}

/// How a plugin's file compares with its digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// It is what was reviewed.
    Ok,
    /// It is not.
    Mismatch,
    /// There is no digest yet.
    Unpinned,
    /// There is no file that could run.
    Unresolved,
}

impl Status {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Mismatch => "mismatch",
            Self::Unpinned => "unpinned",
            Self::Unresolved => "unresolved",
        }
    }
}

/// What was found.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) status: Status,
    /// The file that the command leads to.
    pub(super) file: Option<PathBuf>,
    /// The digest of its bytes.
    pub(super) found: Option<Digest>,
    /// Who runs it, where it is a script.
    pub(super) interpreter: Option<String>,
    /// Why there is no file that could run.
    pub(super) problem: Option<String>,
}

impl Look {
    /// Finds, opens and hashes the plugin's file.
    pub(super) fn at(declared: &Declared, search: &SearchPath) -> Self {
        let file = match resolve(&declared.command, search) {
            Ok(file) => file,
            Err(error) => return Self::unresolved(None, &error),
        };
        match Executable::open(&file) {
            Ok(opened) => Self {
                status: status(declared.digest, opened.digest()),
                file: Some(file),
                found: Some(opened.digest()),
                interpreter: opened.interpreter().map(str::to_owned),
                problem: None,
            },
            Err(error) => Self::unresolved(Some(file), &error),
        }
    }

    fn unresolved(file: Option<PathBuf>, error: &dyn Error) -> Self {
        let mut problem = error.to_string();
        let mut next = error.source();
        while let Some(cause) = next {
            problem.push_str(": ");
            problem.push_str(&cause.to_string());
            next = cause.source();
        }
        Self {
            status: Status::Unresolved,
            file,
            found: None,
            interpreter: None,
            problem: Some(problem),
        }
    }
}

fn status(declared: Option<Digest>, found: Digest) -> Status {
    match declared {
        None => Status::Unpinned,
        Some(declared) if declared == found => Status::Ok,
        Some(_) => Status::Mismatch,
    }
}
