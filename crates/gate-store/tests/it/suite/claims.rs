//! Which slot gets which job.

use std::collections::BTreeSet;

use forge_domain::{JobStatus, Priority};
use gate_store::{NewJob, Store, StoreError};

use super::cases;
use crate::fixture::{
    Lane, POOL, TTL, at, coding_job, coding_work, generation, policy, slot, submit, text_job,
    text_result,
};

cases! {
    r28_the_most_urgent_job_comes_first_then_the_oldest_then_by_id
    a_slot_takes_jobs_of_its_own_pool_only
    a_slot_with_a_live_attempt_gets_nothing
    only_the_connected_session_may_claim
    a_lease_carries_all_that_its_worker_needs
    r11_two_hundred_slots_get_two_hundred_different_jobs
    a_waiting_job_is_claimable_once_it_is_due
    a_reconnected_slot_waits_for_its_old_attempt
}

async fn r28_the_most_urgent_job_comes_first_then_the_oldest_then_by_id(store: &dyn Store) {
    let mut expected = Vec::new();
    for (priority, created) in [(0, 3), (5, 4), (-100, 1), (5, 2), (0, 3), (100, 9)] {
        let job = NewJob {
            priority: Priority::new(priority).unwrap(),
            ..text_job()
        };
        submit(store, job.clone(), at(created)).await;
        expected.push((-priority, created, job.id));
    }
    expected.sort();
    for (index, (_, _, id)) in expected.iter().enumerate() {
        let lane = Lane::connect(store, &format!("w{index}"), at(10)).await;
        assert_eq!(lane.claim(store, at(10)).await.unwrap().job, *id);
    }
}

async fn a_slot_takes_jobs_of_its_own_pool_only(store: &dyn Store) {
    submit(store, text_job(), at(0)).await;
    let other = Lane::connect_to(store, "other", "elsewhere", at(0)).await;
    assert!(other.claim(store, at(1)).await.is_none());
    assert_eq!(store.ready_pools(at(1)).await.unwrap(), Vec::new());
    let lane = Lane::connect(store, "w", at(0)).await;
    assert_eq!(
        store.ready_pools(at(1)).await.unwrap(),
        [POOL.parse().unwrap()]
    );
    assert!(lane.claim(store, at(1)).await.is_some());
    assert_eq!(store.ready_pools(at(1)).await.unwrap(), Vec::new());
}

async fn a_slot_with_a_live_attempt_gets_nothing(store: &dyn Store) {
    submit(store, text_job(), at(0)).await;
    submit(store, text_job(), at(0)).await;
    let lane = Lane::connect(store, "w", at(0)).await;
    let lease = lane.claim(store, at(1)).await.unwrap();
    assert!(lane.claim(store, at(2)).await.is_none());
    store
        .complete(lease.job, lane.holder(&lease), text_result("x"), at(3))
        .await
        .unwrap();
    assert_ne!(lane.claim(store, at(4)).await.unwrap().job, lease.job);
}

async fn only_the_connected_session_may_claim(store: &dyn Store) {
    submit(store, text_job(), at(0)).await;
    let lane = Lane::connect(store, "w", at(0)).await;
    let busy = store
        .connect_slot(
            lane.slot.clone(),
            POOL.parse().unwrap(),
            generation(),
            at(1),
        )
        .await;
    assert!(matches!(busy, Err(StoreError::SlotBusy)));
    assert!(
        store
            .disconnect_slot(lane.slot.clone(), lane.generation, at(2))
            .await
            .unwrap()
    );
    assert!(matches!(
        store.claim(lane.request(), at(3)).await,
        Err(StoreError::Fenced)
    ));
    let new = Lane::connect(store, "w", at(4)).await;
    // The old session's farewell comes late and must not end the new one.
    assert!(
        !store
            .disconnect_slot(lane.slot.clone(), lane.generation, at(5))
            .await
            .unwrap()
    );
    assert!(matches!(
        store.claim(lane.request(), at(5)).await,
        Err(StoreError::Fenced)
    ));
    assert!(new.claim(store, at(5)).await.is_some());
}

