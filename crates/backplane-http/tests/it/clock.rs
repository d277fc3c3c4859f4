//! A time that only the test moves.

use std::time::Duration;

use backplane_http::{Clock, Wait};
use jiff::Timestamp;
use tokio::sync::watch;

use crate::server::until;

#[derive(Debug)]
pub(crate) struct Still {
    now: watch::Sender<Duration>,
    waits: std::sync::Mutex<Vec<Duration>>,
    pub(crate) wall: Timestamp,
}

impl Still {
    pub(crate) fn new() -> Self {
        Self {
            now: watch::Sender::new(Duration::ZERO),
            waits: std::sync::Mutex::new(Vec::new()),
            wall: "2026-10-21T07:28:00Z".parse().unwrap(),
        }
    }

    pub(crate) fn set(&self, now: Duration) {
        self.now.send_replace(now);
    }

    /// Waits until somebody waits for that time.
    pub(crate) fn wait_for(&self, time: Duration) {
        until(|| self.waits.lock().unwrap().contains(&time));
    }

    pub(crate) fn waits(&self) -> Vec<Duration> {
        self.waits.lock().unwrap().clone()
    }
}

impl Clock for Still {
    fn now(&self) -> Duration {
        *self.now.borrow()
    }

    fn wait(&self, until: Duration) -> Wait<'_> {
        let mut now = self.now.subscribe();
        self.waits.lock().unwrap().push(until);
        Box::pin(async move {
            now.wait_for(|now| *now >= until).await.unwrap();
        })
    }

    fn wall(&self) -> Timestamp {
        self.wall
    }
}
