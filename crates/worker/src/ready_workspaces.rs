//! Workspaces made ahead of the job that will use them, so that a lease finds one waiting.
//!
//! A repository is served once a job has used it; the next workspace is made while that job's
//! plugin is busy, at its base. A job with another base moves it there at the cost of what
//! differs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use git_workspace::{Base, Git, GitError, Workspace};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::plugin::chain;
use crate::runner::Bench;
use crate::runtime_dir::RuntimeDir;

/// A job that takes longer than this is worth making the next workspace beside it; a shorter one
/// is not to be slowed down by it.
const HEAD_START: Duration = Duration::from_secs(2);

/// Where a job works: its files, and the private folder beside them.
///
/// The order of the fields matters: the workspace keeps its git directory in the folder.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) workspace: Workspace,
    pub(crate) runtime: RuntimeDir,
}

/// The places that wait, by repository.
#[derive(Debug)]
pub(crate) struct ReadyWorkspaces {
    wanted: usize,
    waiting: Mutex<BTreeMap<PathBuf, Shelf>>,
    makers: TaskTracker,
    closing: CancellationToken,
}

#[derive(Debug, Default)]
struct Shelf {
    places: Vec<Place>,
    making: usize,
}

impl ReadyWorkspaces {
    /// Keeps up to `wanted` places for each repository; none means that every job makes its own.
    pub(crate) fn new(wanted: u16) -> Self {
        Self {
            wanted: wanted.into(),
            waiting: Mutex::default(),
            makers: TaskTracker::new(),
            closing: CancellationToken::new(),
        }
    }

    /// Takes a place of the base's repository and brings it to the base.
    pub(crate) async fn take(&self, git: &Git, base: &Base) -> Option<Place> {
        let mut place = self.with_shelf(base, |shelf| shelf.places.pop())?;
        place.workspace.set_git(git.clone());
        if place.workspace.base() == base {
            return Some(place);
        }
        match place.workspace.move_to(base).await {
            Ok(()) => Some(place),
            Err(error) => {
                tracing::warn!(error = %chain(&error), "a workspace made ahead is of no use");
                discard(place).await;
                None
            }
        }
    }

    /// Has places made until there are enough for the repository of `base`: once the job has
    /// run for a while or is `over`.
    pub(crate) fn refill(&self, bench: &Arc<Bench>, base: &Base, over: &CancellationToken) {
        let missing = self.with_shelf(base, |shelf| {
            let missing = self
                .wanted
                .saturating_sub(shelf.places.len() + shelf.making);
            shelf.making += missing;
            missing
        });
        for _ in 0..missing {
            let (bench, base, over) = (Arc::clone(bench), base.clone(), over.clone());
            self.makers.spawn(async move {
                tokio::select! {
                    () = bench.ready.closing.cancelled() => return,
                    () = over.cancelled() => {}
                    () = tokio::time::sleep(HEAD_START) => {}
                }
                let made = make(&bench, &base).await;
                bench.ready.put(&base, made).await;
            });
        }
    }

    /// Makes no more, and removes those that wait.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        self.makers.close();
        self.makers.wait().await;
        let shelves = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *waiting)
        };
        for place in shelves.into_values().flat_map(|shelf| shelf.places) {
            discard(place).await;
        }
    }

    async fn put(&self, base: &Base, made: Result<Place, GitError>) {
        let made = made
            .map_err(
                |error| tracing::warn!(error = %chain(&error), "cannot make a workspace ahead"),
            )
            .ok();
        let closed = self.closing.is_cancelled();
        let unwanted = self.with_shelf(base, |shelf| {
            shelf.making = shelf.making.saturating_sub(1);
            if closed {
                return made;
            }
            shelf.places.extend(made);
            None
        });
        if let Some(place) = unwanted {
            discard(place).await;
        }
    }

    fn with_shelf<T>(&self, base: &Base, then: impl FnOnce(&mut Shelf) -> T) -> T {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        then(
            waiting
                .entry(base.repository().path().to_owned())
                .or_default(),
        )
    }
}

async fn make(bench: &Bench, base: &Base) -> Result<Place, GitError> {
    let runtime = RuntimeDir::make(&bench.host.runtime_root).await?;
    let workspace = bench
        .git
        .prepare(base, &bench.host.worktree_root, runtime.path())
        .await?;
    Ok(Place { workspace, runtime })
}

async fn discard(place: Place) {
    if let Err(error) = place.remove().await {
        tracing::warn!(error = %chain(&error), "cannot remove a workspace");
    }
}
