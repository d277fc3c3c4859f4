//! Attempts that outlive a connection, leases that are given back, and what stopped.

use digest_text::Sha256Text;
use forge_domain::{
    AttemptStatus, Completion, Holder, JobStatus, NotAccepting, Refused, WorkerFailure,
};
use gate_store::{Attachment, ClaimRequest, Lease, Store, StoreError};
use jiff::Timestamp;

use super::cases;
use crate::fixture::{
    CANDIDATE, Lane, TTL, at, attempt_id, batch, candidate, coding_job, generation, job_id, passed,
    submit, text_job, text_result,
};

cases! {
    r26_a_live_attempt_goes_on_under_a_new_session
    r12_only_the_slot_with_the_token_of_a_live_attempt_goes_on
    an_attempt_without_a_token_is_lost
    r13_after_a_result_the_same_evidence_and_result_pass_again_and_no_other
    an_attempt_that_ended_without_a_result_is_lost
    a_session_that_is_not_connected_attaches_nothing
    a_lease_that_is_given_back_costs_no_attempt
    a_later_attempt_is_given_back_too
    an_attempt_that_has_begun_is_not_given_back
    what_stopped_is_in_the_journal
    r10_a_cancellation_moves_no_deadline
}

fn token(text: &str) -> Sha256Text {
    Sha256Text::of(text)
}

async fn claim(store: &dyn Store, lane: &Lane, proof: &str, now: Timestamp) -> Lease {
    let request = ClaimRequest {
        attach: Some(token(proof)),
        ..lane.request()
    };
    store.claim(request, now).await.unwrap().unwrap()
}

/// The slot of a lane over a new connection.
async fn again(store: &dyn Store, lane: &Lane, now: Timestamp) -> Lane {
    let (slot, generation) = (lane.slot.clone(), lane.generation);
    assert!(
        store
            .disconnect_slot(slot.clone(), generation, now)
            .await
            .unwrap()
    );
    Lane::connect(store, &slot.to_string(), now).await
}

async fn kinds(store: &dyn Store, lease: &Lease) -> Vec<&'static str> {
    let events = store.events(lease.job).await.unwrap();
    events.iter().map(|entry| entry.event.kind()).collect()
}

async fn r26_a_live_attempt_goes_on_under_a_new_session(store: &dyn Store) {
    submit(store, coding_job(), at(0)).await;
    let old = Lane::connect(store, "w#3", at(0)).await;
    let lease = claim(store, &old, "t", at(0)).await;
    store
        .heartbeat(lease.job, old.holder(&lease), at(10))
        .await
        .unwrap();
    let new = again(store, &old, at(15)).await;
    submit(store, text_job(), at(15)).await;
    assert!(new.claim(store, at(15)).await.is_none(), "the slot has one");
    let attached = store.attach(lease.job, new.holder(&lease), token("t"), at(16));
    assert_eq!(
        attached.await.unwrap(),
        Attachment::Live {
            ordinal: 1,
            deadline: at(10 + TTL)
        }
    );
    // It moves by heartbeats alone, of the new session alone.
    assert_eq!(
        store.next_due(at(16)).await.unwrap().lease,
        Some(at(10 + TTL))
    );
    let fenced = store.heartbeat(lease.job, old.holder(&lease), at(17)).await;
    assert!(
        matches!(fenced, Err(StoreError::Refused(Refused::Fenced))),
        "{fenced:?}"
    );
    let moved = store.heartbeat(lease.job, new.holder(&lease), at(20)).await;
    assert_eq!(moved.unwrap(), at(20 + TTL));
    let records = batch(vec![passed(0, Some(CANDIDATE)), passed(1, Some(CANDIDATE))]);
    store
        .bind_evidence(lease.job, new.holder(&lease), records, at(21))
        .await
        .unwrap();
    let done = store
        .complete(lease.job, new.holder(&lease), candidate(None), at(22))
        .await
        .unwrap();
    assert_eq!(
        (done.job.status, done.job.attempts),
        (JobStatus::Succeeded, 1)
    );
    assert_eq!(
        kinds(store, &lease).await,
        ["submitted", "leased", "attempt_reattached", "succeeded"]
    );
}

