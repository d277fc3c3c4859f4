//! Results: what ends a job, and what a repetition does.

use forge_domain::{AttemptStatus, Completion, FailureCode, JobStatus, Refused, WorkerFailure};
use gate_store::{NewJob, Store, StoreError};

use super::cases;
use crate::fixture::{
    CANDIDATE, Lane, POOL, at, batch, candidate, coding_job, passed, policy, sha, submit, text_job,
    text_result,
};

const REPORT: &str = r#"{"summary":"s","changes":["c"]}"#;

cases! {
    a_text_result_is_readable
    a_candidate_and_its_report_are_readable
    r13_the_identical_result_again_is_accepted_and_no_other
    a_result_must_be_of_the_kind_of_its_job
    a_terminal_failure_ends_the_job
    a_retryable_failure_is_retried_until_no_attempt_is_left
    a_candidate_must_agree_with_the_evidence
    a_result_brings_the_next_job
    a_refused_result_brings_no_lease
    the_slot_of_a_retried_job_gets_another_one_first
    a_result_of_an_earlier_session_brings_no_lease_to_it
}

async fn a_text_result_is_readable(store: &dyn Store) {
    for text in ["FORGE: HELLO", ""] {
        let job = submit(store, text_job(), at(0)).await;
        let lane = Lane::connect(store, &format!("w{}", text.len()), at(0)).await;
        let lease = lane.claim(store, at(1)).await.unwrap();
        let done = store
            .complete(lease.job, lane.holder(&lease), text_result(text), at(2))
            .await
            .unwrap();
        assert_eq!(
            (done.repeated, done.job.status, done.job.updated_at),
            (false, JobStatus::Succeeded, at(2))
        );
        let output = store.output(job.id).await.unwrap().unwrap();
        assert_eq!((output.text.as_deref(), output.report), (Some(text), None));
        let result = store.result(job.id).await.unwrap().unwrap();
        assert_eq!(result.attempts[0].0.completed_at, Some(at(2)));
        assert_eq!(
            result.timeline.last().unwrap().event.detail(),
            "result stored"
        );
    }
}

async fn a_candidate_and_its_report_are_readable(store: &dyn Store) {
    let job = submit(store, coding_job(), at(0)).await;
    let lane = Lane::connect(store, "w", at(0)).await;
    let lease = lane.claim(store, at(1)).await.unwrap();
    let done = store
        .complete(
            lease.job,
            lane.holder(&lease),
            candidate(Some(REPORT)),
            at(2),
        )
        .await
        .unwrap();
    assert_eq!(done.job.candidate_sha, Some(sha(CANDIDATE)));
    let output = store.output(job.id).await.unwrap().unwrap();
    assert_eq!((output.text, output.report.unwrap().summary()), (None, "s"));
    let attempts = store.attempts(job.id).await.unwrap().unwrap();
    assert_eq!(attempts[0].report.as_ref().unwrap().canonical(), REPORT);
    assert_eq!(attempts[0].candidate_sha, Some(sha(CANDIDATE)));
}

async fn r13_the_identical_result_again_is_accepted_and_no_other(store: &dyn Store) {
    submit(store, coding_job(), at(0)).await;
    let lane = Lane::connect(store, "w", at(0)).await;
    let other = Lane::connect(store, "v", at(0)).await;
    let lease = lane.claim(store, at(1)).await.unwrap();
    let send =
        |lane: &Lane, completion| store.complete(lease.job, lane.holder(&lease), completion, at(3));
    let first = send(&lane, candidate(Some(REPORT))).await.unwrap();
    let again = send(&lane, candidate(Some(REPORT))).await.unwrap();
    assert_eq!((again.repeated, again.job), (true, first.job.clone()));
    for different in [
        candidate(None),
        Completion::Failed(WorkerFailure::ExecutionFailed),
        text_result("x"),
    ] {
        let refused = send(&lane, different).await.unwrap_err();
        assert!(
            matches!(refused, StoreError::Refused(Refused::Immutable { .. })),
            "{refused:?}"
        );
    }
    let stranger = send(&other, candidate(Some(REPORT))).await.unwrap_err();
    assert!(
        matches!(stranger, StoreError::Refused(Refused::Superseded)),
        "{stranger:?}"
    );
    assert_eq!(store.job(lease.job).await.unwrap(), Some(first.job));
    assert_eq!(store.events(lease.job).await.unwrap().len(), 3);
}

