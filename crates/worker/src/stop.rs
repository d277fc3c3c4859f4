//! The three ways in which everything is told to end, each stronger than the one before.

use tokio_util::sync::CancellationToken;

/// Handed to every slot.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop {
    /// Take no further lease.
    pub(crate) drain: CancellationToken,
    /// Cancel running jobs, and report that.
    pub(crate) cancel: CancellationToken,
    /// Leave; report nothing.
    pub(crate) kill: CancellationToken,
}

impl Stop {
    /// No further lease.
    pub(crate) fn drain(&self) {
        self.drain.cancel();
    }

    /// No further lease, and running jobs are cancelled.
    pub(crate) fn cancel(&self) {
        self.drain();
        self.cancel.cancel();
    }

    /// Everything ends at once.
    pub(crate) fn kill(&self) {
        self.cancel();
        self.kill.cancel();
    }
}