async fn r12_only_the_slot_with_the_token_of_a_live_attempt_goes_on(store: &dyn Store) {
    submit(store, text_job(), at(0)).await;
    let old = Lane::connect(store, "w", at(0)).await;
    let lease = claim(store, &old, "t", at(0)).await;
    let new = again(store, &old, at(1)).await;
    let other = Lane::connect(store, "w#1", at(1)).await;
    let holder = new.holder(&lease);
    let unknown = Holder {
        attempt: attempt_id(),
        ..holder.clone()
    };
    let late = store.attach(lease.job, holder.clone(), token("t"), at(TTL));
    assert_eq!(late.await.unwrap(), Attachment::Over);
    for (job, holder, proof, now) in [
        (lease.job, holder.clone(), "u", 2),
        (lease.job, holder.clone(), "u", TTL),
        (lease.job, other.holder(&lease), "t", 2),
        (lease.job, unknown, "t", 2),
        (job_id(), holder.clone(), "t", 2),
    ] {
        let attached = store.attach(job, holder, token(proof), at(now)).await;
        assert_eq!(attached.unwrap(), Attachment::Lost, "{proof} at {now}");
    }
    assert_eq!(kinds(store, &lease).await, ["submitted", "leased"]);
    let right = store.attach(lease.job, holder, token("t"), at(TTL - 1));
    assert!(matches!(right.await.unwrap(), Attachment::Live { .. }));
}

async fn an_attempt_without_a_token_is_lost(store: &dyn Store) {
    submit(store, text_job(), at(0)).await;
    let old = Lane::connect(store, "w", at(0)).await;
    let lease = old.claim(store, at(0)).await.unwrap();
    let new = again(store, &old, at(1)).await;
    for proof in ["", "t"] {
        let attached = store.attach(lease.job, new.holder(&lease), token(proof), at(2));
        assert_eq!(attached.await.unwrap(), Attachment::Lost);
    }
}

async fn r13_after_a_result_the_same_evidence_and_result_pass_again_and_no_other(
    store: &dyn Store,
) {
    let records = vec![passed(0, Some(CANDIDATE)), passed(1, Some(CANDIDATE))];
    let failed = Completion::Failed(WorkerFailure::ExecutionFailed);
    let terminal = Completion::Failed(WorkerFailure::InvalidTask);
    for (end, status) in [
        (candidate(None), AttemptStatus::Succeeded),
        (failed, AttemptStatus::RetryableFailed),
        (terminal, AttemptStatus::TerminalFailed),
    ] {
        let job = submit(store, coding_job(), at(0)).await;
        let old = Lane::connect(store, "w", at(0)).await;
        let lease = claim(store, &old, "t", at(0)).await;
        let holder = old.holder(&lease);
        store
            .bind_evidence(lease.job, holder.clone(), batch(records.clone()), at(1))
            .await
            .unwrap();
        store
            .complete(lease.job, holder, end.clone(), at(2))
            .await
            .unwrap();
        let new = again(store, &old, at(3)).await;
        let holder = new.holder(&lease);
        // However late.
        let late = at(100 * TTL);
        let wrong = store.attach(lease.job, holder.clone(), token("u"), late);
        assert_eq!(wrong.await.unwrap(), Attachment::Lost);
        let attached = store.attach(lease.job, holder.clone(), token("t"), late);
        assert_eq!(attached.await.unwrap(), Attachment::Ended);

        let before = store.result(job.id).await.unwrap().unwrap();
        let bind = |records| store.bind_evidence(lease.job, holder.clone(), batch(records), late);
        let bound = bind(records.clone()).await.unwrap();
        assert_eq!((bound.added, bound.repeated), (0, 2));
        assert_eq!(bind(vec![records[1].clone()]).await.unwrap().repeated, 1);
        let mut changed = records[0].clone();
        changed.duration_ms += 1;
        let conflict = bind(vec![records[1].clone(), changed]).await.unwrap_err();
        assert!(matches!(conflict, StoreError::EvidenceConflict { .. }));
        let more = bind(vec![records[0].clone(), passed(1, None)]).await;
        assert!(
            matches!(more, Err(StoreError::Refused(Refused::Immutable { status: was })) if was == status),
            "{more:?}"
        );
        let again = store.complete(lease.job, holder.clone(), end, late).await;
        assert!(again.unwrap().repeated);
        let other = store.complete(lease.job, holder.clone(), text_result("no"), late);
        assert!(matches!(
            other.await,
            Err(StoreError::Refused(Refused::Immutable { .. }))
        ));
        let beat = store.heartbeat(lease.job, holder, late).await;
        assert!(matches!(beat, Err(StoreError::Refused(_))), "{beat:?}");
        assert_eq!(store.result(job.id).await.unwrap().unwrap(), before);
        if status == AttemptStatus::RetryableFailed {
            store.cancel(job.id, late).await.unwrap();
        }
        store
            .disconnect_slot(new.slot.clone(), new.generation, late)
            .await
            .unwrap();
    }
}

