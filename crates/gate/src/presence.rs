//! Which slot is connected since when, and what its Worker last said of taking work. Held in memory
//! only: it decides nothing that a connection does not know by itself, and is for the operator.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use forge_domain::{NotAccepting, SlotId};
use jiff::Timestamp;

/// A slot since this Gate started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotPresence {
    /// Whether it is connected.
    pub(crate) connected: bool,
    /// Since when it is, or is not.
    pub(crate) since: Timestamp,
    /// Why it takes no work, as its Worker last said. It stays after the end of the connection: a
    /// slot that has left mostly left for it.
    pub(crate) refuses: Option<Refuses>,
    /// What keeps its connection from taking a lease, though the slot has no live attempt.
    pub(crate) held: Option<Held>,
}

/// What a connection has to finish before it takes a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// The first ping is not answered, or a kept result is not settled.
    Greeting,
    /// Its Worker has not said that a cancelled attempt is gone.
    Stopping,
}

/// The word of a Worker that it takes no work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refuses {
    /// Why.
    pub(crate) reason: NotAccepting,
    /// Since when.
    pub(crate) since: Timestamp,
}

/// All slots that have been connected; only configured ones can be, so it stays small.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    slots: Mutex<BTreeMap<SlotId, SlotPresence>>,
}

impl Presence {
    /// The slot has a connection, and takes work until its Worker says otherwise.
    pub(crate) fn connected(&self, slot: &SlotId, now: Timestamp) {
        let arrived = SlotPresence {
            connected: true,
            since: now,
            refuses: None,
            held: None,
        };
        self.slots().insert(slot.clone(), arrived);
    }

    /// What the connection of the slot has to finish first.
    pub(crate) fn held(&self, slot: &SlotId, held: Option<Held>) {
        if let Some(known) = self.slots().get_mut(slot) {
            known.held = held;
        }
    }

    /// The connection of the slot is gone.
    pub(crate) fn disconnected(&self, slot: &SlotId, now: Timestamp) {
        if let Some(known) = self.slots().get_mut(slot) {
            known.connected = false;
            known.since = now;
            known.held = None;
        }
    }

    /// The Worker says whether the slot takes work.
    pub(crate) fn says(&self, slot: &SlotId, refuses: Option<NotAccepting>, now: Timestamp) {
        if let Some(known) = self.slots().get_mut(slot) {
            known.refuses = refuses.map(|reason| match known.refuses {
                Some(before) if before.reason == reason => before,
                _ => Refuses { reason, since: now },
            });
        }
    }

    /// What is known of a slot; nothing of one that has not been connected.
    pub(crate) fn of(&self, slot: &SlotId) -> Option<SlotPresence> {
        self.slots().get(slot).copied()
    }

    /// Each operation leaves the table whole, so that a panic elsewhere spoils nothing.
    fn slots(&self) -> MutexGuard<'_, BTreeMap<SlotId, SlotPresence>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_reason_stays_until_it_is_taken_back_or_the_slot_comes_again() {
        let presence = Presence::default();
        let slot: SlotId = "w#2".parse().unwrap();
        assert_eq!(presence.of(&slot), None);
        presence.says(&slot, Some(NotAccepting::Paused), at(0));
        assert_eq!(presence.of(&slot), None);

        presence.connected(&slot, at(1));
        let fresh = presence.of(&slot).unwrap();
        assert_eq!(
            (fresh.connected, fresh.since, fresh.refuses),
            (true, at(1), None)
        );
        presence.says(&slot, Some(NotAccepting::DiskLow), at(2));
        // Said again, it holds since it was said first.
        presence.says(&slot, Some(NotAccepting::DiskLow), at(3));
        let low = Refuses {
            reason: NotAccepting::DiskLow,
            since: at(2),
        };
        assert_eq!(presence.of(&slot).unwrap().refuses, Some(low));
        presence.says(&slot, None, at(4));
        assert_eq!(presence.of(&slot).unwrap().refuses, None);
        presence.held(&slot, Some(Held::Stopping));
        assert_eq!(presence.of(&slot).unwrap().held, Some(Held::Stopping));
        presence.says(&slot, Some(NotAccepting::Draining), at(5));
        presence.disconnected(&slot, at(6));
        let gone = presence.of(&slot).unwrap();
        let draining = Refuses {
            reason: NotAccepting::Draining,
            since: at(5),
        };
        assert_eq!(
            (gone.connected, gone.since, gone.refuses, gone.held),
            (false, at(6), Some(draining), None)
        );
        presence.connected(&slot, at(7));
        assert_eq!(
            presence.of(&slot).unwrap(),
            SlotPresence {
                since: at(7),
                ..fresh
            }
        );
    }
}
