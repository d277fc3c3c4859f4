//! The supervisor of one slot: connect, serve, pause, again, until the Worker stops.
//!
//! What the slot works on may outlive a connection. It goes on while the next one is made, and
//! the slot does not end before it has ended.

use std::sync::Arc;
use std::time::Duration;

use gate_link::ConnectQuery;
use tokio::time::{Instant, sleep};

use crate::attempt::{Attempt, Home, Progress};
use crate::backoff::{Backoff, Ended, PROVED_BY_AGE};
use crate::disk_guard::DiskGuard;
use crate::execution::Executor;
use crate::kept::Kept;
use crate::link::{Connect, ConnectError};
use crate::results::Results;
use crate::session::{Broken, Serving, abandon, serve};
use crate::stop::Stop;

/// What all slots of a Worker share.
pub(crate) struct Shared<C, E> {
    pub(crate) connector: C,
    pub(crate) executor: E,
    pub(crate) heartbeat_interval: Duration,
    pub(crate) stop: Stop,
    pub(crate) results: Arc<Results>,
    pub(crate) guard: DiskGuard,
}

/// Runs one slot until the Worker drains. Its connection is its own: when it fails, no other
/// slot notices. `kept` is what a predecessor could not deliver.
pub(crate) async fn supervise<C: Connect, E: Executor>(
    shared: Arc<Shared<C, E>>,
    query: ConnectQuery,
    kept: Option<Kept>,
) {
    let results = &shared.results;
    let mut slot = Slot {
        name: query.slot.to_string(),
        home: Home {
            slot: query.slot.clone(),
            results: Arc::clone(results),
        },
        tenant: kept.map(|kept| Attempt::restored(kept, Arc::clone(results))),
        backoff: Backoff::default(),
        complaint: Complaint::default(),
        shared: &shared,
        query: &query,
    };
    let reason = slot.serve_until_the_end().await;
    if let Some(attempt) = &mut slot.tenant {
        abandon(attempt, &reason).await;
    }
}

struct Slot<'a, C, E> {
    name: String,
    home: Home,
    /// What the slot works on, or still has to deliver.
    tenant: Option<Attempt>,
    backoff: Backoff,
    complaint: Complaint,
    shared: &'a Shared<C, E>,
    query: &'a ConnectQuery,
}

impl<C: Connect, E: Executor> Slot<'_, C, E> {
    /// Ends when the Worker does; what the slot has then stays undelivered.
    async fn serve_until_the_end(&mut self) -> Broken {
        let stop = &self.shared.stop;
        loop {
            // A slot that drains tries once more to deliver what it has.
            let last = stop.drain.is_cancelled();
            match self.progress() {
                None if last => return Broken::Drained,
                had => {
                    let Some(ended) = self.connect().await else {
                        return Broken::Killed;
                    };
                    if last && had == Some(Progress::Done) {
                        return Broken::Drained;
                    }
                    if !self.pause(ended).await {
                        return Broken::Killed;
                    }
                }
            }
        }
    }

    fn progress(&self) -> Option<Progress> {
        self.tenant.as_ref().map(Attempt::progress)
    }

    /// Connects, and serves the connection to its end. Nothing comes back if the slot ends.
    async fn connect(&mut self) -> Option<Ended> {
        let shared = self.shared;
        let connected = tokio::select! {
            biased;
            () = ends(&shared.stop, self.tenant.is_some()) => return None,
            never = adrift(&mut self.tenant) => match never {},
            connected = shared.connector.connect(self.query) => connected,
        };
        let mut link = match connected {
            Ok(link) => link,
            Err(error) => {
                self.complaint.about(&self.name, &error);
                return Some(Ended::Unproved);
            }
        };
        self.complaint.settled();
        tracing::info!(slot = %self.name, "connected to the Gate");
        let since = Instant::now();
        let serving = Serving {
            query: self.query,
            heartbeat_interval: shared.heartbeat_interval,
            executor: &shared.executor,
            stop: &shared.stop,
            home: &self.home,
            guard: &shared.guard,
        };
        let (proved, broken) = serve(&mut link, &serving, &mut self.tenant).await;
        say(&self.name, &broken, self.tenant.as_ref());
        if proved || since.elapsed() >= PROVED_BY_AGE {
            Some(Ended::Proved)
        } else {
            Some(Ended::Unproved)
        }
    }

    /// Waits before the next connection; false if the slot ends.
    async fn pause(&mut self, ended: Ended) -> bool {
        let stop = &self.shared.stop;
        let delay = self.backoff.next_delay(ended, random());
        let drains = stop.drain.is_cancelled();
        tokio::select! {
            biased;
            () = ends(stop, self.tenant.is_some()) => self.tenant.is_none(),
            never = adrift(&mut self.tenant) => match never {},
            () = stop.drain.cancelled(), if !drains => true,
            () = sleep(delay) => true,
        }
    }
}

/// Ends when the slot has to: a slot with something to do only when it is killed.
async fn ends(stop: &Stop, occupied: bool) {
    if occupied {
        stop.kill.cancelled().await;
    } else {
        stop.drain.cancelled().await;
    }
}

/// What the slot has goes on; never returns.
async fn adrift(tenant: &mut Option<Attempt>) -> std::convert::Infallible {
    match tenant {
        Some(attempt) => attempt.adrift().await,
        None => std::future::pending().await,
    }
}

/// Says that a connection has ended, and what becomes of what the slot has.
fn say(slot: &str, broken: &Broken, tenant: Option<&Attempt>) {
    let cause = std::error::Error::source(broken).map(ToString::to_string);
    let cause = cause.as_deref();
    let Some(attempt) = tenant else {
        if matches!(broken, Broken::Drained | Broken::Killed) {
            tracing::info!(%slot, reason = %broken, "disconnected");
        } else {
            tracing::warn!(%slot, reason = %broken, cause, "disconnected");
        }
        return;
    };
    let fate = match attempt.progress() {
        Progress::Running if attempt.is_called_off() => "its job is being stopped",
        Progress::Running => "the job goes on",
        Progress::Ended | Progress::Cleaning | Progress::Done => "the result is kept",
    };
    tracing::warn!(%slot, reason = %broken, cause, "disconnected, {fate}");
}

/// Says a reason once, not at every one of many fruitless attempts.
#[derive(Default)]
struct Complaint(Option<String>);

impl Complaint {
    fn about(&mut self, slot: &str, error: &ConnectError) {
        let text = error.to_string();
        if self.0.as_ref() == Some(&text) {
            tracing::debug!(%slot, reason = %text, "still cannot connect to the Gate");
        } else {
            tracing::warn!(%slot, reason = %text, "cannot connect to the Gate, trying again");
            self.0 = Some(text);
        }
    }

    fn settled(&mut self) {
        self.0 = None;
    }
}

/// Jitter needs no secrecy, and a system without random bytes merely goes without.
fn random() -> u64 {
    getrandom::u64().unwrap_or_default()
}
