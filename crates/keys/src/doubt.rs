//! What makes the word of a trust store worth less, for those who rely on it.
//!
//! A group that may write is no doubt: with the usual umask of systems that give each user a group,
//! everything that is checked out is like that.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use bounded::text::visible;
use safe_fs::shell_word;

/// How many places are named.
const NAMED: usize = 3;

/// Places that every user of the machine can write to.
#[derive(Debug, Default)]
pub(crate) struct Open {
    named: Vec<PathBuf>,
    more: usize,
}

impl Open {
    /// Looks at a file or folder, or what a link in its place leads to.
    pub(crate) fn look(&mut self, path: &Path) {
        if fs_err::metadata(path).is_ok_and(|found| found.mode() & 0o002 != 0) {
            if self.named.len() < NAMED {
                self.named.push(path.to_owned());
            } else {
                self.more += 1;
            }
        }
    }

    pub(crate) fn doubts(self) -> Vec<String> {
        let doubt = |path: PathBuf| {
            format!(
                "every user of this machine can write to `{}` and so change who is trusted; correct it with `chmod o-w {}`",
                visible(&path.to_string_lossy()),
                shell_word(&path)
            )
        };
        let mut doubts: Vec<String> = self.named.into_iter().map(doubt).collect();
        if self.more > 0 {
            doubts.push(format!("and so it is with {} more files", self.more));
        }
        doubts
    }
}

/// Says which of the places are links.
pub(crate) fn of_links<'a>(places: impl Iterator<Item = &'a Path>) -> Vec<String> {
    let links = places.filter(|path| path.is_symlink());
    let doubt = |path: &Path| {
        let path = visible(&path.to_string_lossy());
        format!("`{path}` is a symbolic link: the trust store that was read lies elsewhere")
    };
    links.map(doubt).collect()
}
