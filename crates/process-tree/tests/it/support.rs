//! Starts the fixture and watches processes from outside.

use std::path::{Path, PathBuf};
use std::time::Duration;

use process_tree::{Spec, Wrapper};

pub(crate) const FIXTURE: &str = env!("CARGO_BIN_EXE_process-tree-fixture");

pub(crate) fn wrapper() -> Wrapper {
    Wrapper::new(FIXTURE)
}

/// The fixture with a script of words, split at spaces.
pub(crate) fn script(words: &str) -> Spec {
    Spec::new(std::iter::once(FIXTURE).chain(words.split_whitespace()))
}

/// Waits until a file names a process.
pub(crate) async fn pid_in(path: &Path) -> i32 {
    for _ in 0..10_000 {
        if let Ok(text) = std::fs::read_to_string(path) {
            return text.parse().unwrap();
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("no process told its number in {}", path.display());
}

/// Tells whether a process runs; a zombie does not.
pub(crate) fn runs(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap().starts_with(" Z"))
}

/// Waits until a process is gone; false if it still runs after five seconds.
pub(crate) async fn goes(pid: i32) -> bool {
    for _ in 0..5_000 {
        if !runs(pid) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    false
}

pub(crate) struct Scratch(tempfile::TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// Ends a process that a test let escape on purpose.
pub(crate) fn end(pid: i32) {
    // It may have ended by itself.
    let _gone = nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(pid),
        nix::sys::signal::Signal::SIGKILL,
    );
}

/// The parent of a process.
#[cfg(all(target_os = "linux", not(portable_process)))]
pub(crate) fn parent(pid: i32) -> i32 {
    parent_of(pid).unwrap()
}

/// The children of a process, zombies included.
#[cfg(target_os = "linux")]
pub(crate) fn children(parent: i32) -> Vec<i32> {
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| parent_of(*pid) == Some(parent))
        .collect()
}

#[cfg(target_os = "linux")]
fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')')
        .next()?
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}
