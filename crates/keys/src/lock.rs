//! Keeps two changes of one trust store apart.

use std::fs::TryLockError;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use crate::error::KeysError;

/// How often, and how long between, a taken lock is asked for: a change takes milliseconds.
const TRIES: u32 = 800;
const BETWEEN: Duration = Duration::from_millis(25);

/// Holds the lock until it is dropped, or the process ends.
#[derive(Debug)]
pub(crate) struct StoreLock {
    _folder: fs_err::File,
}

/// Locks the folder itself: a lock file in it would end up in a repository.
pub(crate) fn lock(folder: &Path) -> Result<StoreLock, KeysError> {
    lock_within(folder, TRIES)
}

fn lock_within(folder: &Path, tries: u32) -> Result<StoreLock, KeysError> {
    let file = fs_err::File::open(folder).map_err(KeysError::io("open the trust store"))?;
    for _ in 0..tries {
        match file.try_lock() {
            Ok(()) => return Ok(StoreLock { _folder: file }),
            Err(TryLockError::WouldBlock) => sleep(BETWEEN),
            Err(TryLockError::Error(source)) => {
                return Err(KeysError::io("lock the trust store")(source));
            }
        }
    }
    Err(KeysError::Busy {
        folder: folder.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_stays_taken_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let held = lock(folder.path()).unwrap();
        let error = lock_within(folder.path(), 2).unwrap_err();
        assert!(matches!(error, KeysError::Busy { .. }), "{error}");
        drop(held);
        assert!(lock_within(folder.path(), 1).is_ok());
    }
}
