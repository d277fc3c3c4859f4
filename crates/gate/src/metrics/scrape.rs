//! What is looked up when somebody asks: queues, leases, slots, files.

use std::path::Path;

use forge_domain::PoolId;
use gate_store::{PoolView, WorkerView};
use jiff::{SignedDuration, Timestamp};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use super::{OfPool, PREFIX, of};
use crate::pools::{self, SlotState};
use crate::state::{GateState, Refusal};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InState {
    pool: String,
    state: &'static str,
}

fn in_state(pool: &PoolId, state: &'static str) -> InState {
    InState {
        pool: pool.to_string(),
        state,
    }
}

/// The whole answer.
pub(crate) async fn scrape(state: &GateState) -> Result<String, Refusal> {
    let pools = state.judge(state.store().pools().await)?;
    let workers = state.judge(state.store().workers().await)?;
    let now = state.now();
    let mut registry = Registry::with_prefix(PREFIX);
    queues(&mut registry, &pools::with_configured(state, pools), now);
    slots(&mut registry, state, &workers);
    rest(&mut registry, state, now);
    let mut text = String::with_capacity(32 * 1024);
    // Writing into a text cannot fail.
    let written = encode_registry(&mut text, &state.metrics().registry)
        .and_then(|()| encode_registry(&mut text, &registry))
        .and_then(|()| encode_eof(&mut text));
    debug_assert!(written.is_ok());
    Ok(text)
}

fn queues(registry: &mut Registry, pools: &[PoolView], now: Timestamp) {
    let jobs = Family::<InState, Gauge>::default();
    let oldest = Family::<OfPool, Gauge<f64, std::sync::atomic::AtomicU64>>::default();
    let paused = Family::<OfPool, Gauge>::default();
    let leases = Family::<OfPool, Gauge>::default();
    for view in pools {
        let pool = &view.pool;
        for (state, count) in [("ready", view.ready), ("retrying", view.retrying)] {
            jobs.get_or_create(&in_state(pool, state)).set(count.into());
        }
        let age = view.oldest.map_or(SignedDuration::ZERO, |oldest| {
            now.duration_since(oldest).max(SignedDuration::ZERO)
        });
        oldest.get_or_create(&of(pool)).set(age.as_secs_f64());
        paused
            .get_or_create(&of(pool))
            .set(i64::from(view.pause.is_some()));
        leases.get_or_create(&of(pool)).set(view.leased.into());
    }
    registry.register(
        "queue_jobs",
        "Jobs that wait: for a slot, or for their next attempt",
        jobs,
    );
    registry.register_with_unit(
        "queue_oldest",
        "How long ago the oldest job that waits for a slot was accepted",
        Unit::Seconds,
        oldest,
    );
    registry.register("pool_paused", "1 while the owner has paused it", paused);
    registry.register("leases", "Live leases", leases);
}

fn slots(registry: &mut Registry, state: &GateState, workers: &[WorkerView]) {
    let slots = Family::<InState, Gauge>::default();
    for (_, pool) in state.slots() {
        for known in SlotState::NAMES {
            drop(slots.get_or_create(&in_state(pool, known)));
        }
    }
    for slot in pools::slots(state, workers) {
        slots
            .get_or_create(&in_state(&slot.pool, slot.state.as_str()))
            .inc();
    }
    registry.register(
        "slots",
        "Slots of the configuration, by what they do",
        slots,
    );
}

fn rest(registry: &mut Registry, state: &GateState, now: Timestamp) {
    let seconds = |time: SignedDuration| {
        let gauge = Gauge::<f64, std::sync::atomic::AtomicU64>::default();
        gauge.set(time.as_secs_f64());
        gauge
    };
    registry.register_with_unit(
        "uptime",
        "Time since the start",
        Unit::Seconds,
        seconds(now.duration_since(state.metrics().started)),
    );
    let activity = state.live_activity();
    registry.register(
        "activity_attempts",
        "Attempts whose live activity is held",
        number(activity.attempts() as u64),
    );
    registry.register(
        "activity_dropped",
        "Live activity that was dropped for want of place",
        ConstCounter::new(activity.dropped()),
    );
    if let Some(path) = state.database() {
        registry.register_with_unit(
            "database",
            "Size of the database file",
            Unit::Bytes,
            number(size(path)),
        );
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        registry.register_with_unit(
            "database_wal",
            "Size of its write-ahead log",
            Unit::Bytes,
            number(size(Path::new(&log))),
        );
    }
}

fn number(value: u64) -> Gauge {
    let gauge = Gauge::default();
    gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
    gauge
}

/// The size of a file; none if it is not there.
fn size(path: &Path) -> u64 {
    fs_err::metadata(path).map_or(0, |found| found.len())
}
