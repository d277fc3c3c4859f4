//! Tells the connection of a slot that an attempt has ended without its Worker: the owner cancelled
//! the job, or the lease ran out. Only a connection with job control listens.
//!
//! The store has committed the end before it is told here, so a connection that has not heard of it
//! yet is at worst told so by the store first.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use forge_domain::{CancelReason, SlotId};
use gate_link::LeaseKey;
use gate_store::EndedLease;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::Instant;

/// More than a slot can have ended attempts between two looks: it has one at a time.
const MOST: usize = 16;

/// An attempt that is to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) lease: LeaseKey,
    pub(crate) reason: CancelReason,
    /// When it was given.
    pub(crate) at: Instant,
}

/// The ears of all connections with job control.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    slots: Mutex<BTreeMap<SlotId, Sender<Order>>>,
}

impl Orders {
    /// Listens for a slot. A slot has one connection at a time.
    pub(crate) fn listen(&self, slot: &SlotId) -> Receiver<Order> {
        let (sender, receiver) = channel(MOST);
        self.slots().insert(slot.clone(), sender);
        receiver
    }

    /// Nobody listens for the slot any more.
    pub(crate) fn deaf(&self, slot: &SlotId) {
        self.slots().remove(slot);
    }

    /// The lease has ended.
    pub(crate) fn ended(&self, lease: &EndedLease, reason: CancelReason) {
        let mut slots = self.slots();
        let order = Order {
            lease: LeaseKey {
                job_id: lease.job,
                attempt_id: lease.attempt,
            },
            reason,
            at: Instant::now(),
        };
        let told = slots.get(&lease.slot).map(|ear| ear.try_send(order));
        if matches!(told, Some(Err(_))) {
            // A connection that takes no orders hears the end of its channel, and ends.
            slots.remove(&lease.slot);
        }
    }

    fn slots(&self) -> MutexGuard<'_, BTreeMap<SlotId, Sender<Order>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use forge_domain::JobStatus;

    use super::*;

    fn lease(slot: &str, number: u32) -> EndedLease {
        EndedLease {
            job: format!("{number:032x}").parse().unwrap(),
            attempt: format!("{:032x}", number + 1_000).parse().unwrap(),
            slot: slot.parse().unwrap(),
            pool: "p".parse().unwrap(),
            status: JobStatus::Cancelled,
            retry_at: None,
        }
    }

    #[test]
    fn an_order_reaches_its_slot_alone() {
        let orders = Orders::default();
        let mut first = orders.listen(&"w".parse().unwrap());
        let mut second = orders.listen(&"w#1".parse().unwrap());
        orders.ended(&lease("w#1", 1), CancelReason::Operator);
        orders.ended(&lease("v", 2), CancelReason::Operator);
        let order = second.try_recv().unwrap();
        assert_eq!(order.lease.job_id, lease("w#1", 1).job);
        assert_eq!(order.reason, CancelReason::Operator);
        assert!(first.try_recv().is_err() && second.try_recv().is_err());
        orders.deaf(&"w".parse().unwrap());
        orders.ended(&lease("w", 3), CancelReason::LeaseLost);
        assert!(first.try_recv().is_err());
    }

    #[tokio::test]
    async fn who_takes_no_orders_hears_that_the_channel_has_ended() {
        let orders = Orders::default();
        let mut deaf = orders.listen(&"w".parse().unwrap());
        for number in 0..100 {
            orders.ended(&lease("w", number), CancelReason::Operator);
        }
        for number in 0..16 {
            assert_eq!(
                deaf.recv().await.unwrap().lease.job_id,
                lease("w", number).job
            );
        }
        assert_eq!(deaf.recv().await, None);
    }
}
