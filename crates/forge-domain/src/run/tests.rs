//! Every edge of the machine, and what no order of events can reach.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::{AttemptStatus, NotAccepting, WorkerFailure};

const TTL: i64 = 30;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn policy(max_attempts: u16) -> ResolvedPolicy {
    let text = r#"{"version":1,"worker_pool":"p","lease_ttl_nanos":30000000000,"retry_base_nanos":1000000000,"max_attempts":MAX,"retry_algorithm":"exponential-v1","retry_max_nanos":86400000000000,"execution":{"plugin_id":"x","environment":[],"plugin_timeout_nanos":900000000000,"check_timeout_nanos":600000000000,"git_timeout_nanos":60000000000,"cleanup_timeout_nanos":10000000000,"plugin_output_bytes":1,"check_output_bytes":1,"git_output_bytes":1}}"#;
    ResolvedPolicy::from_canonical(&text.replace("MAX", &max_attempts.to_string())).unwrap()
}

fn attempt(number: u32) -> AttemptId {
    format!("{number:032x}").parse().unwrap()
}

fn grant(number: u32) -> Grant {
    Grant {
        attempt: attempt(number),
        slot: "w#1".parse().unwrap(),
        generation: "a".repeat(32).parse().unwrap(),
    }
}

fn holder(number: u32) -> Holder {
    let grant = grant(number);
    Holder {
        attempt: grant.attempt,
        slot: grant.slot,
        generation: grant.generation,
    }
}

fn fresh(kind: JobKind, max_attempts: u16) -> Run {
    Run::submit(kind, &policy(max_attempts)).run
}

fn leased(kind: JobKind, max_attempts: u16) -> Run {
    fresh(kind, max_attempts)
        .lease(grant(1), at(0))
        .unwrap()
        .run
}

fn text() -> Completion {
    Completion::Text {
        result: "x".to_owned(),
    }
}

fn candidate() -> Completion {
    Completion::Candidate {
        sha: "1".repeat(40).parse().unwrap(),
        report: None,
    }
}

/// One run in each state.
fn every_state() -> Vec<Run> {
    let done = |completion| {
        leased(JobKind::Legacy, 3)
            .complete(&holder(1), completion, at(1))
            .unwrap()
            .run
    };
    vec![
        fresh(JobKind::Legacy, 3),
        leased(JobKind::Legacy, 3),
        done(Completion::Failed(WorkerFailure::ExecutionFailed)),
        done(text()),
        done(Completion::Failed(WorkerFailure::InvalidTask)),
        fresh(JobKind::Legacy, 3).cancel(at(1)).unwrap().run,
    ]
}

#[test]
fn every_edge_that_is_not_drawn_is_refused() {
    type Edge = fn(Run) -> Result<JobStatus, Refused>;
    let edges: [(&str, Edge, [Option<JobStatus>; 6]); 5] = {
        use JobStatus::{Cancelled, Leased, RetryWait, Succeeded};
        [
            (
                "lease",
                |run| run.lease(grant(9), at(1_000)).map(|step| step.run.status()),
                [Some(Leased), None, Some(Leased), None, None, None],
            ),
            (
                "complete",
                |run| {
                    run.complete(&holder(1), text(), at(1))
                        .map(|step| step.run.status())
                },
                [None, Some(Succeeded), None, None, None, None],
            ),
            (
                "expire",
                |run| run.expire(at(1_000)).map(|step| step.run.status()),
                [None, Some(RetryWait), None, None, None, None],
            ),
            (
                "cancel",
                |run| run.cancel(at(1)).map(|step| step.run.status()),
                [
                    Some(Cancelled),
                    Some(Cancelled),
                    Some(Cancelled),
                    None,
                    None,
                    None,
                ],
            ),
            (
                "retry_now",
                |run| run.retry_now(at(1)).map(|step| step.run.status()),
                [None, None, Some(RetryWait), None, None, None],
            ),
        ]
    };
    for (name, edge, expected) in edges {
        for (run, expected) in every_state().into_iter().zip(expected) {
            let from = run.status();
            assert_eq!(edge(run).ok(), expected, "{name} from {from}");
        }
    }
}

