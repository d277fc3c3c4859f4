//! The end of a server: nothing new, then a grace for what runs, then no more.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long connections may take to notice that they are dropped.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// The tasks of a server and the two steps of its end; clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Lifetime {
    /// What is waited for, every connection among them.
    pub tasks: TaskTracker,
    /// Cancelled when no new request is to be taken.
    pub stopping: CancellationToken,
    /// Cancelled when what still runs is to be dropped.
    pub killed: CancellationToken,
}

impl Lifetime {
    /// Waits for what runs, at most for the grace; what is left then is dropped.
    pub async fn finish(&self, grace: Duration) {
        self.tasks.close();
        if tokio::time::timeout(grace, self.tasks.wait())
            .await
            .is_err()
        {
            self.killed.cancel();
            // A connection that does not end in this time ends with the process.
            drop(tokio::time::timeout(LAST_WAIT, self.tasks.wait()).await);
        }
    }
}

/// The signals that ask a server to stop.
#[derive(Debug)]
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Takes the signals over from their default, which is to kill.
    ///
    /// # Errors
    /// The handlers cannot be set up.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next of them.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_does_not_end_in_its_grace_is_dropped() {
        let lifetime = Lifetime::default();
        let killed = lifetime.killed.clone();
        lifetime
            .tasks
            .spawn(async move { killed.cancelled().await });
        let start = tokio::time::Instant::now();
        lifetime.finish(Duration::from_secs(10)).await;
        assert_eq!(start.elapsed().as_secs(), 10);
        assert!(lifetime.tasks.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn what_ends_by_itself_is_waited_for_and_not_dropped() {
        let lifetime = Lifetime::default();
        lifetime
            .tasks
            .spawn(tokio::time::sleep(Duration::from_secs(3)));
        let start = tokio::time::Instant::now();
        lifetime.finish(Duration::from_secs(10)).await;
        assert_eq!(start.elapsed().as_secs(), 3);
        assert!(!lifetime.killed.is_cancelled());
    }
}
