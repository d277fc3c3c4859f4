//! Both ends of a conversation against each other, in memory.

use forge_domain::{Completion, EvidenceBatch, Work, WorkerFailure};
use gate_link::{
    ConnectQuery, GateMessage, GateSession, Lease, LeaseKey, LinkError, Request, WorkerEvent,
    WorkerMessage, WorkerSession,
};
use proptest::prelude::*;

use crate::samples::frames;

fn pair() -> (GateSession, WorkerSession) {
    let query = ConnectQuery::parse("worker_id=worker-1&slot=3").unwrap();
    (
        GateSession::new(query.slot.worker().clone()),
        WorkerSession::new(&query),
    )
}

fn lease(number: u32) -> Lease {
    let frame = frames().into_iter().next().unwrap();
    let GateMessage::Lease(mut lease) = GateMessage::decode(frame.as_bytes()).unwrap() else {
        panic!("not a lease");
    };
    lease.lease = LeaseKey {
        job_id: format!("{number:032x}").parse().unwrap(),
        attempt_id: format!("{:032x}", u64::from(number) + (1 << 40))
            .parse()
            .unwrap(),
    };
    *lease
}

fn batch() -> EvidenceBatch {
    let frame = frames()
        .into_iter()
        .find(|frame| frame.contains("evidence_id"))
        .unwrap();
    match WorkerMessage::decode(frame.as_bytes()).unwrap() {
        WorkerMessage::Evidence(evidence) => evidence.batch,
        other => panic!("{other:?}"),
    }
}

fn text() -> Completion {
    Completion::Text {
        result: "done".to_owned(),
    }
}

#[derive(Debug, Clone)]
enum Step {
    Lease,
    Heartbeat,
    Evidence,
    Result,
    LateHeartbeat,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => Just(Step::Lease),
        3 => Just(Step::Heartbeat),
        2 => Just(Step::Evidence),
        2 => Just(Step::Result),
        1 => Just(Step::LateHeartbeat),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    /// Whatever order the drivers ask for, what one end agrees to send the other
    /// accepts, both agree on the attempt, and what has no place is refused by
    /// the sender before a byte is written.
    #[test]
    fn the_two_ends_always_agree(steps in steps()) {
        let (mut gate, mut worker) = pair();
        let mut number = 0;
        let mut late: Option<Vec<u8>> = None;
        for step in steps {
            prop_assert_eq!(gate.current(), worker.current());
            prop_assert_eq!(gate.is_idle(), worker.is_idle());
            let idle = gate.is_idle();
            match step {
                Step::Lease => {
                    number += 1;
                    match gate.lease(lease(number)) {
                        Ok(frame) => {
                            prop_assert!(idle);
                            let event = worker.receive(&frame).unwrap();
                            prop_assert!(matches!(event, WorkerEvent::Lease(_)));
                        }
                        Err(_) => prop_assert!(!idle),
                    }
                }
                Step::Heartbeat => match worker.heartbeat() {
                    Ok(frame) => {
                        prop_assert!(!idle);
                        let key = gate.current().cloned().unwrap();
                        prop_assert_eq!(gate.receive(&frame).unwrap(), Request::Heartbeat(key));
                    }
                    Err(_) => prop_assert!(idle),
                },
                Step::Evidence => match worker.evidence(batch()) {
                    Ok(frame) => {
                        prop_assert!(!idle);
                        prop_assert!(matches!(gate.receive(&frame).unwrap(), Request::Evidence(_)));
                        let event = worker.receive(&gate.acknowledge().unwrap()).unwrap();
                        prop_assert_eq!(event, WorkerEvent::EvidenceStored);
                    }
                    Err(_) => prop_assert!(idle),
                },
                Step::Result => {
                    let crossing = worker.heartbeat().ok();
                    match worker.result(text()) {
                        Ok(frame) => {
                            prop_assert!(!idle);
                            late = crossing;
                            prop_assert!(matches!(gate.receive(&frame).unwrap(), Request::Result(_)));
                            let event = worker.receive(&gate.acknowledge().unwrap()).unwrap();
                            prop_assert_eq!(event, WorkerEvent::ResultStored);
                        }
                        Err(_) => prop_assert!(idle),
                    }
                }
                Step::LateHeartbeat => {
                    if let Some(frame) = &late {
                        prop_assert_eq!(gate.receive(frame).unwrap(), Request::LateHeartbeat);
                    }
                }
            }
        }
    }

    /// Arbitrary bytes never move the Gate's end.
    #[test]
    fn noise_changes_nothing(noise in prop::collection::vec(any::<u8>(), 0..200)) {
        let (mut gate, mut worker) = pair();
        worker.receive(&gate.lease(lease(1)).unwrap()).unwrap();
        let before = gate.current().cloned();
        prop_assert!(gate.receive(&noise).is_err());
        prop_assert_eq!(gate.current().cloned(), before);
    }
}

fn heartbeat(job: char, attempt: char, worker: &str) -> Vec<u8> {
    format!(
        r#"{{"type":"heartbeat","job_id":"{}","attempt_id":"{}","worker_id":"{worker}"}}"#,
        job.to_string().repeat(32),
        attempt.to_string().repeat(32),
    )
    .into_bytes()
}

/// A Gate whose slot holds the attempt of the recorded lease.
fn leased() -> GateSession {
    let (mut gate, _) = pair();
    let recorded = frames().into_iter().next().unwrap();
    let GateMessage::Lease(lease) = GateMessage::decode(recorded.as_bytes()).unwrap() else {
        panic!("not a lease");
    };
    gate.lease(*lease).unwrap();
    gate
}

