//! Evidence of a live attempt.

use forge_domain::{EvidenceRecord, Output, Reason, Refused};
use gate_store::{Store, StoreError};

use super::cases;
use crate::fixture::{CANDIDATE, Lane, TTL, at, batch, coding_job, passed, submit, text_job};

cases! {
    evidence_is_bound_once_and_repeats_are_harmless
    a_batch_is_bound_whole_or_not_at_all
    thirty_four_records_pass_and_one_more_does_not
    evidence_counts_from_the_holder_before_the_deadline
    a_text_job_has_no_evidence
    evidence_is_judged_by_task_and_policy
}

async fn evidence_is_bound_once_and_repeats_are_harmless(store: &dyn Store) {
    let job = submit(store, coding_job(), at(0)).await;
    let lane = Lane::connect(store, "w", at(0)).await;
    let lease = lane.claim(store, at(0)).await.unwrap();
    let records = vec![passed(0, Some(CANDIDATE)), passed(1, Some(CANDIDATE))];
    let bind = |records| store.bind_evidence(lease.job, lane.holder(&lease), batch(records), at(1));
    let first = bind(records.clone()).await.unwrap();
    assert_eq!((first.added, first.repeated), (2, 0));
    let again = bind(records.clone()).await.unwrap();
    assert_eq!((again.added, again.repeated), (0, 2));
    let changed = EvidenceRecord {
        duration_ms: 16,
        ..records[0].clone()
    };
    let refused = bind(vec![changed]).await.unwrap_err();
    assert!(
        matches!(&refused, StoreError::EvidenceConflict { evidence_id } if *evidence_id == records[0].evidence_id)
    );
    let stored = store
        .evidence(job.id, lease.attempt)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        stored
            .iter()
            .map(|stored| stored.record.clone())
            .collect::<Vec<_>>(),
        records
    );
    assert!(stored.iter().all(|stored| stored.bound_at == at(1)));
    assert_eq!(
        store
            .evidence(job.id, crate::fixture::attempt_id())
            .await
            .unwrap(),
        None
    );
    // The lease is as it was.
    assert_eq!(store.next_due(at(1)).await.unwrap().lease, Some(at(TTL)));
}

async fn a_batch_is_bound_whole_or_not_at_all(store: &dyn Store) {
    submit(store, coding_job(), at(0)).await;
    let lane = Lane::connect(store, "w", at(0)).await;
    let lease = lane.claim(store, at(0)).await.unwrap();
    let known = passed(0, None);
    store
        .bind_evidence(
            lease.job,
            lane.holder(&lease),
            batch(vec![known.clone()]),
            at(1),
        )
        .await
        .unwrap();
    let conflict = EvidenceRecord {
        exit_code: Some(1),
        ..known
    };
    let mixed = batch(vec![passed(1, None), conflict]);
    store
        .bind_evidence(lease.job, lane.holder(&lease), mixed, at(1))
        .await
        .unwrap_err();
    assert_eq!(
        store
            .evidence(lease.job, lease.attempt)
            .await
            .unwrap()
            .unwrap()
            .len(),
        1
    );
}

async fn thirty_four_records_pass_and_one_more_does_not(store: &dyn Store) {
    submit(store, coding_job(), at(0)).await;
    let lane = Lane::connect(store, "w", at(0)).await;
    let lease = lane.claim(store, at(0)).await.unwrap();
    let many = |count: usize| batch((0..count).map(|_| passed(0, None)).collect());
    store
        .bind_evidence(lease.job, lane.holder(&lease), many(33), at(1))
        .await
        .unwrap();
    let refused = store
        .bind_evidence(lease.job, lane.holder(&lease), many(2), at(1))
        .await
        .unwrap_err();
    assert!(matches!(refused, StoreError::TooMuchEvidence));
    store
        .bind_evidence(lease.job, lane.holder(&lease), many(1), at(1))
        .await
        .unwrap();
    assert_eq!(
        store
            .evidence(lease.job, lease.attempt)
            .await
            .unwrap()
            .unwrap()
            .len(),
        34
    );
}

async fn evidence_counts_from_the_holder_before_the_deadline(store: &dyn Store) {
    submit(store, coding_job(), at(0)).await;
    let lane = Lane::connect(store, "w", at(0)).await;
    let other = Lane::connect(store, "v", at(0)).await;
    let lease = lane.claim(store, at(0)).await.unwrap();
    let bind = |lane: &Lane, now| {
        store.bind_evidence(
            lease.job,
            lane.holder(&lease),
            batch(vec![passed(0, None)]),
            now,
        )
    };
    assert!(matches!(
        bind(&other, at(1)).await,
        Err(StoreError::Refused(Refused::Fenced))
    ));
    assert!(matches!(
        bind(&lane, at(TTL)).await,
        Err(StoreError::Refused(Refused::DeadlinePassed))
    ));
    bind(&lane, at(TTL - 1)).await.unwrap();
}

async fn a_text_job_has_no_evidence(store: &dyn Store) {
    submit(store, text_job(), at(0)).await;
    let lane = Lane::connect(store, "w", at(0)).await;
    let lease = lane.claim(store, at(0)).await.unwrap();
    let refused = store
        .bind_evidence(
            lease.job,
            lane.holder(&lease),
            batch(vec![passed(0, None)]),
            at(1),
        )
        .await;
    assert!(matches!(
        refused,
        Err(StoreError::Refused(Refused::WrongKind { .. }))
    ));
}

async fn evidence_is_judged_by_task_and_policy(store: &dyn Store) {
    submit(store, coding_job(), at(0)).await;
    let lane = Lane::connect(store, "w", at(0)).await;
    let lease = lane.claim(store, at(0)).await.unwrap();
    let cleanup = EvidenceRecord {
        reason: Reason::CleanupFailed,
        check_index: None,
        exit_code: None,
        output: Output::Empty,
        duration_ms: 11_001,
        ..passed(0, None)
    };
    let elsewhere = EvidenceRecord {
        base_sha: crate::fixture::sha(CANDIDATE),
        ..passed(0, None)
    };
    for record in [cleanup, elsewhere, passed(2, None)] {
        let refused = store
            .bind_evidence(lease.job, lane.holder(&lease), batch(vec![record]), at(1))
            .await
            .unwrap_err();
        assert!(
            refused.is_refusal() && matches!(refused, StoreError::InvalidEvidence(_)),
            "{refused:?}"
        );
    }
}