#[test]
fn a_lost_attempt_counts_and_a_job_with_attempts_left_never_fails_for_it() {
    for max_attempts in 1..=5 {
        let mut run = fresh(JobKind::Legacy, max_attempts);
        let mut now = 0;
        for ordinal in 1..=max_attempts {
            run = run.lease(grant(u32::from(ordinal)), at(now)).unwrap().run;
            assert_eq!(run.live().unwrap().ordinal(), ordinal);
            now += TTL;
            run = run.expire(at(now)).unwrap().run;
            let expected = if ordinal < max_attempts {
                JobStatus::RetryWait
            } else {
                JobStatus::Failed
            };
            assert_eq!(run.status(), expected);
            now += 100;
        }
        assert_eq!(
            run.state().failure(),
            Some(FailureCode::MaxAttemptsExceeded)
        );
    }
}

#[test]
fn a_heartbeat_holds_a_lease_from_its_holder_strictly_before_the_deadline() {
    let run = leased(JobKind::Legacy, 3);
    let later = run.clone().heartbeat(&holder(1), at(TTL - 1)).unwrap();
    assert_eq!(later.live().unwrap().deadline(), at(2 * TTL - 1));
    assert_eq!(
        later
            .heartbeat(&holder(1), at(3))
            .unwrap()
            .live()
            .unwrap()
            .deadline(),
        at(2 * TTL - 1)
    );
    assert_eq!(
        run.clone().heartbeat(&holder(1), at(TTL)),
        Err(Refused::DeadlinePassed)
    );
    assert_eq!(
        run.clone().heartbeat(&holder(2), at(1)),
        Err(Refused::Superseded)
    );
    let mut other = holder(1);
    other.generation = "b".repeat(32).parse().unwrap();
    assert_eq!(run.clone().heartbeat(&other, at(1)), Err(Refused::Fenced));
    let mut other = holder(1);
    other.slot = "w".parse().unwrap();
    assert_eq!(run.heartbeat(&other, at(1)), Err(Refused::Fenced));
}

#[test]
fn a_result_is_of_the_kind_of_its_job() {
    for (kind, right, wrong) in [
        (JobKind::Legacy, text(), candidate()),
        (JobKind::Coding, candidate(), text()),
    ] {
        assert_eq!(
            leased(kind, 3).complete(&holder(1), wrong, at(1)),
            Err(Refused::WrongKind { kind })
        );
        assert!(leased(kind, 3).complete(&holder(1), right, at(1)).is_ok());
    }
}

#[test]
fn an_attempt_that_ended_accepts_its_own_result_only() {
    let results = [
        text(),
        Completion::Text {
            result: String::new(),
        },
        candidate(),
        Completion::Failed(WorkerFailure::InvalidTask),
        Completion::Failed(WorkerFailure::ExecutionFailed),
    ];
    for stored in &results {
        for repeated in &results {
            let end = AttemptEnd::from(stored.clone());
            assert_eq!(end.repeats(repeated).is_ok(), stored == repeated);
        }
    }
    for end in [AttemptEnd::Expired, AttemptEnd::Cancelled] {
        for repeated in &results {
            assert_eq!(
                end.repeats(repeated),
                Err(Refused::Immutable {
                    status: end.status()
                })
            );
        }
    }
}

#[test]
fn after_a_time_without_a_gate_a_lease_has_at_most_its_ttl() {
    let mut run = leased(JobKind::Legacy, 3);
    assert!(!run.clamp_deadline(at(5)));
    assert_eq!(run.live().unwrap().deadline(), at(TTL));
    // The clock was set back by an hour.
    assert!(run.clamp_deadline(at(-3_600)));
    assert_eq!(run.live().unwrap().deadline(), at(-3_600 + TTL));
    assert!(!fresh(JobKind::Legacy, 3).clamp_deadline(at(0)));
}

