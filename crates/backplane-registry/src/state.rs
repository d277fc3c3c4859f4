//! What all handlers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use jiff::Timestamp;
use registry_store::Store;
use tokio::sync::Semaphore;
use web_server::{HostRules, Lifetime};

use crate::config::ServiceLimits;
use crate::tokens::Tokens;

/// Tells the time. The registry stamps everything with it; nobody else's clock counts.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What a registry serves, and to whom.
#[derive(Debug)]
pub struct Service {
    /// The memory.
    pub store: Store,
    /// Who is who.
    pub tokens: Tokens,
    /// Which names a request may address.
    pub hosts: HostRules,
    /// Whether reading needs no token.
    pub anonymous_read: bool,
    /// How large and how many.
    pub limits: ServiceLimits,
}

/// The shared state; clones are the same state.
#[derive(Clone)]
pub struct RegistryState {
    inner: Arc<Inner>,
}

struct Inner {
    service: Service,
    clock: Clock,
    /// Receipts that are received or checked.
    receipts: Semaphore,
    /// Two parts of request ids: one of this start, one of the request.
    start: u32,
    requests: AtomicU64,
    lifetime: Lifetime,
}

impl RegistryState {
    /// Builds the state of a registry; `start` tells its requests from those of other starts.
    #[must_use]
    pub fn new(service: Service, clock: Clock, start: u32) -> Self {
        let receipts = usize::try_from(service.limits.uploads).unwrap_or(1);
        Self {
            inner: Arc::new(Inner {
                service,
                clock,
                receipts: Semaphore::new(receipts),
                start,
                requests: AtomicU64::new(0),
                lifetime: Lifetime::default(),
            }),
        }
    }

    /// Asks the registry to stop: nothing new is taken, what runs may end.
    pub fn stop(&self) {
        self.inner.lifetime.stopping.cancel();
    }

    pub(crate) fn lifetime(&self) -> &Lifetime {
        &self.inner.lifetime
    }

    pub(crate) fn store(&self) -> &Store {
        &self.inner.service.store
    }

    pub(crate) fn tokens(&self) -> &Tokens {
        &self.inner.service.tokens
    }

    pub(crate) fn hosts(&self) -> &HostRules {
        &self.inner.service.hosts
    }

    pub(crate) fn anonymous_read(&self) -> bool {
        self.inner.service.anonymous_read
    }

    pub(crate) fn limits(&self) -> &ServiceLimits {
        &self.inner.service.limits
    }

    pub(crate) fn receipts(&self) -> &Semaphore {
        &self.inner.receipts
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.inner.clock)()
    }

    /// The steady clock, for how long a request took.
    pub(crate) fn instant(&self) -> Instant {
        cli_shell::clock::instant()
    }

    pub(crate) fn next_request_id(&self) -> String {
        let number = self.inner.requests.fetch_add(1, Ordering::Relaxed);
        format!("{:08x}-{number:x}", self.inner.start)
    }
}

impl std::fmt::Debug for RegistryState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RegistryState").finish_non_exhaustive()
    }
}
