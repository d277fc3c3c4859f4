//! The folder of undelivered results: one file for each slot, there until the Gate has
//! acknowledged it; and the files that were moved aside, which are never delivered.
//!
//! A slot with a file takes no lease before it is settled, so there are never more files than
//! slots. What is moved aside is bounded too: the oldest go first, and the log names them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bounded::text::with_causes;
use forge_domain::{SlotId, WorkerId};
use safe_fs::{
    LockGuard, SafeFsError, lock_exclusive, private_dir, read_private_bounded, write_atomic,
};

use crate::WorkerError;
use crate::kept::{Kept, MAX_KEPT_BYTES};

const LOCK_NAME: &str = ".forge-worker.lock";
const RESULTS: &str = "results";
const REFUSED: &str = "refused";
const SUFFIX: &str = ".json";
/// Most files that are kept aside.
const MAX_REFUSED: usize = 100;
/// Most entries of the folder that a start looks at; there are never so many of ours.
const MAX_ENTRIES: usize = 1024;

/// The folder, for one Worker.
#[derive(Debug)]
pub(crate) struct Results {
    folder: PathBuf,
    refused: PathBuf,
    _lock: LockGuard,
}

impl Results {
    /// Takes the folder over, and reads what a predecessor could not deliver. What cannot be
    /// read, or belongs to no slot of this Worker, is moved aside and named in the log.
    ///
    /// # Errors
    /// The folder is not private, another Worker owns it, or it cannot be listed.
    pub(crate) fn open(
        state_dir: &Path,
        worker: &WorkerId,
        slots: u16,
    ) -> Result<(Self, Vec<Kept>), WorkerError> {
        let (folder, refused) = (
            state_dir.join(RESULTS),
            state_dir.join(RESULTS).join(REFUSED),
        );
        for path in [state_dir, &folder, &refused] {
            private_dir(path).map_err(root(path))?;
        }
        let lock = lock_exclusive(&state_dir.join(LOCK_NAME)).map_err(|source| match source {
            SafeFsError::AlreadyOwned { .. } => WorkerError::RootInUse {
                path: state_dir.to_owned(),
            },
            source => root(state_dir)(source),
        })?;
        let results = Self {
            folder,
            refused,
            _lock: lock,
        };
        let kept = results.scan(worker, slots)?;
        Ok((results, kept))
    }

    fn scan(&self, worker: &WorkerId, slots: u16) -> Result<Vec<Kept>, WorkerError> {
        let unreadable = |source| WorkerError::Os {
            what: "list the kept results",
            source,
        };
        let mut kept = Vec::new();
        let entries = fs_err::read_dir(&self.folder).map_err(unreadable)?;
        for entry in entries.take(MAX_ENTRIES) {
            let path = entry.map_err(unreadable)?.path();
            if path == self.refused {
                continue;
            }
            match read(&path, worker, slots) {
                Ok(found) => {
                    let lease = &found.lease;
                    tracing::info!(
                        event = "result_found", slot = %found.slot, job_id = %lease.job_id,
                        attempt_id = %lease.attempt_id, "an undelivered result waits for the Gate"
                    );
                    kept.push(found);
                }
                Err(reason) => {
                    let moved = self.set_aside(&path).unwrap_or_default();
                    tracing::error!(
                        event = "result_damaged", path = %path.display(), %reason,
                        moved_to = %moved.display(), "a kept result cannot be delivered"
                    );
                }
            }
        }
        Ok(kept)
    }

    /// Writes a result, so that it survives this process; whether that worked. A result that
    /// cannot be written is still delivered while the process lives.
    pub(crate) async fn keep(self: &Arc<Self>, kept: Kept) -> bool {
        let (path, lease) = (self.path(&kept.slot), kept.lease.clone());
        let write = move || write_atomic(&path, &kept.encode(), 0o600);
        let error = match tokio::task::spawn_blocking(write).await {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => with_causes(&error),
            Err(error) => error.to_string(),
        };
        tracing::error!(
            event = "result_not_kept", job_id = %lease.job_id, attempt_id = %lease.attempt_id,
            %error, "a result is only in memory until the Gate has acknowledged it"
        );
        false
    }