async fn an_attempt_that_ended_without_a_result_is_lost(store: &dyn Store) {
    let expired = submit(store, text_job(), at(0)).await;
    let old = Lane::connect(store, "w", at(0)).await;
    let lease = claim(store, &old, "t", at(0)).await;
    store.expire_due(at(TTL)).await.unwrap();
    store.cancel(expired.id, at(TTL)).await.unwrap();
    submit(store, text_job(), at(TTL)).await;
    let second = claim(store, &old, "u", at(TTL)).await;
    store.cancel(second.job, at(TTL + 1)).await.unwrap();
    let new = again(store, &old, at(TTL + 2)).await;
    for (lease, proof) in [(lease, "t"), (second, "u")] {
        let holder = new.holder(&lease);
        let attached = store.attach(lease.job, holder.clone(), token(proof), at(TTL + 3));
        assert_eq!(attached.await.unwrap(), Attachment::Over);
        let wrong = store.attach(lease.job, holder.clone(), token("v"), at(TTL + 3));
        assert_eq!(wrong.await.unwrap(), Attachment::Lost);
        let evidence =
            store.bind_evidence(lease.job, holder, batch(vec![passed(0, None)]), at(TTL + 3));
        assert!(evidence.await.unwrap_err().is_refusal());
    }
}

async fn a_session_that_is_not_connected_attaches_nothing(store: &dyn Store) {
    submit(store, text_job(), at(0)).await;
    let old = Lane::connect(store, "w", at(0)).await;
    let lease = claim(store, &old, "t", at(0)).await;
    let stranger = Holder {
        generation: generation(),
        ..old.holder(&lease)
    };
    let fenced = store.attach(lease.job, stranger, token("t"), at(1)).await;
    assert!(matches!(fenced, Err(StoreError::Fenced)), "{fenced:?}");
    // The session that has the attempt still has it.
    let beat = store.heartbeat(lease.job, old.holder(&lease), at(1)).await;
    assert_eq!(beat.unwrap(), at(1 + TTL));
}

async fn a_lease_that_is_given_back_costs_no_attempt(store: &dyn Store) {
    let job = submit(store, text_job(), at(0)).await;
    let later = submit(store, text_job(), at(1)).await;
    let lane = Lane::connect(store, "w", at(0)).await;
    let lease = claim(store, &lane, "t", at(2)).await;
    assert_eq!(lease.job, job.id);
    let other = Lane::connect(store, "v", at(2)).await;
    for holder in [
        other.holder(&lease),
        Holder {
            attempt: attempt_id(),
            ..lane.holder(&lease)
        },
    ] {
        let refused = store
            .withdraw(job.id, holder, NotAccepting::Draining, at(3))
            .await;
        assert!(matches!(refused, Err(StoreError::Refused(_))));
    }
    let late = store.withdraw(
        job.id,
        lane.holder(&lease),
        NotAccepting::Draining,
        at(2 + TTL),
    );
    assert!(matches!(
        late.await,
        Err(StoreError::Refused(Refused::DeadlinePassed))
    ));
    let waits = store
        .withdraw(job.id, lane.holder(&lease), NotAccepting::Draining, at(3))
        .await
        .unwrap();
    assert_eq!((waits.status, waits.attempts), (JobStatus::Pending, 0));
    assert_eq!((waits.attempt_id, waits.worker_id.clone()), (None, None));
    assert_eq!(store.attempts(job.id).await.unwrap(), Some(Vec::new()));
    assert_eq!(store.job(job.id).await.unwrap().unwrap(), waits);
    assert_eq!(store.next_due(at(3)).await.unwrap().lease, None);
    // It is the oldest as before, and any slot may have it at once.
    let second = claim(store, &other, "u", at(3)).await;
    assert_eq!((second.job, second.ordinal), (job.id, 1));
    assert_eq!(
        kinds(store, &lease).await,
        ["submitted", "leased", "attempt_withdrawn", "leased"]
    );
    // The slot that gave it back is free.
    assert_eq!(lane.claim(store, at(3)).await.unwrap().job, later.id);
    // What was given back is none any more.
    let attached = store.attach(job.id, lane.holder(&lease), token("t"), at(3));
    assert_eq!(attached.await.unwrap(), Attachment::Lost);
}

