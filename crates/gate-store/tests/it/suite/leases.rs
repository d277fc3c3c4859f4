//! Heartbeats and expiry.

use forge_domain::{AttemptStatus, FailureCode, Holder, JobStatus, Refused};
use gate_store::{NewJob, Store, StoreError};

use super::cases;
use crate::fixture::{
    Lane, POOL, TTL, at, generation, policy, slot, submit, text_job, text_result,
};

cases! {
    a_heartbeat_counts_strictly_before_the_deadline
    a_heartbeat_counts_from_the_holder_only
    r27_an_expired_lease_is_retried_with_growing_delays_and_then_fails
    nothing_expires_before_its_deadline
    many_leases_expire_in_order_of_their_deadlines
    a_late_result_of_an_expired_attempt_is_refused
}

async fn a_heartbeat_counts_strictly_before_the_deadline(store: &dyn Store) {
    submit(store, text_job(), at(0)).await;
    let lane = Lane::connect(store, "w", at(0)).await;
    let lease = lane.claim(store, at(0)).await.unwrap();
    let beat = |now| store.heartbeat(lease.job, lane.holder(&lease), now);
    assert_eq!(beat(at(TTL - 1)).await.unwrap(), at(2 * TTL - 1));
    assert_eq!(
        store.next_due(at(0)).await.unwrap().lease,
        Some(at(2 * TTL - 1))
    );
    assert_eq!(
        store.job(lease.job).await.unwrap().unwrap().updated_at,
        at(TTL - 1)
    );
    // A step back of the caller's clock never shortens the lease.
    assert_eq!(beat(at(1)).await.unwrap(), at(2 * TTL - 1));
    let late = beat(at(2 * TTL - 1)).await;
    assert!(
        matches!(late, Err(StoreError::Refused(Refused::DeadlinePassed))),
        "{late:?}"
    );
    let result = store
        .complete(
            lease.job,
            lane.holder(&lease),
            text_result("x"),
            at(2 * TTL - 1),
        )
        .await;
    assert!(
        matches!(result, Err(StoreError::Refused(Refused::DeadlinePassed))),
        "{result:?}"
    );
}

async fn a_heartbeat_counts_from_the_holder_only(store: &dyn Store) {
    submit(store, text_job(), at(0)).await;
    let lane = Lane::connect(store, "w", at(0)).await;
    let other = Lane::connect(store, "v", at(0)).await;
    let lease = lane.claim(store, at(0)).await.unwrap();
    let right = lane.holder(&lease);
    for (holder, expected) in [
        (
            Holder {
                attempt: crate::fixture::attempt_id(),
                ..right.clone()
            },
            Refused::Superseded,
        ),
        (
            Holder {
                generation: generation(),
                ..right.clone()
            },
            Refused::Fenced,
        ),
        (other.holder(&lease), Refused::Fenced),
    ] {
        let refused = store.heartbeat(lease.job, holder, at(1)).await.unwrap_err();
        assert!(
            matches!(&refused, StoreError::Refused(reason) if *reason == expected),
            "{refused:?}"
        );
    }
    let unknown = store
        .heartbeat(crate::fixture::job_id(), right, at(1))
        .await;
    assert!(matches!(unknown, Err(StoreError::JobNotFound)));
}