async fn a_lease_carries_all_that_its_worker_needs(store: &dyn Store) {
    let job = coding_job();
    submit(store, job.clone(), at(0)).await;
    let lane = Lane::connect(store, "w#3", at(0)).await;
    let lease = lane.claim(store, at(7)).await.unwrap();
    assert_eq!(
        (lease.job, lease.ordinal, lease.deadline),
        (job.id, 1, at(7 + TTL))
    );
    assert_eq!(
        (lease.work, lease.policy.canonical()),
        (coding_work(), job.policy.canonical())
    );
    let view = store.job(job.id).await.unwrap().unwrap();
    assert_eq!(view.status, JobStatus::Leased);
    assert_eq!(
        (view.attempt_id, view.worker_id),
        (Some(lease.attempt), Some(lane.slot.clone()))
    );
    let worker = store.worker(lane.slot).await.unwrap().unwrap();
    assert_eq!(
        (worker.active_job, worker.active_attempt),
        (Some(job.id), Some(lease.attempt))
    );
}

async fn r11_two_hundred_slots_get_two_hundred_different_jobs(store: &dyn Store) {
    let mut submitted = Vec::new();
    let mut lanes = Vec::new();
    for index in 0..200 {
        submitted.push(store.submit(text_job(), at(0)));
        let lane = Lane {
            slot: slot(&format!("w{}#{}", index / 50, index % 50 + 1)),
            generation: generation(),
        };
        drop(store.connect_slot(
            lane.slot.clone(),
            POOL.parse().unwrap(),
            lane.generation,
            at(0),
        ));
        lanes.push(lane);
    }
    for answer in submitted {
        answer.await.unwrap();
    }
    // Every claim is asked twice, all of them before the first answer is awaited.
    let answers: Vec<_> = lanes
        .iter()
        .chain(&lanes)
        .map(|lane| store.claim(lane.request(), at(1)))
        .collect();
    let mut jobs = BTreeSet::new();
    for answer in answers {
        if let Some(lease) = answer.await.unwrap() {
            assert!(jobs.insert(lease.job), "{} was leased twice", lease.job);
        }
    }
    assert_eq!(jobs.len(), 200);
}

async fn a_waiting_job_is_claimable_once_it_is_due(store: &dyn Store) {
    let waiting = submit(store, text_job(), at(0)).await;
    let lane = Lane::connect(store, "w", at(0)).await;
    let first = lane.claim(store, at(0)).await.unwrap();
    assert_eq!(store.expire_due(at(TTL)).await.unwrap().len(), 1);
    // Younger, so it comes after the waiting one once that is due.
    let younger = submit(store, text_job(), at(TTL)).await;
    assert_eq!(
        store.next_due(at(TTL)).await.unwrap().retry,
        Some(at(TTL + 1))
    );
    assert_eq!(
        store.job(waiting.id).await.unwrap().unwrap().retry_at,
        Some(at(TTL + 1))
    );
    let second = Lane::connect(store, "v", at(TTL)).await;
    assert_eq!(second.claim(store, at(TTL)).await.unwrap().job, younger.id);
    assert!(lane.claim(store, at(TTL)).await.is_none());
    assert_eq!(store.ready_pools(at(TTL + 1)).await.unwrap().len(), 1);
    let again = lane.claim(store, at(TTL + 1)).await.unwrap();
    assert_eq!((again.job, again.ordinal), (waiting.id, 2));
    assert_ne!(again.attempt, first.attempt);
    assert_eq!(store.next_due(at(TTL + 1)).await.unwrap().retry, None);
}

async fn a_reconnected_slot_waits_for_its_old_attempt(store: &dyn Store) {
    submit(
        store,
        NewJob {
            policy: policy(POOL, false, 1),
            ..text_job()
        },
        at(0),
    )
    .await;
    submit(store, text_job(), at(0)).await;
    let old = Lane::connect(store, "w", at(0)).await;
    let lease = old.claim(store, at(0)).await.unwrap();
    store
        .disconnect_slot(old.slot.clone(), old.generation, at(1))
        .await
        .unwrap();
    let new = Lane::connect(store, "w", at(2)).await;
    assert!(new.claim(store, at(2)).await.is_none());
    // Neither session can speak for the attempt: the old one is gone, the new one never held it.
    let stolen = store.heartbeat(lease.job, new.holder(&lease), at(2)).await;
    assert!(
        matches!(
            stolen,
            Err(StoreError::Refused(forge_domain::Refused::Fenced))
        ),
        "{stolen:?}"
    );
    assert_eq!(store.expire_due(at(TTL)).await.unwrap().len(), 1);
    assert!(new.claim(store, at(TTL)).await.is_some());
}
