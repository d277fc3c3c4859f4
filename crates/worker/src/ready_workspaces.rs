//! Workspaces made ahead of the job that will use them, so that a lease finds one waiting.
//!
//! A repository is served once a job has used it; the next workspace is made while that job's
//! plugin is busy or its slot idles, at its base. A job with another base moves it there at the
//! cost of what differs. Each is used once, and only if nobody has touched it since: otherwise it
//! is thrown away, and the job makes its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bounded::text::with_causes;
use git_workspace::{Base, Git};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::place::Place;
use crate::removals::Removals;
use crate::runner::Bench;

/// For how many repositories places wait; what was used longest ago makes room for another.
const REPOSITORIES: usize = 8;

/// A job that takes longer than this is worth making the next workspace beside it; a shorter one
/// is not to be slowed down by it.
const HEAD_START: Duration = Duration::from_secs(2);

/// The places that wait, by repository.
#[derive(Debug)]
pub(crate) struct ReadyWorkspaces {
    wanted: usize,
    waiting: Mutex<Waiting>,
    makers: TaskTracker,
    closing: CancellationToken,
}

#[derive(Debug, Default)]
struct Waiting {
    shelves: BTreeMap<PathBuf, Shelf>,
    uses: u64,
}

#[derive(Debug, Default)]
struct Shelf {
    places: Vec<Place>,
    making: usize,
    /// When it was used last, in uses of any.
    used: u64,
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

    /// Takes a place of the repository that is as it was made, and throws away those that are not.
    pub(crate) async fn take(&self, repository: &Path, removals: &Removals) -> Option<Place> {
        loop {
            let place = self.lock().shelves.get_mut(repository)?.places.pop()?;
            if place.is_as_made().await {
                return Some(place);
            }
            tracing::warn!(
                workspace = %place.workspace.path().display(),
                "a workspace made ahead is not as it was made, and thrown away"
            );
            removals.later(place).await;
        }
    }

    /// Brings a place to the base. One that cannot be brought there is thrown away.
    pub(crate) async fn bring(
        &self,
        mut place: Place,
        git: &Git,
        base: &Base,
        removals: &Removals,
    ) -> Option<Place> {
        let workspace = &mut place.workspace;
        workspace.set_git(git.clone());
        let moved = if workspace.base() == base {
            Ok(())
        } else {
            workspace.move_to(base).await
        };
        let settled = match moved {
            Ok(()) => workspace.settle().await,
            Err(error) => Err(error),
        };
        match settled {
            Ok(()) => Some(place),
            Err(error) => {
                tracing::warn!(error = %with_causes(&error), "a workspace made ahead is of no use");
                removals.later(place).await;
                None
            }
        }
    }

    /// Takes a place back that no job has used.
    pub(crate) async fn give_back(&self, place: Place, removals: &Removals) {
        let base = place.workspace.base().clone();
        if let Some(unwanted) = self.put(&base, Some(place), 0) {
            removals.later(unwanted).await;
        }
    }

    /// Has places made until there are enough for the repository of `base`: once the job has
    /// run for a while or is `over`.
    pub(crate) fn refill(&self, bench: &Arc<Bench>, base: &Base, over: &CancellationToken) {
        if self.wanted == 0 {
            return;
        }
        let (missing, unwanted) = self.lock().order(base.repository().path(), self.wanted);
        for place in unwanted {
            let bench = Arc::clone(bench);
            self.makers
                .spawn(async move { bench.removals.later(place).await });
        }
        for _ in 0..missing {
            let (bench, base, over) = (Arc::clone(bench), base.clone(), over.clone());
            self.makers.spawn(async move {
                tokio::select! {
                    () = bench.ready.closing.cancelled() => return,
                    () = over.cancelled() => {}
                    () = tokio::time::sleep(HEAD_START) => {}
                }
                let made = Place::make(&bench.git, &bench.host, &base)
                    .await
                    .map_err(|error| tracing::warn!(error = %with_causes(&error), "cannot make a workspace ahead"))
                    .ok();
                if let Some(unwanted) = bench.ready.put(&base, made, 1) {
                    bench.removals.later(unwanted).await;
                }
            });
        }
    }

    /// Makes no more, and has those removed that wait.
    pub(crate) async fn close(&self, removals: &Removals) {
        self.closing.cancel();
        self.makers.close();
        self.makers.wait().await;
        let shelves = std::mem::take(&mut self.lock().shelves);
        for place in shelves.into_values().flat_map(|shelf| shelf.places) {
            removals.later(place).await;
        }
    }

    /// Puts a place on its shelf, the result of `made` orders. It comes back if nobody wants it.
    fn put(&self, base: &Base, place: Option<Place>, made: usize) -> Option<Place> {
        let closed = self.closing.is_cancelled();
        let mut waiting = self.lock();
        // A shelf that was cleared away meanwhile is not wanted any more.
        let Some(shelf) = waiting.shelves.get_mut(base.repository().path()) else {
            return place;
        };
        shelf.making = shelf.making.saturating_sub(made);
        if closed || shelf.places.len() >= self.wanted {
            return place;
        }
        if let Some(place) = &place {
            let workspace = place.workspace.path().display();
            tracing::debug!(%workspace, "a workspace waits for the next job");
        }
        shelf.places.extend(place);
        None
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Notes a use of the repository. Gives how many places are to be made for it, and those of
    /// other repositories that are not worth their room any more.
    fn order(&mut self, repository: &Path, wanted: usize) -> (usize, Vec<Place>) {
        self.uses += 1;
        let shelf = self.shelves.entry(repository.to_owned()).or_default();
        shelf.used = self.uses;
        let missing = wanted.saturating_sub(shelf.places.len() + shelf.making);
        shelf.making += missing;
        let mut unwanted = Vec::new();
        while self.shelves.len() > REPOSITORIES {
            let oldest = self.shelves.iter().min_by_key(|(_, shelf)| shelf.used);
            let Some(oldest) = oldest.map(|(path, _)| path.clone()) else {
                break;
            };
            unwanted.extend(self.shelves.remove(&oldest).map(|shelf| shelf.places));
        }
        (missing, unwanted.into_iter().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_repository_has_as_many_as_are_wanted_and_no_more_are_ordered() {
        let mut waiting = Waiting::default();
        let path = Path::new("/repo");
        assert_eq!(waiting.order(path, 3).0, 3);
        assert_eq!(waiting.order(path, 3).0, 0, "three are being made");
        waiting.shelves.get_mut(path).unwrap().making = 1;
        assert_eq!(waiting.order(path, 3).0, 2);
    }

    #[test]
    fn the_repository_used_longest_ago_makes_room() {
        let mut waiting = Waiting::default();
        let path = |number: usize| PathBuf::from(format!("/repo{number}"));
        for number in 0..REPOSITORIES {
            waiting.order(&path(number), 1);
        }
        waiting.order(&path(0), 1);
        waiting.order(&path(REPOSITORIES), 1);
        assert_eq!(waiting.shelves.len(), REPOSITORIES);
        assert!(waiting.shelves.contains_key(&path(0)));
        assert!(!waiting.shelves.contains_key(&path(1)));
        assert!(waiting.shelves.contains_key(&path(REPOSITORIES)));
    }
}