async fn r27_an_expired_lease_is_retried_with_growing_delays_and_then_fails(store: &dyn Store) {
    let job = submit(store, text_job(), at(0)).await;
    let mut now = 0;
    for (ordinal, delay) in [(1, Some(1)), (2, Some(2)), (3, None)] {
        let lane = Lane::connect(store, &format!("w{ordinal}"), at(now)).await;
        let lease = lane.claim(store, at(now)).await.unwrap();
        assert_eq!(lease.ordinal, ordinal);
        now += TTL;
        let ended = store.expire_due(at(now)).await.unwrap();
        assert_eq!(
            (ended.len(), ended[0].attempt, ended[0].slot.clone()),
            (1, lease.attempt, lane.slot)
        );
        assert_eq!(ended[0].retry_at, delay.map(|delay| at(now + delay)));
        now += delay.unwrap_or_default();
    }
    let result = store.result(job.id).await.unwrap().unwrap();
    assert_eq!(
        (result.job.status, result.job.failure_code),
        (JobStatus::Failed, Some(FailureCode::MaxAttemptsExceeded))
    );
    assert!(
        result
            .attempts
            .iter()
            .all(|(attempt, _)| attempt.status == AttemptStatus::Expired)
    );
    let kinds: Vec<&str> = result
        .timeline
        .iter()
        .map(|entry| entry.event.kind())
        .collect();
    let retried = ["leased", "lease_expired", "retry_scheduled"];
    let expected: Vec<&str> = ["submitted"]
        .into_iter()
        .chain(retried)
        .chain(retried)
        .chain(["leased", "lease_expired", "failed"])
        .collect();
    assert_eq!(kinds, expected);
    assert!(
        result
            .timeline
            .last()
            .unwrap()
            .event
            .detail()
            .contains("ordinal=3 disposition=terminal")
    );
}

async fn nothing_expires_before_its_deadline(store: &dyn Store) {
    submit(store, text_job(), at(0)).await;
    let lane = Lane::connect(store, "w", at(0)).await;
    lane.claim(store, at(0)).await.unwrap();
    assert_eq!(store.expire_due(at(TTL - 1)).await.unwrap(), Vec::new());
    assert_eq!(store.expire_due(at(TTL)).await.unwrap().len(), 1);
    assert_eq!(store.expire_due(at(TTL)).await.unwrap(), Vec::new());
}

async fn many_leases_expire_in_order_of_their_deadlines(store: &dyn Store) {
    // Queued in order and answered together, or the test would be one commit after the other.
    let mut submitted = Vec::new();
    let mut claims = Vec::new();
    for index in 0..300 {
        submitted.push(store.submit(
            NewJob {
                policy: policy(POOL, false, 1),
                ..text_job()
            },
            at(0),
        ));
        let lane = Lane {
            slot: slot(&format!("w{}#{}", index / 60, index % 60 + 1)),
            generation: generation(),
        };
        let connected = store.connect_slot(
            lane.slot.clone(),
            POOL.parse().unwrap(),
            lane.generation,
            at(0),
        );
        claims.push((connected, store.claim(lane.request(), at(300 - index))));
    }
    for answer in submitted {
        answer.await.unwrap();
    }
    let mut leases = Vec::new();
    for (connected, claim) in claims {
        connected.await.unwrap();
        leases.push(claim.await.unwrap().unwrap().attempt);
    }
    leases.reverse();
    let first = store.expire_due(at(1_000)).await.unwrap();
    let rest = store.expire_due(at(1_000)).await.unwrap();
    assert_eq!((first.len(), rest.len()), (256, 44));
    let ended: Vec<_> = first
        .iter()
        .chain(&rest)
        .map(|ended| ended.attempt)
        .collect();
    assert_eq!(ended, leases);
}

async fn a_late_result_of_an_expired_attempt_is_refused(store: &dyn Store) {
    let job = submit(store, text_job(), at(0)).await;
    let lane = Lane::connect(store, "w", at(0)).await;
    let lease = lane.claim(store, at(0)).await.unwrap();
    store.expire_due(at(TTL)).await.unwrap();
    let late = store
        .complete(
            lease.job,
            lane.holder(&lease),
            text_result("x"),
            at(TTL + 1),
        )
        .await;
    assert!(
        matches!(
            late,
            Err(StoreError::Refused(Refused::Immutable {
                status: AttemptStatus::Expired
            }))
        ),
        "{late:?}"
    );
    assert_eq!(
        store.job(job.id).await.unwrap().unwrap().status,
        JobStatus::RetryWait
    );
}