async fn a_result_must_be_of_the_kind_of_its_job(store: &dyn Store) {
    for (job, wrong) in [
        (text_job(), candidate(None)),
        (coding_job(), text_result("x")),
    ] {
        let lane = Lane::connect(store, &format!("w-{}", job.work.kind()), at(0)).await;
        submit(store, job, at(0)).await;
        let lease = lane.claim(store, at(1)).await.unwrap();
        let refused = store
            .complete(lease.job, lane.holder(&lease), wrong, at(2))
            .await
            .unwrap_err();
        assert!(
            matches!(refused, StoreError::Refused(Refused::WrongKind { .. })),
            "{refused:?}"
        );
        assert_eq!(
            store.job(lease.job).await.unwrap().unwrap().status,
            JobStatus::Leased
        );
    }
}

async fn a_terminal_failure_ends_the_job(store: &dyn Store) {
    for (failure, code) in [
        (WorkerFailure::InvalidTask, FailureCode::InvalidTask),
        (
            WorkerFailure::ScopedTestFailed,
            FailureCode::ScopedTestFailed,
        ),
    ] {
        let job = submit(store, coding_job(), at(0)).await;
        let lane = Lane::connect(store, &failure.to_string().replace('_', "-"), at(0)).await;
        let lease = lane.claim(store, at(1)).await.unwrap();
        let done = store
            .complete(
                lease.job,
                lane.holder(&lease),
                Completion::Failed(failure),
                at(2),
            )
            .await
            .unwrap();
        assert_eq!(
            (done.job.status, done.job.failure_code),
            (JobStatus::Failed, Some(code))
        );
        let attempts = store.attempts(job.id).await.unwrap().unwrap();
        assert_eq!(
            (attempts[0].status, attempts[0].failure_code),
            (AttemptStatus::TerminalFailed, Some(code))
        );
        assert_eq!(
            store
                .events(job.id)
                .await
                .unwrap()
                .last()
                .unwrap()
                .event
                .detail(),
            format!("failure_code={code}")
        );
    }
}

async fn a_retryable_failure_is_retried_until_no_attempt_is_left(store: &dyn Store) {
    let job = submit(
        store,
        NewJob {
            policy: policy(POOL, false, 2),
            ..text_job()
        },
        at(0),
    )
    .await;
    let lane = Lane::connect(store, "w", at(0)).await;
    for (now, status) in [(1, JobStatus::RetryWait), (10, JobStatus::Failed)] {
        let lease = lane.claim(store, at(now)).await.unwrap();
        let failed = Completion::Failed(WorkerFailure::ExecutionFailed);
        let done = store
            .complete(lease.job, lane.holder(&lease), failed.clone(), at(now))
            .await
            .unwrap();
        assert_eq!(done.job.status, status);
        let again = store
            .complete(lease.job, lane.holder(&lease), failed, at(now + 1))
            .await
            .unwrap();
        assert_eq!((again.repeated, again.job), (true, done.job));
    }
    let view = store.job(job.id).await.unwrap().unwrap();
    assert_eq!(
        (view.failure_code, view.attempts),
        (Some(FailureCode::MaxAttemptsExceeded), 2)
    );
    let attempts = store.attempts(job.id).await.unwrap().unwrap();
    assert!(
        attempts
            .iter()
            .all(|attempt| attempt.status == AttemptStatus::RetryableFailed)
    );
}

async fn a_candidate_must_agree_with_the_evidence(store: &dyn Store) {
    let other = "3".repeat(40);
    for (index, (record, agrees)) in [
        (passed(0, Some(CANDIDATE)), true),
        (passed(0, Some(&other)), false),
        (passed(0, None), false),
    ]
    .into_iter()
    .enumerate()
    {
        submit(store, coding_job(), at(0)).await;
        let lane = Lane::connect(store, &format!("w{index}"), at(0)).await;
        let lease = lane.claim(store, at(1)).await.unwrap();
        store
            .bind_evidence(lease.job, lane.holder(&lease), batch(vec![record]), at(2))
            .await
            .unwrap();
        let done = store
            .complete(lease.job, lane.holder(&lease), candidate(None), at(3))
            .await;
        assert_eq!(done.is_ok(), agrees, "{done:?}");
        if !agrees {
            assert!(matches!(
                done,
                Err(StoreError::Refused(Refused::EvidenceDisagrees))
            ));
            assert_eq!(
                store.job(lease.job).await.unwrap().unwrap().status,
                JobStatus::Leased
            );
        }
    }
}

