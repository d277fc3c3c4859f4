//! Pools and their slots as an operator sees them: the store's view and the configuration's in one.

use std::collections::BTreeMap;

use forge_domain::{PoolId, SlotId};
use gate_store::{PoolView, WorkerView};

use crate::presence::{Held, Refuses};
use crate::state::GateState;

/// What a slot does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotState {
    /// It could take a job.
    Idle,
    /// It has one.
    Working,
    /// It is connected and takes no job, for this reason.
    Refusing(&'static str),
    /// Its Worker stops an attempt that has ended.
    Stopping,
    /// It is connected, and its Worker has not answered the greeting.
    Greeting,
    /// It is not connected.
    Away,
}

impl SlotState {
    /// The states that every pool has.
    pub(crate) const NAMES: [&'static str; 5] = ["idle", "working", "stopping", "greeting", "away"];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Working => "working",
            Self::Refusing(reason) => reason,
            Self::Stopping => "stopping",
            Self::Greeting => "greeting",
            Self::Away => "away",
        }
    }
}

/// A slot of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SlotView {
    pub(crate) pool: PoolId,
    pub(crate) state: SlotState,
}

/// Why a slot takes no job, in its Worker's word; of one that is away, the last word.
pub(crate) fn refuses(state: &GateState, slot: &SlotId) -> Option<Refuses> {
    state.presence().of(slot)?.refuses
}

/// Every slot of the configuration with what it does.
pub(crate) fn slots(state: &GateState, workers: &[WorkerView]) -> Vec<SlotView> {
    let seen: BTreeMap<&SlotId, &WorkerView> =
        workers.iter().map(|view| (&view.slot, view)).collect();
    state
        .slots()
        .map(|(slot, pool)| {
            let seen = seen.get(&slot);
            let connected = seen.is_some_and(|seen| seen.connected);
            let working = seen.is_some_and(|seen| seen.active_attempt.is_some());
            SlotView {
                pool: pool.clone(),
                state: judge(state, &slot, connected, working),
            }
        })
        .collect()
}

/// What a slot does. What its Worker refuses comes before what the connection has to finish, which
/// ends by itself.
pub(crate) fn judge(state: &GateState, slot: &SlotId, connected: bool, working: bool) -> SlotState {
    match (connected, working) {
        (false, _) => return SlotState::Away,
        (true, true) => return SlotState::Working,
        (true, false) => {}
    }
    let Some(known) = state.presence().of(slot) else {
        return SlotState::Idle;
    };
    match (known.refuses, known.held) {
        (Some(refuses), _) => SlotState::Refusing(refuses.reason.as_str()),
        (None, Some(Held::Stopping)) => SlotState::Stopping,
        (None, Some(Held::Greeting)) => SlotState::Greeting,
        (None, None) => SlotState::Idle,
    }
}

/// Adds the pools of the configuration in which nothing waits.
pub(crate) fn with_configured(state: &GateState, known: Vec<PoolView>) -> Vec<PoolView> {
    let mut all: BTreeMap<PoolId, PoolView> = state
        .slots()
        .map(|(_, pool)| (pool.clone(), PoolView::empty(pool.clone())))
        .collect();
    all.extend(known.into_iter().map(|view| (view.pool.clone(), view)));
    all.into_values().collect()
}
