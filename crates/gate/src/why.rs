//! Why a job has not started: one reason of a closed list, and the same in words.
//!
//! The reason is the one that an operator would have to remove first. It costs two small reads,
//! however many jobs wait.

use std::collections::BTreeMap;

use forge_domain::{AttemptStatus, JobStatus, PoolId};
use gate_store::{Ahead, JobView, Pause, PauseReason, QueuePlace};
use jiff::Timestamp;
use serde::Serialize;

use crate::pools::{self, SlotState};
use crate::state::{GateState, Refusal};

/// Why a job waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Waiting {
    reason: Reason,
    message: String,
    /// Jobs that come before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    ahead: Option<u32>,
    /// `ahead` is only as far as was counted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    ahead_is_more: bool,
    /// Since when the pool is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    /// When the next attempt is due.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Timestamp>,
}

/// The closed list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Reason {
    GateStopping,
    NoWorkerConfigured,
    PoolPaused,
    NextAttempt,
    NoWorkerConnected,
    WorkersRefuse,
    SlotsBusy,
    Starting,
}

/// Tells why a job waits; nothing of a job that does not.
pub(crate) async fn why(state: &GateState, job: &JobView) -> Result<Option<Waiting>, Refusal> {
    if !matches!(job.status, JobStatus::Pending | JobStatus::RetryWait) {
        return Ok(None);
    }
    let place = state.store().queue_place(job.id, state.now());
    let place = state.judge(place.await)?;
    Ok(place.map(|place| judge(state, job, &place)))
}

fn judge(state: &GateState, job: &JobView, place: &QueuePlace) -> Waiting {
    let pool = &job.worker_pool;
    if state.stopping().is_cancelled() {
        return Waiting::new(Reason::GateStopping, "the Gate is stopping");
    }
    let configured = state.slots().filter(|(_, of)| *of == pool).count();
    if configured == 0 {
        let message = format!("no Worker of the Gate's configuration is in pool `{pool}`");
        return Waiting::new(Reason::NoWorkerConfigured, message);
    }
    if let Some(pause) = &place.pause {
        return paused(pool, pause).behind(place.ahead);
    }
    if let (None, Some(due)) = (place.ahead, job.retry_at) {
        return next_attempt(due, place);
    }
    let mut slots = Slots::default();
    for slot in &place.slots {
        // A slot that is connected and no longer configured will not come again.
        if state.pool_of(&slot.slot) == Some(pool) {
            slots.add(pools::judge(state, &slot.slot, true, slot.working));
        }
    }
    let mut waiting = slots.judge(pool, configured, place.ahead);
    if waiting.reason == Reason::NoWorkerConnected
        && let Some(last) = last_word(state, pool)
    {
        waiting.message.push_str(&last);
    }
    waiting
}

/// When the slot that left last did so, and what it had said before.
fn last_word(state: &GateState, pool: &PoolId) -> Option<String> {
    let own = state.slots().filter(|(_, of)| *of == pool);
    let known = own.filter_map(|(slot, _)| Some((state.presence().of(&slot)?, slot)));
    let (last, slot) = known.max_by_key(|(presence, _)| presence.since)?;
    let said = last
        .refuses
        .map(|refuses| refusal_words(refuses.reason.as_str()));
    let said = said.map(|said| format!(" {said}")).unwrap_or_default();
    Some(format!("; `{slot}` left{said} at {}", words(last.since)))
}

fn paused(pool: &PoolId, pause: &Pause) -> Waiting {
    let why = pause.reason.as_ref().map(PauseReason::as_str);
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    let message = format!("pool `{pool}` is paused since {}{why}", words(pause.since));
    Waiting {
        since: Some(pause.since),
        ..Waiting::new(Reason::PoolPaused, message)
    }
}

fn next_attempt(due: Timestamp, place: &QueuePlace) -> Waiting {
    let last = match &place.last {
        Some((AttemptStatus::Expired, _)) => "; the last one lost its Worker".to_owned(),
        Some((_, Some(code))) => format!("; the last one ended as `{code}`"),
        _ => String::new(),
    };
    let message = format!("the next attempt is due at {}{last}", words(due));
    Waiting {
        until: Some(due),
        ..Waiting::new(Reason::NextAttempt, message)
    }
}

