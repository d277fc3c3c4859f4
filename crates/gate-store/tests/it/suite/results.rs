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
    the_identical_result_again_is_accepted_and_no_other
    a_result_must_be_of_the_kind_of_its_job
    a_terminal_failure_ends_the_job
    a_retryable_failure_is_retried_until_no_attempt_is_left
    a_candidate_must_agree_with_the_evidence
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

async fn the_identical_result_again_is_accepted_and_no_other(store: &dyn Store) {
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