#[test]
fn a_run_that_does_not_fit_together_is_not_restored() {
    let policy = policy(2);
    let live = leased(JobKind::Legacy, 2).live().unwrap().clone();
    let wait = JobState::RetryWait { retry_at: at(1) };
    let failed = JobState::Failed {
        code: FailureCode::InvalidTask,
    };
    let sha: GitSha = "1".repeat(40).parse().unwrap();
    for (kind, attempts, state) in [
        (JobKind::Legacy, 1, JobState::Pending),
        (JobKind::Legacy, 2, JobState::Leased(live.clone())),
        (JobKind::Legacy, 0, wait.clone()),
        (JobKind::Legacy, 2, wait),
        (JobKind::Legacy, 0, failed.clone()),
        (JobKind::Legacy, 3, failed),
        (
            JobKind::Legacy,
            1,
            JobState::Succeeded {
                candidate: Some(sha),
            },
        ),
        (JobKind::Coding, 1, JobState::Succeeded { candidate: None }),
        (JobKind::Coding, 3, JobState::Cancelled),
    ] {
        assert!(
            Run::restore(kind, &policy, attempts, state.clone()).is_err(),
            "{attempts} {state:?}"
        );
    }
    assert!(Run::restore(JobKind::Legacy, &policy, 1, JobState::Leased(live)).is_ok());
}

#[test]
fn a_new_session_takes_the_attempt_over_and_fences_the_old_one() {
    let run = leased(JobKind::Legacy, 2);
    let new = Holder {
        generation: "c".repeat(32).parse().unwrap(),
        ..holder(1)
    };
    let step = run.clone().reattach(&new, at(TTL - 1)).unwrap();
    assert_eq!(step.events.len(), 1);
    assert_eq!(
        step.run.live().unwrap().deadline(),
        run.live().unwrap().deadline()
    );
    assert_eq!(step.run.authorize(&holder(1), at(1)), Err(Refused::Fenced));
    step.run.authorize(&new, at(1)).unwrap();

    let refused = |holder: &Holder, now| run.clone().reattach(holder, at(now)).unwrap_err();
    assert_eq!(refused(&new, TTL), Refused::DeadlinePassed);
    assert_eq!(refused(&holder(2), 1), Refused::Superseded);
    let elsewhere = Holder {
        slot: "w#2".parse().unwrap(),
        ..holder(1)
    };
    assert_eq!(refused(&elsewhere, 1), Refused::Fenced);
    let waiting = fresh(JobKind::Legacy, 2);
    assert_eq!(
        waiting.reattach(&new, at(0)).unwrap_err(),
        Refused::Superseded
    );
}

#[test]
fn a_withdrawn_attempt_costs_none() {
    let run = leased(JobKind::Legacy, 2);
    let step = run
        .withdraw(&holder(1), NotAccepting::Draining, at(1))
        .unwrap();
    assert_eq!(
        (step.run.status(), step.run.attempts()),
        (JobStatus::Pending, 0)
    );
    assert_eq!(step.finished, None);

    let lost = leased(JobKind::Legacy, 2).expire(at(TTL)).unwrap().run;
    let again = lost.lease(grant(2), at(TTL + 1)).unwrap().run;
    let step = again
        .withdraw(&holder(2), NotAccepting::DiskLow, at(TTL + 2))
        .unwrap();
    assert_eq!(step.run.attempts(), 1);
    let third = step.run.lease(grant(3), at(TTL + 2)).unwrap().run;
    assert_eq!(third.live().unwrap().ordinal(), 2);

    let late = leased(JobKind::Legacy, 2)
        .withdraw(&holder(1), NotAccepting::Draining, at(TTL))
        .unwrap_err();
    assert_eq!(late, Refused::DeadlinePassed);
}

#[test]
fn time_without_a_gate_does_not_count() {
    let mut run = leased(JobKind::Legacy, 2);
    assert!(!run.grant_grace(at(0)));
    assert!(run.grant_grace(at(3 * TTL)));
    assert_eq!(run.live().unwrap().deadline(), at(4 * TTL));
    run.authorize(&holder(1), at(3 * TTL)).unwrap();
    assert!(!fresh(JobKind::Legacy, 2).grant_grace(at(0)));
}

#[test]
fn names_round_trip() {
    for status in JobStatus::ALL {
        assert_eq!(status.as_str().parse::<JobStatus>().unwrap(), status);
    }
    for status in AttemptStatus::ALL {
        assert_eq!(status.as_str().parse::<AttemptStatus>().unwrap(), status);
    }
    assert!("delivering".parse::<JobStatus>().is_err());
}

