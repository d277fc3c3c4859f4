//! Tells idle slots that there may be work, and the timekeeper that it may have
//! to look earlier than it planned. A wake-up is a hint: whoever gets it asks
//! the store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use forge_domain::PoolId;
use jiff::Timestamp;
use tokio::sync::Notify;

/// The bells of all configured pools.
#[derive(Debug)]
pub(crate) struct Bells {
    pools: BTreeMap<PoolId, Arc<Notify>>,
    planned: AtomicI64,
    timekeeper: Notify,
}

impl Bells {
    pub(crate) fn new(pools: impl IntoIterator<Item = PoolId>) -> Self {
        Self {
            pools: pools
                .into_iter()
                .map(|pool| (pool, Arc::default()))
                .collect(),
            planned: AtomicI64::new(i64::MAX),
            timekeeper: Notify::new(),
        }
    }

    /// The bell that the idle slots of a pool listen to.
    pub(crate) fn of(&self, pool: &PoolId) -> Option<Arc<Notify>> {
        self.pools.get(pool).cloned()
    }

    /// One more job waits in the pool: one idle slot is enough.
    pub(crate) fn one(&self, pool: &PoolId) {
        if let Some(bell) = self.pools.get(pool) {
            bell.notify_one();
        }
    }

    /// Something changed for slots of the pool, no matter for which.
    pub(crate) fn all(&self, pool: &PoolId) {
        if let Some(bell) = self.pools.get(pool) {
            bell.notify_waiters();
        }
    }

    /// Something becomes due at this time.
    pub(crate) fn due(&self, at: Timestamp) {
        if milliseconds(at) < self.planned.load(Ordering::Relaxed) {
            self.timekeeper.notify_one();
        }
    }

    /// The timekeeper plans to look at this time.
    pub(crate) fn plan(&self, at: Timestamp) {
        self.planned.store(milliseconds(at), Ordering::Relaxed);
    }

    /// Returns when [`Bells::due`] named a time before the planned one.
    pub(crate) async fn earlier(&self) {
        self.timekeeper.notified().await;
    }
}

fn milliseconds(at: Timestamp) -> i64 {
    at.as_millisecond()
}