    /// Removes the result of a slot: the Gate has it, or nobody wants it.
    pub(crate) async fn forget(self: &Arc<Self>, slot: &SlotId) {
        let path = self.path(slot);
        let removed = tokio::task::spawn_blocking(move || fs_err::remove_file(path));
        match removed.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {}
            Ok(Err(error)) => tracing::error!(%error, "a delivered result cannot be removed"),
            Err(error) => tracing::error!(%error, "a delivered result was not removed"),
        }
    }

    /// Moves the result of a slot aside: the Gate has no place for it.
    pub(crate) async fn refuse(self: &Arc<Self>, slot: &SlotId) -> Option<PathBuf> {
        let (results, path) = (Arc::clone(self), self.path(slot));
        let moved = tokio::task::spawn_blocking(move || results.set_aside(&path));
        moved.await.unwrap_or_else(|error| {
            tracing::error!(%error, "a refused result was not moved aside");
            None
        })
    }

    fn path(&self, slot: &SlotId) -> PathBuf {
        self.folder.join(file_name(slot))
    }

    /// Moves a file into the folder of those that are never delivered; where it is now.
    fn set_aside(&self, path: &Path) -> Option<PathBuf> {
        let mut aside = self.aside();
        while aside.len() >= MAX_REFUSED {
            let (_, oldest) = aside.remove(0);
            let removed = safe_fs::remove_tree_no_follow(&oldest);
            tracing::warn!(
                event = "result_discarded", path = %oldest.display(), removed = removed.is_ok(),
                "more than {MAX_REFUSED} results were moved aside, the oldest goes"
            );
        }
        let number = aside
            .last()
            .map_or(1, |(number, _)| number.saturating_add(1));
        let name = path.file_name()?.to_string_lossy();
        let to = self.refused.join(format!("{number:010}-{name}"));
        match fs_err::rename(path, &to) {
            Ok(()) => Some(to),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::error!(%error, "a result cannot be moved aside");
                None
            }
        }
    }

    /// What was moved aside, oldest first.
    fn aside(&self) -> Vec<(u64, PathBuf)> {
        let mut aside: Vec<_> = fs_err::read_dir(&self.refused)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name();
                let (number, _) = name.to_str()?.split_once('-')?;
                Some((number.parse().ok()?, entry.path()))
            })
            .collect();
        aside.sort();
        aside
    }
}

/// `slot-0.json`: the name says whose it is.
fn file_name(slot: &SlotId) -> String {
    format!("slot-{}{SUFFIX}", slot.slot())
}

fn read(path: &Path, worker: &WorkerId, slots: u16) -> Result<Kept, String> {
    let bytes = read_private_bounded(path, MAX_KEPT_BYTES).map_err(|error| with_causes(&error))?;
    let kept = Kept::decode(&bytes).map_err(|error| error.to_string())?;
    let slot = &kept.slot;
    if path.file_name().and_then(|name| name.to_str()) != Some(&file_name(slot)) {
        return Err(format!("it is of `{slot}`, which its name does not say"));
    }
    if slot.worker() != worker {
        return Err(format!("it is of `{slot}`, and this Worker is `{worker}`"));
    }
    if slot.slot() >= slots {
        return Err(format!(
            "it is of `{slot}`, and this Worker has {slots} slots"
        ));
    }
    Ok(kept)
}

