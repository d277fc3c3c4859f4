//! Cancel and retry.

use forge_domain::{AttemptStatus, Completion, FailureCode, JobStatus, Refused, WorkerFailure};
use gate_store::{Retried, Store, StoreError};

use super::cases;
use crate::fixture::{Lane, TTL, at, coding_job, job_id, submit, text_job, text_result};

cases! {
    a_job_is_cancelled_from_every_state_that_waits
    a_leased_job_is_cancelled_at_once_and_its_result_refused
    a_terminal_job_is_not_cancelled
    a_waiting_job_is_retried_at_once
    a_failed_job_is_repeated_as_a_new_one
    other_states_are_not_retried
}

async fn a_job_is_cancelled_from_every_state_that_waits(store: &dyn Store) {
    let pending = submit(store, text_job(), at(0)).await;
    let cancelled = store.cancel(pending.id, at(1)).await.unwrap();
    assert_eq!((cancelled.repeated, cancelled.ended), (false, None));
    assert_eq!(
        (cancelled.job.status, cancelled.job.failure_code),
        (JobStatus::Cancelled, Some(FailureCode::Cancelled))
    );
    let again = store.cancel(pending.id, at(2)).await.unwrap();
    assert_eq!((again.repeated, again.job), (true, cancelled.job));

    let waiting = submit(store, text_job(), at(2)).await;
    let lane = Lane::connect(store, "w", at(2)).await;
    lane.claim(store, at(2)).await.unwrap();
    store.expire_due(at(2 + TTL)).await.unwrap();
    assert_eq!(
        store.cancel(waiting.id, at(40)).await.unwrap().job.status,
        JobStatus::Cancelled
    );
    assert!(lane.claim(store, at(100)).await.is_none());
    assert_eq!(
        store.next_due(at(3)).await.unwrap(),
        gate_store::NextDue::default()
    );
    assert!(matches!(
        store.cancel(job_id(), at(1)).await,
        Err(StoreError::JobNotFound)
    ));
}

async fn a_leased_job_is_cancelled_at_once_and_its_result_refused(store: &dyn Store) {
    let job = submit(store, text_job(), at(0)).await;
    submit(store, text_job(), at(0)).await;
    let lane = Lane::connect(store, "w", at(0)).await;
    let lease = lane.claim(store, at(1)).await.unwrap();
    let cancelled = store.cancel(lease.job, at(2)).await.unwrap();
    let ended = cancelled.ended.unwrap();
    assert_eq!(
        (ended.attempt, ended.slot, ended.status),
        (lease.attempt, lane.slot.clone(), JobStatus::Cancelled)
    );
    let attempts = store.attempts(lease.job).await.unwrap().unwrap();
    assert_eq!(
        (attempts[0].status, attempts[0].failure_code),
        (AttemptStatus::Cancelled, Some(FailureCode::Cancelled))
    );
    let late = store
        .complete(lease.job, lane.holder(&lease), text_result("x"), at(3))
        .await;
    assert!(
        matches!(
            late,
            Err(StoreError::Refused(Refused::Immutable {
                status: AttemptStatus::Cancelled
            }))
        ),
        "{late:?}"
    );
    let beat = store.heartbeat(lease.job, lane.holder(&lease), at(3)).await;
    assert!(
        matches!(beat, Err(StoreError::Refused(Refused::Superseded))),
        "{beat:?}"
    );
    // The slot is free for the next job.
    assert_ne!(lane.claim(store, at(4)).await.unwrap().job, lease.job);
    let detail = store.events(job.id).await.unwrap();
    assert!(detail.len() <= 3);
}

