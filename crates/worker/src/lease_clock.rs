//! The Worker's side of a lease's time: when to renew it, and when to let go.
//!
//! A heartbeat has no reply, so the Worker cannot know the Gate's deadline. It takes the
//! cautious reading: the lease runs from the moment the last heartbeat that counts was *sent*,
//! and the job is stopped a margin before that could have run out, so that its plugin is gone
//! before the job can be leased to anybody else. With each heartbeat goes a WebSocket ping:
//! from the first pong on, only a heartbeat whose pong came back counts; a Gate with job control
//! answers them always. A Gate that answers no pings is served by the write alone.
//!
//! An attempt may outlive its connection: the clock runs on from the last renewal, and on the
//! next connection the Gate's own figure counts, from the moment it was asked for.
//!
//! Pure: instants come in as arguments, nothing waits here.

use std::time::{Duration, Instant};

/// The time that stopping a plugin may need before the lease could be given away.
const MARGIN: Duration = Duration::from_secs(1);

/// What one connection knows of the Gate's pongs, from lease to lease.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pings {
    /// The number of the last ping; numbers never repeat on a connection.
    sent: u64,
    /// Whether there has ever been a pong.
    answered: bool,
}

impl Pings {
    /// The Gate is of a kind that answers pings: no heartbeat counts by its write alone.
    pub(crate) const fn will_be_answered(&mut self) {
        self.answered = true;
    }

    /// The number of the next ping.
    pub(crate) const fn next(&mut self) -> u64 {
        self.sent = self.sent.saturating_add(1);
        self.sent
    }
}

/// The clock of one lease.
#[derive(Debug)]
pub(crate) struct LeaseClock {
    ttl: Duration,
    interval: Duration,
    margin: Duration,
    runs_out: Instant,
    next_heartbeat: Instant,
    pings: Pings,
    awaiting: Option<(u64, Instant)>,
}

impl LeaseClock {
    /// A lease that was received at `now`. The caller has checked that `interval < ttl`.
    /// `pings` comes from the lease before on this connection.
    pub(crate) fn new(now: Instant, ttl: Duration, interval: Duration, pings: Pings) -> Self {
        let slack = ttl.saturating_sub(interval);
        Self {
            ttl,
            interval,
            margin: MARGIN.min(ttl / 4).min(slack / 2),
            runs_out: now + ttl,
            next_heartbeat: now + interval,
            pings,
            awaiting: None,
        }
    }

    /// When the next heartbeat is due.
    pub(crate) const fn next_heartbeat(&self) -> Instant {
        self.next_heartbeat
    }

    /// When the job must be stopped unless the lease is renewed before.
    pub(crate) fn let_go_at(&self) -> Instant {
        self.runs_out
            .checked_sub(self.margin)
            .unwrap_or(self.runs_out)
    }

    /// How long written bytes may stay unacknowledged before the connection is useless for
    /// renewing this lease.
    pub(crate) fn write_patience(&self) -> Duration {
        self.ttl
            .saturating_sub(self.interval)
            .saturating_sub(self.margin)
            .max(Duration::from_millis(100))
    }

    /// A heartbeat is about to be written; the number returned goes into its ping.
    pub(crate) fn heartbeat_starts(&mut self, now: Instant) -> u64 {
        let number = self.pings.next();
        self.next_heartbeat = now + self.interval;
        // An older ping without an answer stays the one to wait for: its heartbeat renewed the
        // lease if the answer comes, and forgetting it could only lose time.
        if self.awaiting.is_none() || !self.pings.answered {
            self.awaiting = Some((number, now));
        }
        number
    }

    /// The heartbeat that began at `started` was written.
    pub(crate) fn heartbeat_written(&mut self, started: Instant) {
        if !self.pings.answered {
            self.renewed(started);
        }
    }

    /// A pong with `number` came back.
    pub(crate) fn answered(&mut self, number: u64) {
        self.pings.answered = true;
        if let Some((awaited, started)) = self.awaiting
            && number >= awaited
            && number <= self.pings.sent
        {
            self.renewed(started);
            self.awaiting = None;
        }
    }

    /// The attempt goes on over a new connection: its Gate has said that the lease holds for
    /// `left`, at some time after the question was `asked`. The next heartbeat is due at once.
    pub(crate) fn attached(&mut self, asked: Instant, left: Duration, pings: Pings) {
        self.runs_out = asked + left.min(self.ttl);
        self.next_heartbeat = asked;
        self.pings = pings;
        self.awaiting = None;
    }

    fn renewed(&mut self, started: Instant) {
        self.runs_out = self.runs_out.max(started + self.ttl);
    }