#[test]
fn a_message_for_another_target_is_refused() {
    for (job, attempt, worker, what) in [
        ('c', 'b', "worker-1", "job"),
        ('a', 'c', "worker-1", "attempt"),
        ('a', 'b', "worker-2", "worker"),
    ] {
        let error = leased()
            .receive(&heartbeat(job, attempt, worker))
            .unwrap_err();
        assert!(
            matches!(error, LinkError::WrongTarget { what: named, .. } if named == what),
            "{error}"
        );
    }
    assert!(leased().receive(&heartbeat('a', 'b', "worker-1")).is_ok());
}

#[test]
fn after_a_result_only_the_late_heartbeat_of_that_attempt_passes() {
    let result = format!(
        r#"{{"type":"result","job_id":"{}","attempt_id":"{}","result":"x"}}"#,
        "a".repeat(32),
        "b".repeat(32)
    );
    let mut gate = leased();
    gate.receive(result.as_bytes()).unwrap();
    gate.acknowledge().unwrap();
    let late = heartbeat('a', 'b', "worker-1");
    assert_eq!(gate.receive(&late).unwrap(), Request::LateHeartbeat);
    assert!(gate.receive(&heartbeat('a', 'c', "worker-1")).is_err());
    assert!(gate.receive(&heartbeat('a', 'b', "worker-2")).is_err());
    assert!(matches!(
        gate.receive(result.as_bytes()),
        Err(LinkError::OutOfPlace { .. })
    ));
    // The next lease follows at once and must not be lost to that heartbeat.
    gate.lease(lease(7)).unwrap();
    let next = gate.current().cloned();
    assert_eq!(gate.receive(&late).unwrap(), Request::LateHeartbeat);
    assert_eq!(gate.current().cloned(), next);
    assert!(gate.receive(result.as_bytes()).is_err());
    assert!(gate.receive(&heartbeat('a', 'c', "worker-1")).is_err());
    gate.refuse().unwrap();
    assert!(gate.receive(&late).is_err());
}

#[test]
fn nothing_has_a_place_before_a_lease_or_after_a_refusal() {
    let (mut gate, _) = pair();
    assert!(matches!(
        gate.receive(&heartbeat('a', 'b', "worker-1")),
        Err(LinkError::OutOfPlace { .. })
    ));
    let mut gate = leased();
    assert_eq!(
        gate.refuse().unwrap(),
        b"{\"type\":\"error\",\"error\":\"request failed\"}\n"
    );
    assert!(gate.receive(&heartbeat('a', 'b', "worker-1")).is_err());
    assert!(gate.lease(lease(1)).is_err());
    assert!(gate.current().is_none());
}

#[test]
fn activity_is_refused_without_negotiation() {
    let activity = frames()
        .into_iter()
        .find(|frame| frame.contains("\"activity\""))
        .unwrap();
    let error = leased().receive(activity.as_bytes()).unwrap_err();
    assert!(
        matches!(error, LinkError::NotNegotiated("activity")),
        "{error}"
    );
}

#[test]
fn a_worker_refuses_an_extension_it_did_not_offer() {
    let selecting = frames().into_iter().nth(1).unwrap();
    assert!(selecting.contains("live_activity/v1"));
    let (_, mut worker) = pair();
    assert!(matches!(
        worker.receive(selecting.as_bytes()),
        Err(LinkError::NotNegotiated(_))
    ));
    let query =
        ConnectQuery::parse("worker_id=worker-1&slot=0&activity_version=live_activity/v1").unwrap();
    let event = WorkerSession::new(&query)
        .receive(selecting.as_bytes())
        .unwrap();
    let WorkerEvent::Lease(lease) = event else {
        panic!("{event:?}")
    };
    assert!(matches!(lease.work, Work::Coding(_)));
}

#[test]
fn a_worker_ends_on_every_surprise() {
    let ack = |job: char| {
        format!(
            r#"{{"type":"ack","job_id":"{}","attempt_id":"{}"}}"#,
            job.to_string().repeat(32),
            "b".repeat(32)
        )
    };
    let recorded = frames().into_iter().next().unwrap();
    let busy = || {
        let (_, mut worker) = pair();
        worker.receive(recorded.as_bytes()).unwrap();
        worker
    };
    // An acknowledgement of nothing, of something else, a second lease, an error.
    let mut worker = busy();
    assert!(worker.receive(ack('a').as_bytes()).is_err());
    assert!(worker.result(text()).is_err(), "the conversation is over");
    let mut worker = busy();
    worker.result(text()).unwrap();
    assert!(matches!(
        worker.receive(ack('c').as_bytes()),
        Err(LinkError::WrongTarget { .. })
    ));
    let mut worker = busy();
    assert!(worker.receive(recorded.as_bytes()).is_err());
    let mut worker = busy();
    let error = worker
        .receive(br#"{"type":"error","error":"request failed"}"#)
        .unwrap_err();
    assert!(matches!(error, LinkError::Refused));
    let (_, mut worker) = pair();
    assert!(worker.receive(ack('a').as_bytes()).is_err());
}

#[test]
fn an_unacceptable_lease_can_be_answered() {
    let recorded = frames()
        .into_iter()
        .next()
        .unwrap()
        .replace("\"max_attempts\":3", "\"max_attempts\":0");
    let (_, mut worker) = pair();
    let event = worker.receive(recorded.as_bytes()).unwrap();
    assert!(
        matches!(event, WorkerEvent::UnacceptableLease(_)),
        "{event:?}"
    );
    let frame = worker
        .result(Completion::Failed(WorkerFailure::InvalidTask))
        .unwrap();
    let frame = String::from_utf8(frame).unwrap();
    assert!(
        frame.ends_with("\"error\":\"invalid_task\",\"disposition\":\"terminal\"}\n"),
        "{frame}"
    );
}