/// Something that happens to a run; numbers choose attempts, old and new ones.
#[derive(Debug, Clone)]
enum Happening {
    Lease,
    Heartbeat(u32),
    Complete(u32, Completion),
    Expire,
    Cancel,
    RetryNow,
    Withdraw(u32),
    Reattach(u32),
    Wait(i64),
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let completion = prop_oneof![
        1 => Just(text()),
        1 => Just(candidate()),
        1 => Just(Completion::Failed(WorkerFailure::InvalidTask)),
        4 => Just(Completion::Failed(WorkerFailure::ExecutionFailed)),
    ];
    let happening = prop_oneof![
        4 => Just(Happening::Lease),
        3 => (0..8u32).prop_map(Happening::Heartbeat),
        3 => (0..8u32, completion).prop_map(|(number, completion)| Happening::Complete(number, completion)),
        3 => Just(Happening::Expire),
        1 => Just(Happening::Cancel),
        1 => Just(Happening::RetryNow),
        1 => (0..8u32).prop_map(Happening::Withdraw),
        2 => (0..8u32).prop_map(Happening::Reattach),
        4 => (0..40i64).prop_map(Happening::Wait),
    ];
    prop::collection::vec(happening, 0..60)
}

proptest! {
    #[test]
    fn no_order_of_events_breaks_a_run(happenings in happenings(), max_attempts in 1..6u16, coding: bool) {
        let kind = if coding { JobKind::Coding } else { JobKind::Legacy };
        let policy = policy(max_attempts);
        let mut run = fresh(kind, max_attempts);
        let mut finished: Vec<FinishedAttempt> = Vec::new();
        let (mut now, mut granted) = (0, 0);
        for happening in happenings {
            let before = run.clone();
            let step = match happening {
                Happening::Wait(seconds) => {
                    now += seconds;
                    continue;
                }
                Happening::Lease => run.clone().lease(grant(granted + 1), at(now)).inspect(|_| granted += 1),
                Happening::Heartbeat(number) => run
                    .clone()
                    .heartbeat(&holder(number), at(now))
                    .map(|run| Step { run, finished: None, events: Vec::new() }),
                Happening::Complete(number, completion) => run.clone().complete(&holder(number), completion, at(now)),
                Happening::Expire => run.clone().expire(at(now)),
                Happening::Cancel => run.clone().cancel(at(now)),
                Happening::RetryNow => run.clone().retry_now(at(now)),
                Happening::Withdraw(number) => run.clone().withdraw(&holder(number), NotAccepting::Draining, at(now)),
                Happening::Reattach(number) => run.clone().reattach(&holder(number), at(now)),
            };
            let Ok(step) = step else { continue };
            // A terminal run takes no step at all.
            prop_assert!(!before.status().is_terminal());
            finished.extend(step.finished);
            run = step.run;

            // Attempts are numbered without gaps, each ends once, and at most the last one lives.
            let ordinals: Vec<u16> = finished.iter().map(FinishedAttempt::ordinal).chain(run.live().map(LiveAttempt::ordinal)).collect();
            prop_assert_eq!(ordinals, (1..=run.attempts()).collect::<Vec<_>>());
            let ids: BTreeSet<AttemptId> = finished.iter().map(|attempt| *attempt.id()).chain(run.live().map(|live| *live.id())).collect();
            prop_assert_eq!(ids.len(), usize::from(run.attempts()));
            prop_assert!(run.attempts() <= max_attempts);
            for event in &step.events {
                prop_assert_eq!(&Event::parse(event.kind(), &event.detail()).unwrap(), event);
            }
            // What is stored of a run is enough to go on with it.
            let restored = Run::restore(kind, &policy, run.attempts(), run.state().clone());
            prop_assert_eq!(restored.as_ref(), Ok(&run));
            // Only the last attempt, or the owner, ends a job.
            if let JobState::Failed { code: FailureCode::MaxAttemptsExceeded } = run.state() {
                prop_assert_eq!(run.attempts(), max_attempts);
            }
            if let JobState::RetryWait { .. } = run.state() {
                prop_assert!(run.attempts() < max_attempts);
            }
        }
    }
}