    /// What the next lease on this connection has to know.
    pub(crate) const fn pings(&self) -> Pings {
        self.pings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(30);
    const BEAT: Duration = Duration::from_secs(10);

    const ANSWERED: Pings = Pings {
        sent: 0,
        answered: true,
    };

    fn start() -> Instant {
        tokio::time::Instant::now().into_std()
    }

    #[test]
    fn the_first_heartbeat_is_due_after_one_interval() {
        let now = start();
        let clock = LeaseClock::new(now, TTL, BEAT, Pings::default());
        assert_eq!(clock.next_heartbeat(), now + BEAT);
        assert_eq!(clock.let_go_at(), now + Duration::from_secs(29));
    }

    #[test]
    fn without_pongs_a_written_heartbeat_renews_from_its_start() {
        let now = start();
        let mut clock = LeaseClock::new(now, TTL, BEAT, Pings::default());
        let beat = now + BEAT;
        clock.heartbeat_starts(beat);
        assert_eq!(clock.let_go_at(), now + Duration::from_secs(29));
        clock.heartbeat_written(beat);
        assert_eq!(clock.let_go_at(), beat + Duration::from_secs(29));
        assert_eq!(clock.next_heartbeat(), beat + BEAT);
    }

    #[test]
    fn once_the_gate_answers_a_write_alone_renews_nothing() {
        let now = start();
        let mut clock = LeaseClock::new(now, TTL, BEAT, Pings::default());
        let first = clock.heartbeat_starts(now + BEAT);
        clock.heartbeat_written(now + BEAT);
        clock.answered(first);
        for beat in 2..5 {
            clock.heartbeat_starts(now + BEAT * beat);
            clock.heartbeat_written(now + BEAT * beat);
        }
        assert_eq!(clock.let_go_at(), now + BEAT + Duration::from_secs(29));
    }

    #[test]
    fn a_late_pong_counts_from_the_oldest_unanswered_heartbeat() {
        let now = start();
        let mut clock = LeaseClock::new(now, TTL, BEAT, ANSWERED);
        clock.heartbeat_starts(now + BEAT);
        let second = clock.heartbeat_starts(now + BEAT * 2);
        clock.answered(second);
        assert_eq!(clock.let_go_at(), now + BEAT + Duration::from_secs(29));
    }

    #[test]
    fn a_pong_that_nobody_asked_for_renews_nothing() {
        let now = start();
        let mut clock = LeaseClock::new(now, TTL, BEAT, ANSWERED);
        clock.answered(7);
        clock.answered(0);
        assert_eq!(clock.let_go_at(), now + Duration::from_secs(29));
    }

    #[test]
    fn the_margin_never_reaches_the_next_heartbeat() {
        let now = start();
        for (ttl, beat) in [(1000, 999), (1000, 10), (30_000, 29_000), (4, 3)] {
            let (ttl, beat) = (Duration::from_millis(ttl), Duration::from_millis(beat));
            let clock = LeaseClock::new(now, ttl, beat, Pings::default());
            assert!(
                clock.let_go_at() > clock.next_heartbeat(),
                "{ttl:?} {beat:?}"
            );
            assert!(clock.let_go_at() < now + ttl, "{ttl:?} {beat:?}");
        }
    }

    #[test]
    fn a_pong_that_belongs_to_the_lease_before_renews_nothing() {
        let now = start();
        let mut before = LeaseClock::new(now, TTL, BEAT, Pings::default());
        let late = before.heartbeat_starts(now + BEAT);
        let mut clock = LeaseClock::new(now + BEAT, TTL, BEAT, before.pings());
        clock.heartbeat_starts(now + BEAT * 2);
        clock.answered(late);
        assert_eq!(clock.let_go_at(), now + BEAT + Duration::from_secs(29));
    }

    #[test]
    fn a_new_connection_counts_as_the_gate_says_and_no_longer_than_the_time_to_live() {
        let now = start();
        let mut clock = LeaseClock::new(now, TTL, BEAT, ANSWERED);
        clock.heartbeat_starts(now + BEAT);
        let asked = now + BEAT * 2;
        clock.attached(asked, Duration::from_secs(12), Pings::default());
        assert_eq!(clock.let_go_at(), asked + Duration::from_secs(11));
        assert_eq!(clock.next_heartbeat(), asked);
        // What was sent over the old connection is not answered on this one.
        clock.answered(1);
        assert_eq!(clock.let_go_at(), asked + Duration::from_secs(11));
        clock.attached(asked, Duration::from_secs(u64::MAX), Pings::default());
        assert_eq!(clock.let_go_at(), asked + Duration::from_secs(29));
    }
}
