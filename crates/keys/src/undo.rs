//! Takes back the files of a change that did not come to its end.

use std::path::PathBuf;

/// Files made by a change; removed on drop unless the change is kept.
#[derive(Debug, Default)]
pub(crate) struct Undo(Vec<PathBuf>);

impl Undo {
    /// Notes a file that was absent before.
    pub(crate) fn made(&mut self, file: PathBuf) {
        self.0.push(file);
    }

    /// Lets the files stay.
    pub(crate) fn keep(&mut self) {
        self.0.clear();
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        for file in &self.0 {
            // The change has failed with an error of its own, which is the one to report.
            fs_err::remove_file(file).ok();
        }
    }
}
