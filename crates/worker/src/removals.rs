//! Removes the folders of jobs that are over, while nobody waits for it.
//!
//! What a job waits for is that its folders are put aside: they get names under which no plugin,
//! check or git finds them. Taking a large tree away may last longer than the job itself, so that
//! is done one tree after the other beside the next jobs. A Worker that is killed meanwhile leaves
//! them to the next start.

use std::sync::Arc;
use std::time::Duration;

use git_workspace::GitError;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::place::Place;
use crate::plugin::chain;

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
                    error = %chain(&error),
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
            tracing::warn!(error = %chain(&error), "cannot remove a workspace");
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