async fn a_terminal_job_is_not_cancelled(store: &dyn Store) {
    let job = submit(store, text_job(), at(0)).await;
    let lane = Lane::connect(store, "w", at(0)).await;
    let lease = lane.claim(store, at(1)).await.unwrap();
    store
        .complete(job.id, lane.holder(&lease), text_result("x"), at(2))
        .await
        .unwrap();
    let refused = store.cancel(job.id, at(3)).await;
    assert!(matches!(
        refused,
        Err(StoreError::JobTerminal {
            status: JobStatus::Succeeded
        })
    ));
    assert_eq!(
        store.job(job.id).await.unwrap().unwrap().status,
        JobStatus::Succeeded
    );
}

async fn a_waiting_job_is_retried_at_once(store: &dyn Store) {
    let job = submit(store, text_job(), at(0)).await;
    let lane = Lane::connect(store, "w", at(0)).await;
    lane.claim(store, at(0)).await.unwrap();
    store.expire_due(at(TTL)).await.unwrap();
    assert!(lane.claim(store, at(TTL)).await.is_none());
    let Retried::Due(due) = store.retry(job.id, job_id(), at(TTL)).await.unwrap() else {
        panic!()
    };
    assert_eq!(
        (due.id, due.status, due.retry_at),
        (job.id, JobStatus::RetryWait, Some(at(TTL)))
    );
    assert_eq!(store.ready_pools(at(TTL)).await.unwrap().len(), 1);
    assert_eq!(lane.claim(store, at(TTL)).await.unwrap().ordinal, 2);
    assert_eq!(
        store.events(job.id).await.unwrap()[4].event.kind(),
        "retry_requested"
    );
}

async fn a_failed_job_is_repeated_as_a_new_one(store: &dyn Store) {
    let job = submit(store, coding_job(), at(0)).await;
    let lane = Lane::connect(store, "w", at(0)).await;
    let lease = lane.claim(store, at(1)).await.unwrap();
    let failed = Completion::Failed(WorkerFailure::ScopedTestFailed);
    let before = store
        .complete(job.id, lane.holder(&lease), failed, at(2))
        .await
        .unwrap()
        .job;
    let id = job_id();
    let Retried::Created(new) = store.retry(job.id, id, at(9)).await.unwrap() else {
        panic!()
    };
    assert_eq!(
        (new.id, new.status, new.retry_of, new.attempts),
        (id, JobStatus::Pending, Some(job.id), 0)
    );
    assert_eq!(
        (new.created_at, new.base_sha, new.repository_id.clone()),
        (at(9), job.base_sha, job.repository_id)
    );
    assert_eq!(store.job(job.id).await.unwrap(), Some(before));
    let again = lane.claim(store, at(10)).await.unwrap();
    assert_eq!((again.job, again.work), (id, crate::fixture::coding_work()));

    let cancelled = submit(store, text_job(), at(0)).await;
    store.cancel(cancelled.id, at(1)).await.unwrap();
    assert!(matches!(
        store.retry(cancelled.id, job_id(), at(2)).await.unwrap(),
        Retried::Created(_)
    ));
    let taken = store.retry(cancelled.id, id, at(3)).await;
    assert!(
        matches!(taken, Err(StoreError::IdTaken { .. })),
        "{taken:?}"
    );
}

async fn other_states_are_not_retried(store: &dyn Store) {
    let job = submit(store, text_job(), at(0)).await;
    let retry = || store.retry(job.id, job_id(), at(5));
    assert!(matches!(
        retry().await,
        Err(StoreError::NotRetryable {
            status: JobStatus::Pending
        })
    ));
    let lane = Lane::connect(store, "w", at(0)).await;
    let lease = lane.claim(store, at(1)).await.unwrap();
    assert!(matches!(
        retry().await,
        Err(StoreError::NotRetryable {
            status: JobStatus::Leased
        })
    ));
    store
        .complete(job.id, lane.holder(&lease), text_result("x"), at(2))
        .await
        .unwrap();
    assert!(matches!(
        retry().await,
        Err(StoreError::NotRetryable {
            status: JobStatus::Succeeded
        })
    ));
    assert!(matches!(
        store.retry(job_id(), job_id(), at(5)).await,
        Err(StoreError::JobNotFound)
    ));
}
