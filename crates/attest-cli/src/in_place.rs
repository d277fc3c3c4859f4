//! Receipts that are replaced by what was made of them: once, whoever else does the same.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use cli_shell::{CliError, Ui, visible};
use safe_fs::SafeFsError;
use serde::Serialize;

use crate::guard::Guard;
use crate::{new_file, prerequisite, receipt_file};

/// How often, and how long between, a taken lock is asked for: a replacement takes milliseconds.
const TRIES: u32 = 800;
/// After so many of them, which is about a second, whoever waits is told so.
const QUIET_TRIES: u32 = 40;
const BETWEEN: Duration = Duration::from_millis(25);

/// A receipt that was read, and where what becomes of it goes.
pub(crate) struct Receipt<'a> {
    pub(crate) path: &'a Path,
    /// Another file, if one was named.
    pub(crate) output: Option<&'a Path>,
    /// What was read.
    pub(crate) bytes: &'a [u8],
    /// What it becomes, for messages.
    pub(crate) what: &'a str,
}

/// What `--format json` prints.
#[derive(Debug, Serialize)]
struct Record {
    receipt: String,
}

impl Receipt<'_> {
    /// Finds out before the work that there is no place for what it makes.
    pub(crate) fn check(&self, guard: &Guard, ui: &Ui) -> Result<(), CliError> {
        prerequisite::check(&[new_file::json_needs_a_file(ui, self.is_to_stdout())])?;
        if self.is_to_stdout() {
            return Ok(());
        }
        self.spare_the_signed()?;
        new_file::check(self.destination(), self.what, guard)
    }

    /// Writes it as [`Self::write`] does, and says where it is.
    pub(crate) fn deliver(
        &self,
        text: &[u8],
        guard: &Guard,
        ui: &Ui,
        judge: impl FnOnce(&[u8]) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        if self.is_to_stdout() {
            return ui.raw(text);
        }
        self.write(text, guard, judge)?;
        let record = Record {
            receipt: self.destination().display().to_string(),
        };
        ui.record(&record, |record| visible(&record.receipt))
    }

    fn destination(&self) -> &Path {
        self.output.unwrap_or(self.path)
    }

    fn is_to_stdout(&self) -> bool {
        self.output.is_some_and(new_file::is_stdout)
    }

    /// Who names a signed receipt to be written over has most likely mistaken it for another: a
    /// signature is not to be had again.
    fn spare_the_signed(&self) -> Result<(), CliError> {
        if self.is_in_place() {
            return Ok(());
        }
        let found = receipt_file::read(self.destination());
        if found.is_ok_and(|found| found.signature.is_some()) {
            let name = visible(&self.destination().to_string_lossy());
            return Err(CliError::operation(format!(
                "`{name}` is another signed receipt, which is not written over"
            ))
            .because(format!("the {} cannot be written", self.what))
            .hint("name a new file, or remove that one first"));
        }
        Ok(())
    }

    /// Writes what became of the receipt. In its own place the file has to be what was read until
    /// it is replaced; `judge` then says of other bytes why nothing more is to be made of them.
    fn write(
        &self,
        text: &[u8],
        guard: &Guard,
        judge: impl FnOnce(&[u8]) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        if !self.is_in_place() {
            self.spare_the_signed()?;
            return new_file::write(self.destination(), text, self.what, guard);
        }
        let _lock = lock(self.path, self.what, || {})?;
        let found = receipt_file::bytes(self.path)?;
        if found != self.bytes {
            judge(&found)?;
            let name = visible(&self.path.to_string_lossy());
            return Err(CliError::operation(format!(
                "`{name}` was changed by somebody else meanwhile"
            ))
            .hint("start again with what is there now"));
        }
        new_file::write(self.path, text, self.what, guard)
    }

    fn is_in_place(&self) -> bool {
        let same = |output| {
            let output = fs_err::canonicalize(output).ok();
            output.is_some_and(|output| {
                fs_err::canonicalize(self.path).is_ok_and(|path| path == output)
            })
        };
        self.output.is_none_or(same)
    }
}

/// Keeps others of the kind away from a file that is going to be replaced. Where that takes long,
/// `waits` is called once.
pub(crate) fn lock(
    path: &Path,
    what: &str,
    waits: impl FnOnce(),
) -> Result<safe_fs::LockGuard, CliError> {
    let failed = |error: SafeFsError| {
        CliError::operation(error).because(format!("the {what} cannot be written"))
    };
    let mut waits = Some(waits);
    for tried in 0..TRIES {
        if tried == QUIET_TRIES
            && let Some(waits) = waits.take()
        {
            waits();
        }
        match safe_fs::lock_named(path) {
            Err(SafeFsError::AlreadyOwned { .. }) => sleep(BETWEEN),
            other => return other.map_err(failed),
        }
    }
    safe_fs::lock_named(path).map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn one_of_several_at_once_replaces_a_receipt() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.yaml");
        fs_err::write(&path, "before").unwrap();
        let guard = Guard::of(folder.path());
        let (done, judged) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for number in 0..8 {
                let (path, guard, done, judged) = (&path, &guard, &done, &judged);
                scope.spawn(move || {
                    // The same file by its own name, too.
                    let output = (number % 2 == 0).then_some(path.as_path());
                    let receipt = Receipt {
                        path,
                        output,
                        bytes: b"before",
                        what: "receipt",
                    };
                    let text = format!("after {number}");
                    let written = receipt.write(text.as_bytes(), guard, |found| {
                        assert!(found.starts_with(b"after "));
                        judged.fetch_add(1, Ordering::SeqCst);
                        Ok(())
                    });
                    match written {
                        Ok(()) => done.fetch_add(1, Ordering::SeqCst),
                        Err(error) => {
                            assert!(error.to_string().contains("meanwhile"), "{error}");
                            0
                        }
                    }
                });
            }
        });
        assert_eq!(done.load(Ordering::SeqCst), 1);
        assert_eq!(judged.load(Ordering::SeqCst), 7);
        assert_eq!(fs_err::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn who_waits_long_for_a_lock_is_told_once_and_gets_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r");
        fs_err::write(&path, "text").unwrap();
        let untold = lock(&path, "receipt", || panic!("nobody has it")).unwrap();
        // Only who is told lets go of it.
        let mut told = 0;
        lock(&path, "receipt", || {
            told += 1;
            drop(untold);
        })
        .unwrap();
        assert_eq!(told, 1);
    }

    #[test]
    fn another_file_is_replaced_whatever_became_of_the_receipt() {
        let folder = tempfile::tempdir().unwrap();
        let (path, output) = (folder.path().join("r"), folder.path().join("s"));
        fs_err::write(&path, "other").unwrap();
        let receipt = Receipt {
            path: &path,
            output: Some(&output),
            bytes: b"before",
            what: "receipt",
        };
        let guard = Guard::of(folder.path());
        receipt.write(b"after", &guard, |_| Ok(())).unwrap();
        assert_eq!(fs_err::read(&output).unwrap(), b"after");
        assert_eq!(fs_err::read(&path).unwrap(), b"other");
    }
}
