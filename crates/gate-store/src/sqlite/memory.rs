//! What the writer remembers of the database, so that it need not read what it has just written.
//!
//! Everything here is a copy of rows as the open transaction sees them. A change that fails, of one
//! operation or of a whole batch, makes the writer forget all of it. Other writers do not exist: the
//! store owns the file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use forge_domain::{Generation, JobId, PoolId, ResolvedPolicy, SlotId};
use jiff::Timestamp;
use rusqlite::Connection;

use super::rows::{JobRow, read_policy};
use crate::StoreError;

/// Most entries of each kind; beyond it the kind is forgotten. More than a Gate has slots.
const MOST: usize = 1024;

/// The connected session of a slot.
#[derive(Debug, Clone)]
pub(super) struct SlotRow {
    pub(super) seq: i64,
    pub(super) pool: PoolId,
    pub(super) generation: Generation,
    /// No attempt of the slot is live.
    pub(super) free: bool,
}

/// When the first of the waiting jobs that are not claimable yet becomes due.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Waiting {
    /// It has to be read.
    #[default]
    Unknown,
    /// None waits.
    Nobody,
    /// Not before this time.
    From(Timestamp),
}

/// The writer's memory.
#[derive(Debug, Default)]
pub(super) struct Memory {
    policies: BTreeMap<i64, Arc<ResolvedPolicy>>,
    /// Rows of policies that are in use somewhere: as long as one is held here, its address is its own.
    stored: Vec<(Arc<ResolvedPolicy>, i64)>,
    slots: BTreeMap<SlotId, SlotRow>,
    leased: BTreeMap<JobId, JobRow>,
    empty: BTreeSet<PoolId>,
    waiting: Waiting,
    /// The pools that are paused, once they have been read.
    paused: Option<BTreeSet<PoolId>>,
}

impl Memory {
    /// Forgets everything.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Returns a policy, from memory where it was read before.
    pub(super) fn policy(
        &mut self,
        connection: &Connection,
        seq: i64,
    ) -> Result<Arc<ResolvedPolicy>, StoreError> {
        if let Some(policy) = self.policies.get(&seq) {
            return Ok(Arc::clone(policy));
        }
        let policy = Arc::new(read_policy(connection, seq)?);
        if self.policies.len() >= MOST {
            self.policies.clear();
        }
        self.policies.insert(seq, Arc::clone(&policy));
        Ok(policy)
    }

    /// The row of this very policy.
    pub(super) fn stored_policy(&self, policy: &Arc<ResolvedPolicy>) -> Option<i64> {
        let mut known = self.stored.iter();
        known
            .find(|(known, _)| Arc::ptr_eq(known, policy))
            .map(|(_, seq)| *seq)
    }

    pub(super) fn policy_is_stored(&mut self, policy: &Arc<ResolvedPolicy>, seq: i64) {
        // Searched from the first to the last: few enough for that.
        const FEW: usize = 64;
        if self.stored.len() >= FEW {
            self.stored.clear();
        }
        self.stored.push((Arc::clone(policy), seq));
    }

    /// The slot, if this is its connected session.
    pub(super) fn slot(&self, slot: &SlotId, generation: &Generation) -> Option<&SlotRow> {
        self.slots
            .get(slot)
            .filter(|known| known.generation == *generation)
    }

    pub(super) fn slot_is(&mut self, slot: SlotId, row: SlotRow) {
        if self.slots.len() >= MOST {
            self.slots.clear();
        }
        self.slots.insert(slot, row);
    }

    /// The session of the slot changed.
    pub(super) fn slot_changed(&mut self, slot: &SlotId) {
        self.slots.remove(slot);
    }

    /// An attempt of the slot started or ended.
    pub(super) fn slot_is_free(&mut self, slot: &SlotId, free: bool) {
        if let Some(known) = self.slots.get_mut(slot) {
            known.free = free;
        }
    }

    /// Takes a leased job out: who takes it may change it, and says what it is then.
    pub(super) fn take_leased(&mut self, job: &JobId) -> Option<JobRow> {
        self.leased.remove(job)
    }

    pub(super) fn is_leased(&mut self, row: JobRow) {
        if self.leased.len() >= MOST {
            self.leased.clear();
        }
        self.leased.insert(row.view.id, row);
    }

    /// Whether no job of the pool can be claimed.
    pub(super) fn is_empty(&self, pool: &PoolId) -> bool {
        self.empty.contains(pool)
    }

    pub(super) fn found_empty(&mut self, pool: PoolId) {
        if self.empty.len() >= MOST {
            self.empty.clear();
        }
        self.empty.insert(pool);
    }

    /// A job became claimable.
    pub(super) fn not_empty(&mut self, pool: &PoolId) {
        self.empty.remove(pool);
    }

    /// Jobs of any pool became claimable.
    pub(super) fn none_is_empty(&mut self) {
        self.empty.clear();
    }

    pub(super) const fn waiting(&self) -> Waiting {
        self.waiting
    }

    pub(super) const fn waiting_is(&mut self, waiting: Waiting) {
        self.waiting = waiting;
    }

    /// Whether the pool is paused, if that has been read.
    pub(super) fn is_paused(&self, pool: &PoolId) -> Option<bool> {
        self.paused.as_ref().map(|paused| paused.contains(pool))
    }

    pub(super) fn pauses_are(&mut self, paused: BTreeSet<PoolId>) {
        self.paused = Some(paused);
    }

    /// A pool was paused or resumed.
    pub(super) fn pauses_changed(&mut self) {
        self.paused = None;
    }

    /// A job waits until this time.
    pub(super) fn waits(&mut self, until: Timestamp) {
        self.waiting = match self.waiting {
            Waiting::Unknown => Waiting::Unknown,
            Waiting::Nobody => Waiting::From(until),
            Waiting::From(first) => Waiting::From(first.min(until)),
        };
    }
}
