//! Does what time alone brings: ends leases that ran out, and rings for jobs
//! whose next attempt is due. It sleeps until the store says that something is
//! due, never longer than the configured intervals, and less if it is told of
//! something earlier.

use std::time::Duration;

use forge_domain::CancelReason;
use jiff::{SignedDuration, Timestamp};

use crate::log;
use crate::state::{GateState, Refusal};

/// As many as a store ends at once; fewer mean that none is left.
const BATCH: usize = 256;

/// Runs until the Gate stops.
pub(crate) async fn keep_time(state: GateState) {
    let mut plan = Plan {
        sweep: state.now(),
        retry: None,
    };
    loop {
        let now = state.now();
        let Ok(next) = look(&state, now, &mut plan).await else {
            return;
        };
        state.bells().plan(next);
        let wait = Duration::try_from(next.duration_since(state.now())).unwrap_or_default();
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = state.bells().earlier() => {}
            () = state.stopping().cancelled() => return,
        }
    }
}

/// What is to come, as far as the last look saw it.
struct Plan {
    /// The next sweep that no deadline asks for.
    sweep: Timestamp,
    /// The first time at which waiting jobs are due.
    retry: Option<Timestamp>,
}

/// Does what is due and answers when to look again.
async fn look(state: &GateState, now: Timestamp, plan: &mut Plan) -> Result<Timestamp, Refusal> {
    let store = state.store();
    let mut due = state.judge(store.next_due(now).await)?;
    if plan.sweep <= now || due.lease.is_some_and(|deadline| deadline <= now) {
        expire(state, now).await?;
        plan.sweep = later(now, state.recovery_interval());
        due = state.judge(store.next_due(now).await)?;
    }
    // Many jobs may be due at the same time. Otherwise the event that made a job ready has
    // rung already, and this is the fallback.
    let many = plan.retry.is_some_and(|retry| retry <= now);
    plan.retry = due.retry;
    for pool in state.judge(store.ready_pools(now).await)? {
        if many {
            state.bells().all(&pool);
        } else {
            state.ring(&pool);
        }
    }
    let next = [due.lease, due.retry].into_iter().flatten();
    let latest = later(now, state.lease_poll_interval()).min(plan.sweep);
    Ok(next.fold(latest, Timestamp::min))
}

/// Ends the leases that have run out.
pub(crate) async fn expire(state: &GateState, now: Timestamp) -> Result<(), Refusal> {
    loop {
        let ended = state.judge(state.store().expire_due(now).await)?;
        for lease in &ended {
            log::lease_expired(lease);
            state.live_activity().forget(&lease.attempt);
            state.orders().ended(lease, CancelReason::LeaseLost);
            state.bells().all(&lease.pool);
        }
        if ended.len() < BATCH {
            return Ok(());
        }
    }
}

fn later(now: Timestamp, delay: Duration) -> Timestamp {
    SignedDuration::try_from(delay)
        .ok()
        .and_then(|delay| now.checked_add(delay).ok())
        .unwrap_or(Timestamp::MAX)
}
