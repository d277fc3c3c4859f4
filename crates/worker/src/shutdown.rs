//! What signals and time do to a running Worker: serve, drain, cancel, kill.
//!
//! Pure: it is told of signals and of the time, and answers what to do; it touches neither
//! signals, tasks nor processes. The phases only go forward.
//!
//! ```text
//! serving ──signal──► draining ──signal──► cancelling ──signal or deadline──► killing
//!                        └────────────── deadline ───────────────────────────────┘
//! ```

use std::time::{Duration, Instant};

/// How long cancelled jobs may take to stop, report and clean up.
pub(crate) const CANCEL_TIMEOUT: Duration = Duration::from_secs(15);
/// How long the trees of killed jobs may take to be gone before the process ends regardless;
/// the wrappers finish the work when their host is gone.
pub(crate) const KILL_GRACE: Duration = Duration::from_secs(2);

/// What the Worker has to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Nothing changed.
    Continue,
    /// Take no further lease; running jobs go on.
    Drain,
    /// Cancel the running jobs, and report them while the connection stands.
    Cancel,
    /// Kill the running jobs and report nothing.
    Kill,
    /// End the process now.
    Leave,
}

/// How the Worker ended; the exit code says which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Every job that ran has come to its end: delivered, kept, or stopped for its lost lease.
    Drained,
    /// A second signal cancelled the jobs that ran.
    Cancelled,
    /// The deadline passed, or a third signal came, and the jobs were killed.
    Killed,
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Drained => "drained: no job runs any more",
            Self::Cancelled => "cancelled: the running jobs were cancelled by a second signal",
            Self::Killed => "killed: the running jobs were killed",
        })
    }
}

impl Outcome {
    /// The exit code of the process.
    pub(crate) const fn exit_code(self) -> u8 {
        match self {
            Self::Drained => 0,
            Self::Cancelled => 3,
            Self::Killed => 4,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Serving,
    Draining { until: Instant },
    Cancelling { until: Instant },
    Killing { until: Instant },
}

/// The machine.
#[derive(Debug)]
pub(crate) struct Shutdown {
    phase: Phase,
    drain_timeout: Duration,
}

impl Shutdown {
    /// A Worker that serves, and that gives its jobs `drain_timeout` after the first signal.
    pub(crate) const fn new(drain_timeout: Duration) -> Self {
        Self {
            phase: Phase::Serving,
            drain_timeout,
        }
    }

    /// SIGTERM or SIGINT arrived.
    pub(crate) fn signal(&mut self, now: Instant) -> Order {
        match self.phase {
            Phase::Serving => {
                let until = now + self.drain_timeout;
                self.phase = Phase::Draining { until };
                Order::Drain
            }
            Phase::Draining { .. } => {
                let until = now + CANCEL_TIMEOUT;
                self.phase = Phase::Cancelling { until };
                Order::Cancel
            }
            Phase::Cancelling { .. } => self.kill(now),
            Phase::Killing { .. } => Order::Leave,
        }
    }

    /// When `deadline_reached` wants to be called, if ever.
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Serving => None,
            Phase::Draining { until } | Phase::Cancelling { until } | Phase::Killing { until } => {
                Some(until)
            }
        }
    }

    /// Time went by; acts only if the deadline has been reached.
    pub(crate) fn deadline_reached(&mut self, now: Instant) -> Order {
        match self.phase {
            Phase::Draining { until } | Phase::Cancelling { until } if now >= until => {
                self.kill(now)
            }
            Phase::Killing { until } if now >= until => Order::Leave,
            Phase::Serving
            | Phase::Draining { .. }
            | Phase::Cancelling { .. }
            | Phase::Killing { .. } => Order::Continue,
        }
    }

    /// What to exit with when every slot has ended.
    pub(crate) const fn outcome(&self) -> Outcome {
        match self.phase {
            Phase::Serving | Phase::Draining { .. } => Outcome::Drained,
            Phase::Cancelling { .. } => Outcome::Cancelled,
            Phase::Killing { .. } => Outcome::Killed,
        }
    }

    fn kill(&mut self, now: Instant) -> Order {
        let until = now + KILL_GRACE;
        self.phase = Phase::Killing { until };
        Order::Kill
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> Instant {
        tokio::time::Instant::now().into_std()
    }

    const DRAIN: Duration = Duration::from_secs(60);

    #[test]
    fn one_signal_drains_and_exits_0() {
        let mut shutdown = Shutdown::new(DRAIN);
        assert_eq!(shutdown.deadline(), None);
        assert_eq!(shutdown.signal(start()), Order::Drain);
        assert_eq!(shutdown.outcome().exit_code(), 0);
    }

    #[test]
    fn a_second_signal_cancels_and_exits_3() {
        let now = start();
        let mut shutdown = Shutdown::new(DRAIN);
        shutdown.signal(now);
        assert_eq!(shutdown.signal(now), Order::Cancel);
        assert_eq!(shutdown.outcome().exit_code(), 3);
    }

    #[test]
    fn the_deadline_kills_and_exits_4_not_a_moment_earlier() {
        let now = start();
        let mut shutdown = Shutdown::new(DRAIN);
        shutdown.signal(now);
        assert_eq!(shutdown.deadline(), Some(now + DRAIN));
        let early = now + DRAIN - Duration::from_nanos(1);
        assert_eq!(shutdown.deadline_reached(early), Order::Continue);
        assert_eq!(shutdown.deadline_reached(now + DRAIN), Order::Kill);
        assert_eq!(shutdown.outcome().exit_code(), 4);
        let left = now + DRAIN + KILL_GRACE;
        assert_eq!(shutdown.deadline_reached(left), Order::Leave);
    }

    #[test]
    fn cancelled_jobs_that_do_not_stop_are_killed() {
        let now = start();
        let mut shutdown = Shutdown::new(DRAIN);
        shutdown.signal(now);
        shutdown.signal(now);
        assert_eq!(shutdown.deadline_reached(now + CANCEL_TIMEOUT), Order::Kill);
        assert_eq!(shutdown.outcome(), Outcome::Killed);
    }

    #[test]
    fn a_third_signal_kills_and_a_fourth_leaves() {
        let now = start();
        let mut shutdown = Shutdown::new(DRAIN);
        shutdown.signal(now);
        shutdown.signal(now);
        assert_eq!(shutdown.signal(now), Order::Kill);
        assert_eq!(shutdown.signal(now), Order::Leave);
    }

    #[test]
    fn no_deadline_passes_while_serving() {
        let now = start();
        let mut shutdown = Shutdown::new(Duration::ZERO);
        assert_eq!(shutdown.deadline_reached(now + DRAIN), Order::Continue);
    }

    proptest::proptest! {
        /// Whatever comes in whatever order, the end never becomes a gentler one.
        #[test]
        fn phases_only_go_forward(events in proptest::collection::vec((0..3_u8, 0..90_u64), 0..24)) {
            let mut now = start();
            let mut shutdown = Shutdown::new(DRAIN);
            let (mut code, mut signals) = (0, 0);
            for (event, seconds) in events {
                now += Duration::from_secs(seconds);
                let order = if event == 0 {
                    signals += 1;
                    shutdown.signal(now)
                } else {
                    shutdown.deadline_reached(now)
                };
                proptest::prop_assert!(shutdown.outcome().exit_code() >= code);
                code = shutdown.outcome().exit_code();
                proptest::prop_assert_eq!(order == Order::Drain, event == 0 && signals == 1);
                proptest::prop_assert_eq!(shutdown.deadline().is_none(), signals == 0);
            }
            proptest::prop_assert!(code != 3 || signals >= 2);
        }
    }
}
