//! The time by which plugins are late.

use std::time::{Duration, Instant};

use tokio::sync::watch;

/// A clock that goes with the system's, and that a test of a deadline can push forward.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    ahead: Option<watch::Sender<Duration>>,
}

impl Clock {
    /// Makes a clock that [`Clock::advance`] pushes forward.
    #[must_use]
    pub fn adjustable() -> Self {
        Self {
            ahead: Some(watch::Sender::new(Duration::ZERO)),
        }
    }

    /// Lets so much time pass at once, for everybody who waits by this clock or a clone of it.
    /// Does nothing to a clock that is not adjustable.
    pub fn advance(&self, by: Duration) {
        if let Some(ahead) = &self.ahead {
            ahead.send_modify(|ahead| *ahead += by);
        }
    }

    pub(crate) fn now(&self) -> Instant {
        let ahead = self.ahead.as_ref().map_or(Duration::ZERO, |a| *a.borrow());
        tokio::time::Instant::now().into_std() + ahead
    }

    /// Waits until a moment of this clock; for ever if there is none.
    pub(crate) async fn until(&self, deadline: Option<Instant>) {
        let Some(deadline) = deadline else {
            return std::future::pending().await;
        };
        let Some(ahead) = &self.ahead else {
            return tokio::time::sleep_until(deadline.into()).await;
        };
        let mut changes = ahead.subscribe();
        loop {
            let ahead = *changes.borrow_and_update();
            let real = deadline.checked_sub(ahead).unwrap_or(deadline);
            tokio::select! {
                () = tokio::time::sleep_until(real.into()) => return,
                // The sender lives as long as this clock.
                _ = changes.changed() => {}
            }
        }
    }
}
