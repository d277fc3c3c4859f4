//! Live activity: which stage each running attempt says it is in. Held in memory
//! only, for display only: it is never stored, is no evidence, and decides nothing.
//!
//! [`LiveActivity`] is the one owner. A connection records what its Worker says and
//! forgets its attempt when the lease ends; HTTP reads. Nothing outlives the
//! lease's current deadline, also if nobody says that the attempt is over.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use forge_domain::{Activity, AttemptId, JobId, MAX_ACTIVITIES, SlotId, Stage};
use jiff::Timestamp;
use serde::Serialize;

/// The most attempts whose activity is kept. Beyond it nothing is shown of an attempt.
pub const MAX_ATTEMPTS: usize = 1024;

/// The attempt that a Worker speaks of, as the Gate knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Performer {
    /// The job.
    pub job: JobId,
    /// The attempt.
    pub attempt: AttemptId,
    /// Its ordinal, from 1.
    pub ordinal: u16,
    /// The slot that runs it.
    pub slot: SlotId,
}

/// A stage that an attempt has reached, with what the Gate adds to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StageReached {
    /// The job.
    pub run_id: JobId,
    /// The attempt.
    pub attempt_id: AttemptId,
    /// Which attempt of the job it is, from 1.
    pub attempt_ordinal: u16,
    /// The slot that runs it.
    pub worker_id: SlotId,
    /// The number of this event in its attempt, from 1.
    pub sequence: u8,
    /// The stage.
    pub stage: Stage,
    /// When the Gate heard of it, by the Gate's clock.
    pub received_at: Timestamp,
}

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// It is shown.
    Shown,
    /// There is no place for it: so many have been dropped since the start.
    Dropped(u64),
    /// The lease has run out.
    Expired,
    /// It does not follow the last one; a session refuses such before they come here.
    OutOfOrder,
}

/// The activity of all running attempts.
#[derive(Debug, Default)]
pub struct LiveActivity {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    entries: BTreeMap<AttemptId, Entry>,
    dropped: u64,
}

#[derive(Debug)]
struct Entry {
    deadline: Timestamp,
    events: Vec<StageReached>,
}

impl LiveActivity {
    /// Takes an event that came at `now` under a lease that ends at `deadline`.
    pub fn record(
        &self,
        performer: &Performer,
        activity: Activity,
        deadline: Timestamp,
        now: Timestamp,
    ) -> Recorded {
        self.table().record(performer, activity, deadline, now)
    }

    /// A heartbeat has moved the deadline of an attempt.
    pub fn extend(&self, attempt: &AttemptId, deadline: Timestamp) {
        if let Some(entry) = self.table().entries.get_mut(attempt) {
            entry.deadline = deadline;
        }
    }

    /// The attempt is over, or its connection is.
    pub fn forget(&self, attempt: &AttemptId) {
        self.table().entries.remove(attempt);
    }

    /// What an attempt has reached so far, oldest first; nothing past its deadline.
    #[must_use]
    pub fn of(&self, attempt: &AttemptId, now: Timestamp) -> Vec<StageReached> {
        let table = self.table();
        let entry = table.entries.get(attempt);
        entry
            .filter(|entry| now < entry.deadline)
            .map(|entry| entry.events.clone())
            .unwrap_or_default()
    }

    /// How many attempts have an entry.
    #[must_use]
    pub fn attempts(&self) -> usize {
        self.table().entries.len()
    }

    /// How many events have been dropped for want of place.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.table().dropped
    }

    /// Each operation leaves the table whole, so that a panic elsewhere spoils nothing.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn record(
        &mut self,
        performer: &Performer,
        activity: Activity,
        deadline: Timestamp,
        now: Timestamp,
    ) -> Recorded {
        if deadline <= now {
            self.entries.remove(&performer.attempt);
            return Recorded::Expired;
        }
        let known = self.entries.contains_key(&performer.attempt);
        if !known && self.entries.len() >= MAX_ATTEMPTS {
            self.entries.retain(|_, entry| now < entry.deadline);
            if self.entries.len() >= MAX_ATTEMPTS {
                self.dropped = self.dropped.saturating_add(1);
                return Recorded::Dropped(self.dropped);
            }
        }
        let entry = self
            .entries
            .entry(performer.attempt)
            .or_insert_with(|| Entry {
                deadline,
                events: Vec::new(),
            });
        entry.deadline = deadline;
        // The session holds every event against the one before; what was dropped before there
        // was place is missing here, so only the order counts.
        let follows = entry
            .events
            .last()
            .is_none_or(|last| last.sequence < activity.sequence && last.stage < activity.stage);
        if !follows || entry.events.len() >= usize::from(MAX_ACTIVITIES) {
            return Recorded::OutOfOrder;
        }
        entry.events.push(StageReached {
            run_id: performer.job,
            attempt_id: performer.attempt,
            attempt_ordinal: performer.ordinal,
            worker_id: performer.slot.clone(),
            sequence: activity.sequence,
            stage: activity.stage,
            received_at: now,
        });
        Recorded::Shown
    }
}

#[cfg(test)]
mod tests;
