//! The supervisor of one slot: connect, serve, pause, again, until the Worker stops.

use std::sync::Arc;
use std::time::Duration;

use gate_link::ConnectQuery;
use tokio::time::{Instant, sleep};

use crate::backoff::{Backoff, Ended, PROVED_BY_AGE};
use crate::execution::Executor;
use crate::link::{Connect, ConnectError};
use crate::session::{Broken, Serving, serve};
use crate::stop::Stop;

/// What all slots of a Worker share.
pub(crate) struct Shared<C, E> {
    pub(crate) connector: C,
    pub(crate) executor: E,
    pub(crate) heartbeat_interval: Duration,
    pub(crate) stop: Stop,
}

/// Runs one slot until the Worker drains. Its connection is its own: when it fails, no other
/// slot notices.
pub(crate) async fn supervise<C: Connect, E: Executor>(
    shared: Arc<Shared<C, E>>,
    query: ConnectQuery,
) {
    let slot = query.slot.to_string();
    let mut backoff = Backoff::default();
    let mut complaint = Complaint::default();
    while !shared.stop.drain.is_cancelled() {
        let connected = tokio::select! {
            biased;
            () = shared.stop.drain.cancelled() => return,
            connected = shared.connector.connect(&query) => connected,
        };
        let ended = match connected {
            Ok(mut link) => {
                complaint.settled();
                tracing::info!(%slot, "connected to the Gate");
                let since = Instant::now();
                let serving = Serving {
                    query: &query,
                    heartbeat_interval: shared.heartbeat_interval,
                    executor: &shared.executor,
                    stop: &shared.stop,
                };
                let (proved, broken) = serve(&mut link, &serving).await;
                say(&slot, &broken);
                if proved || since.elapsed() >= PROVED_BY_AGE {
                    Ended::Proved
                } else {
                    Ended::Unproved
                }
            }
            Err(error) => {
                complaint.about(&slot, &error);
                Ended::Unproved
            }
        };
        let delay = backoff.next_delay(ended, random());
        tokio::select! {
            biased;
            () = shared.stop.drain.cancelled() => return,
            () = sleep(delay) => {}
        }
    }
}

fn say(slot: &str, broken: &Broken) {
    let cause = std::error::Error::source(broken)
        .map(ToString::to_string)
        .unwrap_or_default();
    match broken {
        Broken::Drained | Broken::Killed => tracing::info!(%slot, reason = %broken, "disconnected"),
        _ => tracing::warn!(%slot, reason = %broken, %cause, "disconnected"),
    }
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
