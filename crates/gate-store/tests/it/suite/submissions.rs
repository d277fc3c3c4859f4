//! Accepting jobs.

use digest_text::Sha256Text;
use forge_domain::JobStatus;
use gate_store::{Idempotency, NewJob, Store, StoreError, Submitted};

use super::cases;
use crate::fixture::{at, coding_job, policy, submit, text_job};

cases! {
    a_submitted_job_is_pending_and_keeps_what_it_was_given
    an_idempotency_key_makes_one_job
    an_id_is_used_once
    a_policy_must_be_for_the_work
}

async fn a_submitted_job_is_pending_and_keeps_what_it_was_given(store: &dyn Store) {
    let job = NewJob {
        source_ref: Some("https://example.org/1".parse().unwrap()),
        ..coding_job()
    };
    let view = submit(store, job.clone(), at(5)).await;
    assert_eq!(view.status, JobStatus::Pending);
    assert_eq!(
        (view.id, view.source_ref.clone()),
        (job.id, job.source_ref.clone())
    );
    assert_eq!(
        (view.created_at, view.updated_at, view.attempts),
        (at(5), at(5), 0)
    );
    assert_eq!(view.repository_id.as_ref().unwrap().as_str(), "agent-forge");
    assert_eq!(store.job(job.id).await.unwrap(), Some(view.clone()));
    let output = store.output(job.id).await.unwrap().unwrap();
    assert_eq!(
        (output.work, output.text, output.report),
        (job.work, None, None)
    );
    let events = store.events(job.id).await.unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].event.kind(), events[0].at), ("submitted", at(5)));
}

async fn an_idempotency_key_makes_one_job(store: &dyn Store) {
    let key = |body: &str| {
        Some(Idempotency {
            key: "k-1".parse().unwrap(),
            body: Sha256Text::of(body.as_bytes()),
        })
    };
    let first = submit(
        store,
        NewJob {
            idempotency: key("a"),
            ..text_job()
        },
        at(0),
    )
    .await;
    let again = store
        .submit(
            NewJob {
                idempotency: key("a"),
                ..text_job()
            },
            at(1),
        )
        .await
        .unwrap();
    assert_eq!(again, Submitted::Existing(first.clone()));
    let other = store
        .submit(
            NewJob {
                idempotency: key("b"),
                ..text_job()
            },
            at(2),
        )
        .await;
    assert!(
        matches!(other, Err(StoreError::IdempotencyConflict)),
        "{other:?}"
    );
    // The key outlives the job's way through its states.
    store.cancel(first.id, at(3)).await.unwrap();
    let late = store
        .submit(
            NewJob {
                idempotency: key("a"),
                ..text_job()
            },
            at(4),
        )
        .await
        .unwrap();
    assert_eq!(
        (late.job().id, late.job().status),
        (first.id, JobStatus::Cancelled)
    );
}

async fn an_id_is_used_once(store: &dyn Store) {
    let job = text_job();
    submit(store, job.clone(), at(0)).await;
    let again = store.submit(job, at(1)).await;
    assert!(
        matches!(again, Err(StoreError::IdTaken { .. })),
        "{again:?}"
    );
}

async fn a_policy_must_be_for_the_work(store: &dyn Store) {
    for job in [
        NewJob {
            policy: policy("coding", true, 3),
            ..text_job()
        },
        NewJob {
            policy: policy("coding", false, 3),
            ..coding_job()
        },
    ] {
        let id = job.id;
        let refused = store.submit(job, at(0)).await.unwrap_err();
        assert!(refused.is_refusal() && matches!(refused, StoreError::PolicyMismatch));
        assert_eq!(store.job(id).await.unwrap(), None);
    }
}