async fn a_result_brings_the_next_job(store: &dyn Store) {
    for _ in 0..2 {
        submit(store, text_job(), at(0)).await;
    }
    let lane = Lane::connect(store, "w", at(0)).await;
    let first = lane.claim(store, at(1)).await.unwrap();
    let (done, next) = store
        .complete_and_claim(
            first.job,
            lane.holder(&first),
            text_result("one"),
            lane.request(),
            at(2),
        )
        .await
        .unwrap();
    assert_eq!(done.job.status, JobStatus::Succeeded);
    let next = next.unwrap();
    assert_ne!(next.job, first.job);
    let (done, none) = store
        .complete_and_claim(
            next.job,
            lane.holder(&next),
            text_result("two"),
            lane.request(),
            at(3),
        )
        .await
        .unwrap();
    assert_eq!((done.job.id, done.repeated), (next.job, false));
    assert!(none.is_none());
    let worker = store.worker(lane.slot.clone()).await.unwrap().unwrap();
    assert_eq!(worker.active_job, None);
    // An empty pool is not empty for ever.
    let late = submit(store, text_job(), at(4)).await;
    assert_eq!(lane.claim(store, at(4)).await.unwrap().job, late.id);
}

async fn a_refused_result_brings_no_lease(store: &dyn Store) {
    let first = submit(store, text_job(), at(0)).await;
    let waiting = submit(store, text_job(), at(0)).await;
    let lane = Lane::connect(store, "w", at(0)).await;
    let lease = lane.claim(store, at(1)).await.unwrap();
    let mut stranger = lane.holder(&lease);
    stranger.generation = crate::fixture::generation();
    let mut other = lane.holder(&lease);
    other.attempt = crate::fixture::attempt_id();
    for (holder, completion, now) in [
        (stranger, text_result("x"), 2),
        (other, text_result("x"), 2),
        (lane.holder(&lease), candidate(None), 2),
        (
            lane.holder(&lease),
            text_result("x"),
            1 + crate::fixture::TTL,
        ),
    ] {
        let answer =
            store.complete_and_claim(first.id, holder, completion, lane.request(), at(now));
        assert!(answer.await.unwrap_err().is_refusal());
        let job = store.job(waiting.id).await.unwrap().unwrap();
        assert_eq!(job.status, JobStatus::Pending);
    }
    // Cancelled behind the Worker's back: its slot is free, and its result is refused all the same.
    store.cancel(first.id, at(3)).await.unwrap();
    let answer = store.complete_and_claim(
        first.id,
        lane.holder(&lease),
        text_result("x"),
        lane.request(),
        at(4),
    );
    assert!(answer.await.unwrap_err().is_refusal());
    let job = store.job(waiting.id).await.unwrap().unwrap();
    assert_eq!(job.status, JobStatus::Pending);
    assert_eq!(lane.claim(store, at(5)).await.unwrap().job, waiting.id);
}

async fn the_slot_of_a_retried_job_gets_another_one_first(store: &dyn Store) {
    let failing = submit(store, text_job(), at(0)).await;
    let lane = Lane::connect(store, "w", at(0)).await;
    let lease = lane.claim(store, at(0)).await.unwrap();
    let failed = Completion::Failed(WorkerFailure::ExecutionFailed);
    let (done, next) = store
        .complete_and_claim(
            failing.id,
            lane.holder(&lease),
            failed,
            lane.request(),
            at(1),
        )
        .await
        .unwrap();
    assert_eq!(done.job.status, JobStatus::RetryWait);
    assert!(next.is_none(), "it is not due yet");
    let due = done.job.retry_at.unwrap();
    let again = lane.claim(store, due).await.unwrap();
    assert_eq!((again.job, again.ordinal), (failing.id, 2));
}

async fn a_result_of_an_earlier_session_brings_no_lease_to_it(store: &dyn Store) {
    let first = submit(store, text_job(), at(0)).await;
    let waiting = submit(store, text_job(), at(0)).await;
    let lane = Lane::connect(store, "w", at(0)).await;
    let lease = lane.claim(store, at(0)).await.unwrap();
    let done = store.complete(first.id, lane.holder(&lease), text_result("x"), at(1));
    done.await.unwrap();
    store
        .disconnect_slot(lane.slot.clone(), lane.generation, at(2))
        .await
        .unwrap();
    let (done, lease) = store
        .complete_and_claim(
            first.id,
            lane.holder(&lease),
            text_result("x"),
            lane.request(),
            at(3),
        )
        .await
        .unwrap();
    assert!(done.repeated && lease.is_none());
    let job = store.job(waiting.id).await.unwrap().unwrap();
    assert_eq!(job.status, JobStatus::Pending);
}
