//! Removes the folders of jobs that are over, while nobody waits for it.
//!
//! What a job waits for is that its folders are put aside: they get names under which no plugin,
//! check or git finds them. Taking a large tree away may last longer than the job itself, so that
//! is done one tree after the other beside the next jobs. A Worker that is killed meanwhile leaves
//! them to the next start.

use std::sync::Arc;
use std::time::Duration;

use bounded::text::with_causes;
use git_workspace::GitError;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::place::Place;

/// How many places may wait for their removal; a job that ends then removes its own.
const WAITING: usize = 16;

/// How long the end of the Worker waits for what is left to remove.
const AT_THE_END: Duration = Duration::from_secs(10);

/// The places that are to go.
#[derive(Debug)]
pub(crate) struct Removals {
    room: Arc<Semaphore>,
    turn: Arc<Semaphore>,
    tasks: TaskTracker,
}

impl Removals {
    /// Nothing waits yet.
    pub(crate) fn new() -> Self {
        Self {
            room: Arc::new(Semaphore::new(WAITING)),
            turn: Arc::new(Semaphore::new(1)),
            tasks: TaskTracker::new(),
        }
    }

    /// Puts a place aside and has it removed later; removes it at once while too many wait.
    pub(crate) async fn put_aside(&self, place: Place) -> Result<(), GitError> {
        let Ok(room) = Arc::clone(&self.room).try_acquire_owned() else {
            return place.remove().await;
        };
        let (place, done) = place.put_aside().await;
        let turn = Arc::clone(&self.turn);
        self.tasks.spawn(async move {
            // It is closed never.
            let _turn = turn.acquire().await;
            if let Some(place) = place
                && let Err(error) = place.remove().await
            {
                tracing::warn!(
                    error = %with_causes(&error),
                    "cannot remove the folders of a job, the next start of the Worker sweeps"
                );
            }
            drop(room);
        });
        done
    }

    /// As [`put_aside`](Self::put_aside), where nobody is left to tell but the log.
    pub(crate) async fn later(&self, place: Place) {
        if let Err(error) = self.put_aside(place).await {
            tracing::warn!(error = %with_causes(&error), "cannot remove a workspace");
        }
    }

    /// Waits, but not for ever, until nothing is left.
    pub(crate) async fn close(&self) {
        self.tasks.close();
        if tokio::time::timeout(AT_THE_END, self.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!("folders of jobs are left, the next start of the Worker sweeps");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use git_workspace::{Git, REMOVED_PREFIX};

    use super::*;
    use crate::runtime_dir::RuntimeDir;

    struct Lab {
        dir: tempfile::TempDir,
        git: Git,
        base: git_workspace::Base,
    }

    impl Lab {
        #[expect(
            clippy::disallowed_methods,
            reason = "the test's own processes are not under test"
        )]
        async fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().canonicalize().unwrap();
            for folder in ["repo", "worktrees", "runtime"] {
                fs_err::create_dir(root.join(folder)).unwrap();
            }
            let repo = root.join("repo");
            fs_err::write(repo.join("file"), "x").unwrap();
            for arguments in [
                &["init", "-q", "-b", "main"][..],
                &["add", "."],
                &["commit", "-q", "-m", "base"],
            ] {
                let identity = ["-c", "user.name=x", "-c", "user.email=x@example.invalid"];
                let mut git = Command::new("git");
                let status = git
                    .args(identity)
                    .args(arguments)
                    .current_dir(&repo)
                    .status();
                assert!(status.unwrap().success());
            }
            let git = Git::find(&std::env::var_os("PATH").unwrap()).unwrap();
            let head = git.resolve(&repo, "HEAD").await.unwrap();
            let branch = "main".parse().unwrap();
            let base = git.check_base(&repo, &head, &branch).await.unwrap();
            Self { dir, git, base }
        }

        async fn place(&self) -> Place {
            let root = self.dir.path().canonicalize().unwrap();
            let runtime = RuntimeDir::make(&root.join("runtime")).await.unwrap();
            let workspace = self
                .git
                .prepare(&self.base, &root.join("worktrees"), runtime.path())
                .await
                .unwrap();
            Place { workspace, runtime }
        }

        fn found(&self) -> Vec<PathBuf> {
            let mut found = Vec::new();
            for folder in ["worktrees", "runtime"] {
                for entry in fs_err::read_dir(self.dir.path().join(folder)).unwrap() {
                    found.push(entry.unwrap().path());
                }
            }
            found
        }
    }

    fn is_put_aside(path: &Path) -> bool {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with(REMOVED_PREFIX)
    }

    #[tokio::test]
    async fn a_job_waits_until_its_folders_are_put_aside_and_not_for_their_removal() {
        let (lab, removals) = (Lab::new().await, Removals::new());
        // Nothing is removed before this is given back, so that whoever waited would wait for ever.
        let turn = Arc::clone(&removals.turn).acquire_owned().await.unwrap();
        let place = lab.place().await;
        let (workspace, runtime) = (
            place.workspace.path().to_owned(),
            place.runtime.path().to_owned(),
        );
        removals.put_aside(place).await.unwrap();
        assert!(!workspace.exists() && !runtime.exists());
        let found = lab.found();
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|path| is_put_aside(path)), "{found:?}");
        drop(turn);
        removals.close().await;
        assert_eq!(lab.found(), Vec::<PathBuf>::new());
    }

    #[tokio::test]
    async fn while_too_many_wait_a_job_removes_its_own() {
        let (lab, removals) = (Lab::new().await, Removals::new());
        let _turn = removals.turn.acquire().await.unwrap();
        let _room = removals
            .room
            .acquire_many(u32::try_from(WAITING).unwrap())
            .await
            .unwrap();
        removals.put_aside(lab.place().await).await.unwrap();
        assert_eq!(lab.found(), Vec::<PathBuf>::new());
    }

    #[tokio::test]
    async fn folders_that_are_gone_already_are_fine() {
        let (lab, removals) = (Lab::new().await, Removals::new());
        let place = lab.place().await;
        for path in lab.found() {
            fs_err::remove_dir_all(path).unwrap();
        }
        removals.put_aside(place).await.unwrap();
        removals.close().await;
    }

    #[tokio::test]
    async fn folders_are_removed_where_they_were_made_whatever_their_path_leads_to() {
        let (lab, removals) = (Lab::new().await, Removals::new());
        let place = lab.place().await;
        let worktrees = lab.dir.path().join("worktrees");
        fs_err::rename(&worktrees, lab.dir.path().join("moved")).unwrap();
        fs_err::create_dir(&worktrees).unwrap();
        removals.put_aside(place).await.unwrap();
        removals.close().await;
        let moved = fs_err::read_dir(lab.dir.path().join("moved")).unwrap();
        assert_eq!(moved.count(), 0);
    }
}