async fn a_later_attempt_is_given_back_too(store: &dyn Store) {
    let job = submit(store, text_job(), at(0)).await;
    let lane = Lane::connect(store, "w", at(0)).await;
    let first = claim(store, &lane, "t", at(0)).await;
    let failed = Completion::Failed(WorkerFailure::ExecutionFailed);
    store
        .complete(job.id, lane.holder(&first), failed, at(1))
        .await
        .unwrap();
    let second = claim(store, &lane, "u", at(2)).await;
    assert_eq!(second.ordinal, 2);
    let waits = store
        .withdraw(job.id, lane.holder(&second), NotAccepting::DiskLow, at(3))
        .await
        .unwrap();
    assert_eq!(
        (waits.status, waits.attempts, waits.retry_at),
        (JobStatus::RetryWait, 1, Some(at(3)))
    );
    assert_eq!(waits.attempt_id, Some(first.attempt));
    let attempts = store.attempts(job.id).await.unwrap().unwrap();
    assert_eq!(attempts.len(), 1);
    assert_eq!(claim(store, &lane, "v", at(3)).await.ordinal, 2);
}

async fn an_attempt_that_has_begun_is_not_given_back(store: &dyn Store) {
    let job = submit(store, coding_job(), at(0)).await;
    let lane = Lane::connect(store, "w", at(0)).await;
    let lease = claim(store, &lane, "t", at(0)).await;
    let records = batch(vec![passed(0, None)]);
    store
        .bind_evidence(job.id, lane.holder(&lease), records, at(1))
        .await
        .unwrap();
    let refused = store.withdraw(job.id, lane.holder(&lease), NotAccepting::Paused, at(2));
    assert!(matches!(
        refused.await,
        Err(StoreError::Refused(Refused::IllegalEdge { .. }))
    ));
    assert_eq!(
        store.job(job.id).await.unwrap().unwrap().status,
        JobStatus::Leased
    );
    let moved = store.heartbeat(job.id, lane.holder(&lease), at(2)).await;
    assert_eq!(moved.unwrap(), at(2 + TTL));
}

async fn what_stopped_is_in_the_journal(store: &dyn Store) {
    let job = submit(store, text_job(), at(0)).await;
    let lane = Lane::connect(store, "w", at(0)).await;
    let lease = claim(store, &lane, "t", at(0)).await;
    let stopped = |attempt, slot| store.stopped(job.id, attempt, slot, at(5));
    // It still runs.
    let early = stopped(lease.attempt, lane.slot.clone()).await;
    assert!(matches!(
        early,
        Err(StoreError::Refused(Refused::Superseded))
    ));
    store.cancel(job.id, at(4)).await.unwrap();
    let elsewhere = stopped(lease.attempt, crate::fixture::slot("v")).await;
    assert!(elsewhere.unwrap_err().is_refusal());
    let another = stopped(attempt_id(), lane.slot.clone()).await;
    assert!(another.unwrap_err().is_refusal());
    stopped(lease.attempt, lane.slot.clone()).await.unwrap();
    let events = store.events(job.id).await.unwrap();
    let last = events.last().unwrap();
    assert_eq!(
        (last.event.kind(), last.at),
        ("attempt_stopped", at(5)),
        "{last:?}"
    );
    assert_eq!(
        last.event.detail(),
        format!("attempt={} ordinal=1", lease.attempt)
    );
}

async fn r10_a_cancellation_moves_no_deadline(store: &dyn Store) {
    let job = submit(store, text_job(), at(0)).await;
    let lane = Lane::connect(store, "w", at(0)).await;
    let lease = claim(store, &lane, "t", at(0)).await;
    store.cancel(job.id, at(10)).await.unwrap();
    store
        .stopped(job.id, lease.attempt, lane.slot.clone(), at(11))
        .await
        .unwrap();
    store.cancel(job.id, at(12)).await.unwrap();
    let attempts = store.attempts(job.id).await.unwrap().unwrap();
    assert_eq!(
        (attempts[0].deadline_at, attempts[0].completed_at),
        (at(TTL), Some(at(10)))
    );
    assert_eq!(store.next_due(at(12)).await.unwrap().lease, None);
}