fn root(path: &Path) -> impl FnOnce(SafeFsError) -> WorkerError {
    move |source| WorkerError::Root {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept::tests::{kept, text};
    use std::os::unix::fs::PermissionsExt;

    struct Place {
        _dir: tempfile::TempDir,
        root: PathBuf,
    }

    impl Place {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().canonicalize().unwrap().join("state");
            Self { _dir: dir, root }
        }

        fn open(&self) -> (Arc<Results>, Vec<Kept>) {
            let worker = "worker-1".parse().unwrap();
            let (results, kept) = Results::open(&self.root, &worker, 4).unwrap();
            (Arc::new(results), kept)
        }

        fn aside(&self) -> Vec<String> {
            let mut names: Vec<_> = fs_err::read_dir(self.root.join("results/refused"))
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        }
    }

    #[tokio::test]
    async fn a_result_is_there_after_a_restart_until_it_is_forgotten() {
        let place = Place::new();
        let (results, none) = place.open();
        assert!(none.is_empty());
        let first = kept("worker-1#3", text("HELLO"));
        let second = kept("worker-1", text("again"));
        assert!(results.keep(first.clone()).await);
        assert!(results.keep(second.clone()).await);
        let file = place.root.join("results/slot-3.json");
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
        drop(results);

        let (results, mut found) = place.open();
        found.sort_by_key(|kept| kept.slot.slot());
        assert_eq!(found, [second, first.clone()]);
        results.forget(&first.slot).await;
        results.forget(&first.slot).await;
        drop(results);
        assert_eq!(place.open().1.len(), 1);
        assert!(place.aside().is_empty());
    }

    #[tokio::test]
    async fn what_is_refused_is_moved_aside_and_not_found_again() {
        let place = Place::new();
        let (results, _) = place.open();
        let kept = kept("worker-1", text("x"));
        results.keep(kept.clone()).await;
        let moved = results.refuse(&kept.slot).await.unwrap();
        assert_eq!(Kept::decode(&fs_err::read(moved).unwrap()).unwrap(), kept);
        assert_eq!(results.refuse(&kept.slot).await, None);
        drop(results);
        assert!(place.open().1.is_empty());
        assert_eq!(place.aside(), ["0000000001-slot-0.json"]);
    }

    #[tokio::test]
    async fn what_is_moved_aside_is_bounded_and_the_oldest_go_first() {
        let place = Place::new();
        let (results, _) = place.open();
        for _ in 0..MAX_REFUSED + 3 {
            let kept = kept("worker-1", text("x"));
            results.keep(kept.clone()).await;
            results.refuse(&kept.slot).await.unwrap();
        }
        let aside = place.aside();
        assert_eq!(aside.len(), MAX_REFUSED);
        assert_eq!(aside[0], "0000000004-slot-0.json");
    }

    /// Nothing that lies in the folder keeps a Worker from starting.
    #[tokio::test]
    async fn r15_what_cannot_be_delivered_is_moved_aside_at_the_start() {
        let place = Place::new();
        let (results, _) = place.open();
        let folder = place.root.join("results");
        let write = |name: &str, bytes: &[u8]| {
            write_atomic(&folder.join(name), bytes, 0o600).unwrap();
        };
        let good = kept("worker-1#1", text("x"));
        results.keep(good.clone()).await;
        let whole = good.encode();
        write("slot-0.json", &whole[..whole.len() / 2]);
        write("slot-2.json", &whole);
        write("slot-3.json", &kept("other", text("x")).encode());
        write("slot-9.json", &kept("worker-1#9", text("x")).encode());
        write(".safe-fs-0123.tmp", b"");
        write(
            "huge",
            &vec![b' '; usize::try_from(MAX_KEPT_BYTES).unwrap() + 1],
        );
        fs_err::create_dir(folder.join("folder")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.join("link")).unwrap();
        drop(results);
        let (_results, found) = place.open();
        assert_eq!(found, [good]);
        assert_eq!(place.aside().len(), 8, "{:?}", place.aside());
        assert_eq!(fs_err::read_dir(&folder).unwrap().count(), 2);
    }

    #[test]
    fn a_folder_that_others_may_read_or_own_is_refused() {
        let place = Place::new();
        let held = place.open();
        let worker = "worker-1".parse().unwrap();
        let error = Results::open(&place.root, &worker, 4).unwrap_err();
        assert!(matches!(error, WorkerError::RootInUse { .. }), "{error}");
        drop(held);
        let open = std::fs::Permissions::from_mode(0o750);
        fs_err::set_permissions(&place.root, open).unwrap();
        let error = Results::open(&place.root, &worker, 4).unwrap_err();
        assert!(matches!(error, WorkerError::Root { .. }), "{error}");
    }
}
