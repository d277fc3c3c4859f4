//! What all handlers and connections share.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use forge_domain::{JobStatus, PoolId, RepositoryId, ResolvedPolicy, SlotId, WorkerId};
use gate_store::{JobView, Store, StoreError};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use web_server::{Deadlines, HostRules, Lifetime};

use crate::activity::{LiveActivity, StageReached};
use crate::config::GateConfig;
use crate::error::GateError;
use crate::link::{Orders, Pace};
use crate::metrics::{Measured, Metrics};
use crate::presence::Presence;
use crate::tokens::Tokens;
use crate::wake::Bells;

/// Tells the time. The Gate stamps everything with it; nobody else's clock counts.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The shared state; clones are the same state.
#[derive(Clone)]
pub struct GateState {
    inner: Arc<Inner>,
}

struct Inner {
    store: Measured,
    metrics: Arc<Metrics>,
    database: Option<PathBuf>,
    metrics_without_token: bool,
    clock: Clock,
    tokens: Tokens,
    hosts: HostRules,
    workers: BTreeMap<WorkerId, Lane>,
    text_policy: Arc<ResolvedPolicy>,
    policies: BTreeMap<RepositoryId, Arc<ResolvedPolicy>>,
    recovery_interval: Duration,
    lease_poll_interval: Duration,
    deadlines: Deadlines,
    bells: Bells,
    activity: LiveActivity,
    presence: Presence,
    orders: Orders,
    pace: Mutex<Pace>,
    lifetime: Lifetime,
    failure: Mutex<Option<GateError>>,
}

/// What a Worker may connect as.
#[derive(Debug, Clone)]
pub(crate) struct Lane {
    pub(crate) pool: PoolId,
    pub(crate) concurrency: u16,
}

impl GateState {
    /// Builds the state of a Gate that serves this configuration from this store.
    ///
    /// # Errors
    /// A policy of the configuration is out of bounds.
    pub fn new(
        config: &GateConfig,
        store: Arc<dyn Store>,
        tokens: Tokens,
        hosts: HostRules,
        clock: Clock,
    ) -> Result<Self, GateError> {
        let policies = config.repositories.iter().map(|repository| {
            let policy = config.repository_policy(repository)?;
            Ok((repository.id.clone(), Arc::new(policy)))
        });
        let lane = |worker: &crate::config::Worker| Lane {
            pool: worker.pool.clone(),
            concurrency: worker.concurrency,
        };
        let workers = &config.workers;
        let pools = workers.iter().map(|worker| &worker.pool);
        let metrics = Arc::new(Metrics::new(clock(), pools));
        Ok(Self {
            inner: Arc::new(Inner {
                store: Measured::new(store, Arc::clone(&metrics)),
                metrics,
                database: config.database.path().map(Path::to_owned),
                metrics_without_token: config.metrics_without_token,
                clock,
                tokens,
                hosts,
                workers: workers
                    .iter()
                    .map(|worker| (worker.id.clone(), lane(worker)))
                    .collect(),
                text_policy: Arc::new(config.text_policy().map_err(GateError::Policy)?),
                policies: policies
                    .collect::<Result<_, _>>()
                    .map_err(GateError::Policy)?,
                recovery_interval: config.recovery_interval,
                lease_poll_interval: config.lease_poll_interval,
                deadlines: Deadlines::default(),
                bells: Bells::new(workers.iter().map(|worker| worker.pool.clone())),
                activity: LiveActivity::default(),
                presence: Presence::default(),
                orders: Orders::default(),
                pace: Mutex::default(),
                lifetime: Lifetime::default(),
                failure: Mutex::new(None),
            }),
        })
    }

    /// Asks the Gate to stop: nothing new is taken, what runs may end.
    pub fn stop(&self) {
        self.inner.lifetime.stopping.cancel();
    }

    /// What the running attempts say of themselves.
    #[must_use]
    pub fn live_activity(&self) -> &LiveActivity {
        &self.inner.activity
    }

    /// What the attempt that has a job says of itself; nothing of a job that is not leased.
    pub(crate) fn activity_of(&self, job: &JobView) -> Vec<StageReached> {
        match &job.attempt_id {
            Some(attempt) if job.status == JobStatus::Leased => {
                self.inner.activity.of(attempt, self.now())
            }
            _ => Vec::new(),
        }
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &self.inner.store
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    /// Whether the metrics are told to everybody who reaches the listener.
    pub(crate) fn metrics_are_open(&self) -> bool {
        self.inner.metrics_without_token
    }

    /// The file of the database, if there is one.
    pub(crate) fn database(&self) -> Option<&Path> {
        self.inner.database.as_deref()
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.inner.clock)()
    }

