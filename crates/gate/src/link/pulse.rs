//! When a connection with job control is pinged, and when it is given up: a plan, without a clock.

use std::time::Duration;

use tokio::time::Instant;

/// How much longer than its limit something may take that has arrived and waits to be read.
const SLACK: Duration = Duration::from_secs(1);

/// The times of the protocol.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// From one ping to the next.
    pub ping: Duration,
    /// The longest time without a pong.
    pub pong: Duration,
    /// The longest time from a cancel to the word that the attempt has stopped.
    pub stop: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            ping: Duration::from_secs(10),
            pong: Duration::from_secs(30),
            stop: Duration::from_secs(30),
        }
    }
}

/// What the time brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beat {
    /// The next ping.
    Ping,
    /// The Worker has answered none for too long.
    NoPong,
    /// The Worker has not stopped an attempt.
    NotStopped,
}

/// The times of one connection.
#[derive(Debug)]
pub(super) struct Pulse {
    pace: Pace,
    pinged: Instant,
    ponged: Instant,
    cancelled: Option<Instant>,
}

impl Pulse {
    /// The first ping goes out now.
    pub(super) const fn new(pace: Pace, now: Instant) -> Self {
        Self {
            pace,
            pinged: now,
            ponged: now,
            cancelled: None,
        }
    }

    /// A ping went out.
    pub(super) const fn pinged(&mut self, now: Instant) {
        self.pinged = now;
    }

    /// A pong came.
    pub(super) const fn ponged(&mut self, now: Instant) {
        self.ponged = now;
    }

    /// The Worker was told to stop its attempt.
    pub(super) const fn cancelled(&mut self, now: Instant) {
        self.cancelled = Some(now);
    }

    /// Nothing is to be stopped.
    pub(super) const fn stopped(&mut self) {
        self.cancelled = None;
    }

    /// What comes next, and when; `pings` tells whether the next ping may be sent.
    pub(super) fn next(&self, pings: bool) -> (Instant, Beat) {
        let stop = self
            .cancelled
            .map(|at| (at + self.pace.stop, Beat::NotStopped));
        let ping = pings.then(|| (self.pinged + self.pace.ping, Beat::Ping));
        let first = (self.ponged + self.pace.pong, Beat::NoPong);
        [stop, ping]
            .into_iter()
            .flatten()
            .fold(
                first,
                |first, other| if other.0 < first.0 { other } else { first },
            )
    }

    /// What is due. What has arrived and is not read yet counts as in time, within bounds.
    pub(super) fn due(&self, now: Instant, pings: bool, has_arrived: bool) -> Option<Beat> {
        let (at, beat) = self.next(pings);
        let patience = match beat {
            Beat::Ping => Duration::ZERO,
            Beat::NoPong | Beat::NotStopped if !has_arrived => Duration::ZERO,
            Beat::NoPong | Beat::NotStopped => SLACK,
        };
        (at + patience <= now).then_some(beat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_ping_every_ten_seconds_and_an_end_after_thirty_without_a_pong() {
        let start = Instant::now();
        let mut pulse = Pulse::new(Pace::default(), start);
        let just = Duration::from_nanos(1);
        for round in 1..=10 {
            let at = start + s(10 * round);
            assert_eq!(pulse.due(at - just, true, false), None);
            assert_eq!(pulse.due(at, true, false), Some(Beat::Ping));
            pulse.pinged(at);
            pulse.ponged(at + s(9));
        }
        let last = start + s(109);
        for at in [110, 120, 130] {
            assert_eq!(pulse.due(start + s(at), true, false), Some(Beat::Ping));
            pulse.pinged(start + s(at));
        }
        assert_eq!(pulse.due(last + s(30) - just, true, false), None);
        assert_eq!(pulse.due(last + s(30), true, false), Some(Beat::NoPong));
        // A pong that lies there unread is not late, but not for ever.
        assert_eq!(pulse.due(last + s(30), true, true), None);
        assert_eq!(pulse.due(last + s(31), true, true), Some(Beat::NoPong));
        pulse.ponged(last + s(30));
        assert_eq!(pulse.due(last + s(31), true, false), Some(Beat::Ping));
    }

    #[test]
    fn a_greeting_that_is_not_answered_ends_after_thirty_seconds_without_another_ping() {
        let start = Instant::now();
        let pulse = Pulse::new(Pace::default(), start);
        assert_eq!(pulse.next(false), (start + s(30), Beat::NoPong));
        assert_eq!(pulse.due(start + s(29), false, false), None);
        assert_eq!(pulse.due(start + s(30), false, false), Some(Beat::NoPong));
    }

    #[test]
    fn a_cancel_has_thirty_seconds_and_pings_go_on_meanwhile() {
        let start = Instant::now();
        let mut pulse = Pulse::new(Pace::default(), start);
        pulse.cancelled(start + s(5));
        for at in [10, 20, 30] {
            assert_eq!(pulse.due(start + s(at), true, false), Some(Beat::Ping));
            pulse.pinged(start + s(at));
            pulse.ponged(start + s(at));
        }
        assert_eq!(pulse.due(start + s(34), true, false), None);
        assert_eq!(
            pulse.due(start + s(35), true, false),
            Some(Beat::NotStopped)
        );
        assert_eq!(pulse.due(start + s(35), true, true), None);
        pulse.stopped();
        assert_eq!(pulse.due(start + s(36), true, false), None);
    }
}