/// The connected slots of a pool.
#[derive(Debug, Default)]
struct Slots {
    idle: usize,
    working: usize,
    stopping: usize,
    greeting: usize,
    refusing: BTreeMap<&'static str, usize>,
}

impl Slots {
    fn add(&mut self, state: SlotState) {
        match state {
            SlotState::Idle => self.idle += 1,
            SlotState::Working => self.working += 1,
            SlotState::Stopping => self.stopping += 1,
            SlotState::Greeting => self.greeting += 1,
            SlotState::Refusing(reason) => *self.refusing.entry(reason).or_default() += 1,
            SlotState::Away => {}
        }
    }

    fn judge(&self, pool: &PoolId, configured: usize, ahead: Option<Ahead>) -> Waiting {
        let refusing: usize = self.refusing.values().sum();
        let (reason, message) = if self.idle > 0 {
            let message = format!("a slot of pool `{pool}` is free; the job is about to start");
            (Reason::Starting, message)
        } else if self.working + self.stopping + self.greeting > 0 {
            (Reason::SlotsBusy, self.busy(pool, ahead))
        } else if refusing > 0 {
            let message = format!(
                "every connected slot of pool `{pool}` takes no work: {}",
                self.refusals()
            );
            (Reason::WorkersRefuse, message)
        } else {
            let message = format!(
                "no Worker of pool `{pool}` is connected ({} configured)",
                count(configured, "slot")
            );
            (Reason::NoWorkerConnected, message)
        };
        Waiting::new(reason, message).behind(ahead)
    }

    fn busy(&self, pool: &PoolId, ahead: Option<Ahead>) -> String {
        let mut message = if self.stopping + self.greeting > 0 {
            format!("no slot of pool `{pool}` is free: {}", self.taken())
        } else {
            self.all_work(pool)
        };
        match ahead {
            Some(Ahead { jobs: 0, .. }) => message.push_str("; this job is next"),
            Some(Ahead { jobs: 1, .. }) => message.push_str("; 1 job comes before this one"),
            Some(Ahead { jobs, more }) => {
                let more = if more { "more than " } else { "" };
                message.push_str(&format!("; {more}{jobs} jobs come before this one"));
            }
            None => {}
        }
        if !self.refusing.is_empty() {
            message.push_str(&format!("; others take none: {}", self.refusals()));
        }
        message
    }

    fn all_work(&self, pool: &PoolId) -> String {
        match (self.working, self.refusing.is_empty()) {
            (1, true) => format!("the only connected slot of pool `{pool}` has a job"),
            (1, false) => format!("the only slot of pool `{pool}` that takes work has a job"),
            (n, true) => format!("all {n} connected slots of pool `{pool}` have a job"),
            (n, false) => format!("all {n} slots of pool `{pool}` that take work have a job"),
        }
    }

    /// What each slot does that takes work and is not free.
    fn taken(&self) -> String {
        let each = [
            (self.working, "with a job"),
            (self.stopping, "stopping an attempt that has ended"),
            (self.greeting, "connected and still in its greeting"),
        ];
        let some = each.iter().filter(|(slots, _)| *slots > 0);
        let some = some.map(|(slots, what)| format!("{slots} {what}"));
        some.collect::<Vec<_>>().join(", ")
    }

    fn refusals(&self) -> String {
        let each = self.refusing.iter();
        let each = each.map(|(reason, slots)| format!("{slots} {}", refusal_words(reason)));
        each.collect::<Vec<_>>().join(", ")
    }
}

fn refusal_words(reason: &'static str) -> &'static str {
    match reason {
        "disk_low" => "low on disk space",
        // No Worker of this project sends it.
        "paused" => "paused at the Worker",
        other => other,
    }
}

impl Waiting {
    fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            ahead: None,
            ahead_is_more: false,
            since: None,
            until: None,
        }
    }

    fn behind(self, ahead: Option<Ahead>) -> Self {
        Self {
            ahead: ahead.map(|ahead| ahead.jobs),
            ahead_is_more: ahead.is_some_and(|ahead| ahead.more),
            ..self
        }
    }
}

fn count(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// A time as people read it, to the second.
fn words(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}
