//! Tells idle slots that there may be work, and the timekeeper that it may have
//! to look earlier than it planned.
//!
//! For one new job one idle slot is enough. Whoever brings the job asks the store
//! for it in that slot's name and hands the slot the answer: so the job and its
//! lease are in one commit, and the slot need not be awake to ask. Where it is
//! not known which slot is meant, the bell of the pool only wakes, and whoever is
//! woken asks the store.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use forge_domain::PoolId;
use gate_store::{Answer, ClaimRequest, Lease};
use jiff::Timestamp;
use tokio::sync::{Notify, oneshot};

/// The answer to a claim that was made in a slot's name.
type Claimed = Answer<Option<Lease>>;

/// The bell of one pool.
#[derive(Default)]
pub(crate) struct Bell {
    everybody: Notify,
    idle: Mutex<VecDeque<Idle>>,
    next: AtomicU64,
    missed: AtomicU64,
}

impl std::fmt::Debug for Bell {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Bell").finish_non_exhaustive()
    }
}

/// A slot that waits for work.
struct Idle {
    ticket: u64,
    request: ClaimRequest,
    claimed: oneshot::Sender<Claimed>,
}

/// The place of a slot among those that wait. Gone with it: nobody claims for a
/// slot that does not wait any more.
pub(crate) struct Place {
    bell: Arc<Bell>,
    ticket: u64,
    claimed: oneshot::Receiver<Claimed>,
}

impl Bell {
    /// Waits for work in the name of `request`.
    pub(crate) fn wait(self: &Arc<Self>, request: ClaimRequest) -> Place {
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, claimed) = oneshot::channel();
        self.idle().push_back(Idle {
            ticket,
            request,
            claimed: sender,
        });
        Place {
            bell: Arc::clone(self),
            ticket,
            claimed,
        }
    }

    /// How often it rang for somebody who did not wait. Who waits and finds this as it was before
    /// it asked the store, and got nothing, need not ask again: it has missed no job.
    pub(crate) fn missed(&self) -> u64 {
        self.missed.load(Ordering::SeqCst)
    }

    /// Rings for everybody who listens at this moment.
    pub(crate) const fn everybody(&self) -> &Notify {
        &self.everybody
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, VecDeque<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// The answer to a claim that somebody made for this slot. Cancel safe.
    pub(crate) async fn claimed(&mut self) -> Option<Claimed> {
        (&mut self.claimed).await.ok()
    }

    /// Waits no more; returns the answer that was handed over before.
    pub(crate) fn leave(mut self) -> Option<Claimed> {
        self.withdraw();
        // Handed over under the same lock: now it is here or never comes.
        self.claimed.try_recv().ok()
    }

    fn withdraw(&self) {
        let mut idle = self.bell.idle();
        if let Some(at) = idle.iter().position(|idle| idle.ticket == self.ticket) {
            idle.remove(at);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.withdraw();
    }
}

/// The bells of all configured pools.
pub(crate) struct Bells {
    pools: BTreeMap<PoolId, Arc<Bell>>,
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
    pub(crate) fn of(&self, pool: &PoolId) -> Option<Arc<Bell>> {
        self.pools.get(pool).cloned()
    }

    /// One more job waits in the pool, or comes before what is claimed now: one
    /// idle slot is enough, the one that has waited longest.
    pub(crate) fn one(&self, pool: &PoolId, claim: impl FnOnce(ClaimRequest) -> Claimed) {
        let Some(bell) = self.pools.get(pool) else {
            return;
        };
        let mut idle = bell.idle();
        match idle.pop_front() {
            // A slot leaves only with the lock, so this one is there to receive it.
            Some(first) => drop(first.claimed.send(claim(first.request))),
            None => {
                bell.missed.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    /// Something changed for slots of the pool, no matter for which.
    pub(crate) fn all(&self, pool: &PoolId) {
        if let Some(bell) = self.pools.get(pool) {
            bell.missed.fetch_add(1, Ordering::SeqCst);
            bell.everybody.notify_waiters();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn pool() -> PoolId {
        "p".parse().unwrap()
    }

    fn request(slot: &str) -> ClaimRequest {
        ClaimRequest {
            slot: slot.parse().unwrap(),
            generation: crate::random::generation().unwrap(),
            attempt: crate::random::attempt().unwrap(),
            attach: None,
        }
    }

    fn nothing() -> Claimed {
        Box::pin(async { Ok(None) })
    }

    #[tokio::test]
    async fn the_slot_that_waited_longest_is_claimed_for() {
        let bells = Bells::new([pool()]);
        let bell = bells.of(&pool()).unwrap();
        let mut first = bell.wait(request("w"));
        let second = bell.wait(request("w#2"));
        let mut asked = Vec::new();
        bells.one(&pool(), |request| {
            asked.push(request.slot.to_string());
            nothing()
        });
        assert_eq!(asked, ["w"]);
        assert!(first.claimed().await.unwrap().await.unwrap().is_none());
        assert!(second.leave().is_none());
    }

    #[test]
    fn a_ring_that_nobody_waited_for_is_remembered() {
        let bells = Bells::new([pool()]);
        let bell = bells.of(&pool()).unwrap();
        let place = bell.wait(request("w"));
        bells.one(&pool(), |_| nothing());
        assert_eq!(bell.missed(), 0);
        bells.one(&pool(), |_| nothing());
        assert_eq!(bell.missed(), 1);
        bells.all(&pool());
        assert_eq!(bell.missed(), 2);
        drop(place);
    }

    #[tokio::test]
    async fn nobody_claims_for_a_slot_that_left() {
        let bells = Bells::new([pool()]);
        let bell = bells.of(&pool()).unwrap();
        drop(bell.wait(request("w")));
        assert!(bell.wait(request("w")).leave().is_none());
        bells.one(&pool(), |_| panic!("nobody waits"));
        // What was handed over before the slot left is not lost.
        let place = bell.wait(request("w"));
        bells.one(&pool(), |_| nothing());
        assert!(place.leave().is_some());
        bells.one(&"other".parse().unwrap(), |_| panic!("no such pool"));
    }
}
