//! What plugins say while a run goes on: a line of talk each, and a line of the file that was
//! asked for.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use attest_engine::output::{Redactor, Secrets};
use attest_plugin_host::{RunLog, Veil};
use cli_shell::CliError;
use fs_err::File;
use rustix::fs::{Mode, OFlags};

use crate::commands::through::Aside;
use crate::guard::Guard;
use crate::new_file;

const WHAT: &str = "run log";

/// Takes the lines of all plugins.
pub(super) struct Log {
    show: Aside,
    secrets: Secrets,
    file: Option<Mutex<Kept>>,
}

/// A file that takes lines until it cannot.
#[derive(Debug)]
struct Kept {
    file: File,
    failed: Option<io::Error>,
}

impl Log {
    /// Lines go where talk is shown, and to the file if there is one. It is empty from now on.
    pub(super) fn new(
        show: Aside,
        secrets: Secrets,
        file: Option<&Path>,
        workspace: &Path,
    ) -> Result<Self, CliError> {
        let file = file.map(|path| open(path, workspace)).transpose()?;
        Ok(Self {
            show,
            secrets,
            file: file.map(|file| Mutex::new(Kept { file, failed: None })),
        })
    }

    /// Returns why the file lacks lines, if it does.
    pub(super) fn lost(&self) -> Option<CliError> {
        let failed = locked(self.file.as_ref()?).failed.take()?;
        Some(CliError::operation(failed).because("the run log cannot be written"))
    }
}

impl RunLog for Log {
    fn line(&self, plugin: &str, line: &str) {
        let line = format!("plugin {plugin}: {}", self.secrets.replace(line));
        if let Some(kept) = &self.file {
            locked(kept).put(&line);
        }
        (self.show)(line);
    }

    fn veil(&self) -> Box<dyn Veil + Send + '_> {
        Box::new(Hidden(Redactor::new(&self.secrets)))
    }
}

/// Replaces the values of secrets.
struct Hidden<'a>(Redactor<'a>);

impl Veil for Hidden<'_> {
    fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.0.push(bytes)
    }

    fn finish(&mut self) -> Vec<u8> {
        self.0.finish()
    }
}

impl Kept {
    fn put(&mut self, line: &str) {
        if self.failed.is_none() {
            self.failed = self.file.write_all(format!("{line}\n").as_bytes()).err();
        }
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

fn locked(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open(path: &Path, workspace: &Path) -> Result<File, CliError> {
    let failed = |error: CliError| error.because(format!("the {WHAT} cannot be written"));
    new_file::write(path, b"", WHAT, &Guard::of(workspace))?;
    let path =
        safe_fs::writable_target(path).map_err(|error| failed(CliError::operation(error)))?;
    // What steps and plugins put in its place from now on is not written to.
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::open(&path, flags, Mode::empty());
    let file = opened.map_err(|errno| failed(CliError::operation(io::Error::from(errno))))?;
    Ok(File::from_parts(file.into(), path))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn log(file: Option<File>) -> (Log, Arc<Mutex<Vec<String>>>) {
        let shown = Arc::<Mutex<Vec<String>>>::default();
        let lines = Arc::clone(&shown);
        let log = Log {
            show: Arc::new(move |line| lines.lock().unwrap().push(line)),
            secrets: Secrets::new([("TOKEN", b"canary-77".as_slice())]),
            file: file.map(|file| Mutex::new(Kept { file, failed: None })),
        };
        (log, shown)
    }

    #[test]
    fn a_line_is_shown_and_kept_without_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs_err::write(&path, "old\n").unwrap();
        let file = open(&path, folder.path()).unwrap();
        let (log, shown) = log(Some(file));
        log.line("a", "one canary-77");
        log.line("b", "two");
        let lines = ["plugin a: one [redacted TOKEN]", "plugin b: two"];
        assert_eq!(*shown.lock().unwrap(), lines);
        let kept = fs_err::read_to_string(path).unwrap();
        assert_eq!(kept, lines.join("\n") + "\n");
        assert!(log.lost().is_none());
    }

    #[test]
    fn what_cannot_be_kept_is_shown_and_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs_err::write(&path, "").unwrap();
        // Open for reading alone, so that nothing can be written.
        let (log, shown) = log(Some(File::open(path).unwrap()));
        log.line("a", "one");
        log.line("a", "two");
        assert_eq!(shown.lock().unwrap().len(), 2);
        let told = log.lost().unwrap().to_string();
        assert!(told.contains("the run log cannot be written"), "{told}");
        assert!(log.lost().is_none());
    }
}