    pub(crate) fn tokens(&self) -> &Tokens {
        &self.inner.tokens
    }

    pub(crate) fn hosts(&self) -> &HostRules {
        &self.inner.hosts
    }

    pub(crate) fn bells(&self) -> &Bells {
        &self.inner.bells
    }

    /// Who is connected, and takes work.
    pub(crate) fn presence(&self) -> &Presence {
        &self.inner.presence
    }

    /// Tells connections that an attempt has ended without them.
    pub(crate) fn orders(&self) -> &Orders {
        &self.inner.orders
    }

    /// The times of connections with job control.
    pub(crate) fn pace(&self) -> Pace {
        *self
            .inner
            .pace
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives connections with job control that are still to come other times than the protocol's.
    pub fn set_pace(&self, pace: Pace) {
        let mut known = self
            .inner
            .pace
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *known = pace;
    }

    /// A job waits in the pool: claims it for an idle slot, right behind what the
    /// store was asked before.
    pub(crate) fn ring(&self, pool: &PoolId) {
        if !self.stopping().is_cancelled() {
            self.bells()
                .one(pool, |request| self.store().claim(request, self.now()));
        }
    }

    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.inner.lifetime.tasks
    }

    /// Cancelled when nothing new is to be taken.
    pub(crate) fn stopping(&self) -> &CancellationToken {
        &self.inner.lifetime.stopping
    }

    /// The tasks and the end of this Gate.
    pub(crate) fn lifetime(&self) -> &Lifetime {
        &self.inner.lifetime
    }

    pub(crate) fn deadlines(&self) -> Deadlines {
        self.inner.deadlines
    }

    pub(crate) fn recovery_interval(&self) -> Duration {
        self.inner.recovery_interval
    }

    pub(crate) fn lease_poll_interval(&self) -> Duration {
        self.inner.lease_poll_interval
    }

    pub(crate) fn text_policy(&self) -> Arc<ResolvedPolicy> {
        Arc::clone(&self.inner.text_policy)
    }

    pub(crate) fn repository_policy(&self, id: &RepositoryId) -> Option<Arc<ResolvedPolicy>> {
        self.inner.policies.get(id).cloned()
    }

    /// Whether the configuration has this pool.
    pub(crate) fn has_pool(&self, pool: &PoolId) -> bool {
        self.inner.bells.of(pool).is_some()
    }

    /// The pool of a slot, if the configuration has that slot.
    pub(crate) fn pool_of(&self, slot: &SlotId) -> Option<&PoolId> {
        let lane = self.inner.workers.get(slot.worker())?;
        (slot.slot() < lane.concurrency).then_some(&lane.pool)
    }

    /// Every configured slot with its pool.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (SlotId, &PoolId)> {
        self.inner.workers.iter().flat_map(|(id, lane)| {
            (0..lane.concurrency)
                .filter_map(move |slot| Some((SlotId::new(id.clone(), slot).ok()?, &lane.pool)))
        })
    }

    /// The store failed, or something else that no request can mend: the Gate stops
    /// with this error. Only the first one counts.
    pub(crate) fn fail(&self, error: impl Into<GateError>) {
        let mut failure = self
            .inner
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(error.into());
        drop(failure);
        self.inner.lifetime.stopping.cancel();
    }

    /// Why the Gate stopped, if it did not stop because it was asked to.
    pub(crate) fn failure(&self) -> Option<GateError> {
        self.inner
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Splits what a store answered: a refusal is the caller's, a failure the Gate's.
    pub(crate) fn judge<T>(&self, answer: Result<T, StoreError>) -> Result<T, Refusal> {
        answer.map_err(|error| {
            if error.is_refusal() {
                Refusal::Store(error)
            } else {
                self.fail(error);
                Refusal::Stopping
            }
        })
    }
}

/// Why an operation did not happen.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The store refused it.
    Store(StoreError),
    /// The Gate is about to stop.
    Stopping,
}

impl std::fmt::Debug for GateState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GateState").finish_non_exhaustive()
    }
}
