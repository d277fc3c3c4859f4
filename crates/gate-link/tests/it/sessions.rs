//! Both ends of a conversation against each other, in memory.

use forge_domain::{Activity, Completion, EvidenceBatch, Stage, Work, WorkerFailure};
use gate_link::{
    ActivityVersion, ConnectQuery, GateMessage, GateSession, Lease, LeaseKey, LinkError, Request,
    WorkerEvent, WorkerMessage, WorkerSession,
};
use proptest::prelude::*;

use crate::samples::frames;

fn pair() -> (GateSession, WorkerSession) {
    pair_after("worker_id=worker-1&slot=3")
}

fn pair_after(query: &str) -> (GateSession, WorkerSession) {
    let query = ConnectQuery::parse(query).unwrap();
    (GateSession::new(&query), WorkerSession::new(&query))
}

/// Both ends after a Worker has offered live activity.
fn offering() -> (GateSession, WorkerSession) {
    pair_after("worker_id=worker-1&slot=3&activity_version=live_activity/v1")
}

pub(crate) fn lease(number: u32) -> Lease {
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

pub(crate) fn batch() -> EvidenceBatch {
    let frame = frames()
        .into_iter()
        .find(|frame| frame.contains("evidence_id"))
        .unwrap();
    match WorkerMessage::decode(frame.as_bytes()).unwrap() {
        WorkerMessage::Evidence(evidence) => evidence.batch,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn text() -> Completion {
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
    Activity(Stage),
}

pub(crate) fn stage() -> impl Strategy<Value = Stage> {
    prop::sample::select(vec![
        Stage::Analyzing,
        Stage::Editing,
        Stage::Testing,
        Stage::PreparingResult,
    ])
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => Just(Step::Lease),
        3 => Just(Step::Heartbeat),
        2 => Just(Step::Evidence),
        2 => Just(Step::Result),
        1 => Just(Step::LateHeartbeat),
        3 => stage().prop_map(Step::Activity),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    /// Whatever order the drivers ask for, what one end agrees to send the other
    /// accepts, both agree on the attempt, and what has no place is refused by
    /// the sender before a byte is written.
    #[test]
    fn the_two_ends_always_agree(steps in steps(), offers in any::<bool>()) {
        let (mut gate, mut worker) = if offers { offering() } else { pair() };
        let mut number = 0;
        let mut shown: Vec<Activity> = Vec::new();
        let mut late: Option<Vec<u8>> = None;
        for step in steps {
            prop_assert_eq!(gate.current(), worker.current());
            prop_assert_eq!(gate.is_idle(), worker.is_idle());
            let idle = gate.is_idle();
            match step {
                Step::Lease => {
                    number += 1;
                    let mut lease = lease(number);
                    // Every other lease selects what was offered.
                    lease.activity_version = gate.offered_activity().filter(|_| number % 2 == 0);
                    let selects = lease.activity_version.is_some();
                    match gate.lease(lease) {
                        Ok(frame) => {
                            prop_assert!(idle);
                            shown.clear();
                            let event = worker.receive(&frame).unwrap();
                            prop_assert!(matches!(event, WorkerEvent::Lease(_)));
                            prop_assert_eq!(worker.shows_activity(), selects);
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
                Step::Activity(stage) => match worker.activity(stage) {
                    Ok(Some(frame)) => {
                        prop_assert!(worker.shows_activity());
                        let Request::Activity(key, activity) = gate.receive(&frame).unwrap() else {
                            panic!("no activity");
                        };
                        prop_assert_eq!(Some(&key), gate.current());
                        prop_assert_eq!(usize::from(activity.sequence), shown.len() + 1);
                        prop_assert!(shown.iter().all(|last| last.stage < activity.stage));
                        shown.push(activity);
                    }
                    Ok(None) => prop_assert!(
                        !worker.shows_activity() || shown.iter().any(|last| last.stage >= stage)
                    ),
                    Err(_) => prop_assert!(idle),
                },
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

fn activity(job: char, attempt: char, worker: &str, sequence: u32, stage: &str) -> Vec<u8> {
    format!(
        r#"{{"activity_version":"live_activity/v1","activity":{{"sequence":{sequence},"stage":"{stage}"}},"type":"activity","job_id":"{}","attempt_id":"{}","worker_id":"{worker}"}}"#,
        job.to_string().repeat(32),
        attempt.to_string().repeat(32),
    )
    .into_bytes()
}

/// A Gate that has sent the recorded lease that selects live activity.
fn selected() -> GateSession {
    let (mut gate, _) = offering();
    let recorded = frames().into_iter().nth(1).unwrap();
    let GateMessage::Lease(lease) = GateMessage::decode(recorded.as_bytes()).unwrap() else {
        panic!("not a lease");
    };
    assert_eq!(lease.activity_version, Some(ActivityVersion::V1));
    gate.lease(*lease).unwrap();
    gate
}

#[test]
fn selected_activity_goes_strictly_forward_and_ends_with_the_result() {
    let mut gate = selected();
    let key = gate.current().cloned().unwrap();
    let shown = |sequence, stage| Request::Activity(key.clone(), Activity { sequence, stage });
    let say = |sequence, stage| activity('a', 'b', "worker-1", sequence, stage);
    for (sequence, stage) in [(0, "analyzing"), (2, "analyzing"), (5, "testing")] {
        let error = gate.receive(&say(sequence, stage)).unwrap_err();
        assert!(matches!(error, LinkError::Backwards(_)), "{error}");
    }
    let first = gate.receive(&say(1, "editing")).unwrap();
    assert_eq!(first, shown(1, Stage::Editing));
    for (sequence, stage) in [
        (1, "testing"),
        (2, "editing"),
        (2, "analyzing"),
        (3, "testing"),
    ] {
        let error = gate.receive(&say(sequence, stage)).unwrap_err();
        assert!(matches!(error, LinkError::Backwards(_)), "{error}");
    }
    let last = gate.receive(&say(2, "preparing_result")).unwrap();
    assert_eq!(last, shown(2, Stage::PreparingResult));
    let result = format!(
        r#"{{"type":"result","job_id":"{}","attempt_id":"{}","candidate_sha":"{}"}}"#,
        "a".repeat(32),
        "b".repeat(32),
        "2".repeat(40)
    );
    gate.receive(result.as_bytes()).unwrap();
    gate.acknowledge().unwrap();
    let error = gate.receive(&say(3, "preparing_result")).unwrap_err();
    assert!(matches!(error, LinkError::OutOfPlace { .. }), "{error}");
}

#[test]
fn an_activity_for_another_target_is_refused() {
    for (job, attempt, worker, what) in [
        ('c', 'b', "worker-1", "job"),
        ('a', 'c', "worker-1", "attempt"),
        ('a', 'b', "worker-2", "worker"),
        ('a', 'b', "worker-1-3", "worker"),
    ] {
        let error = selected()
            .receive(&activity(job, attempt, worker, 1, "analyzing"))
            .unwrap_err();
        assert!(
            matches!(error, LinkError::WrongTarget { what: named, .. } if named == what),
            "{error}"
        );
    }
}

#[test]
fn a_selection_holds_for_its_lease_only() {
    let mut gate = selected();
    let failed = format!(
        r#"{{"type":"result","job_id":"{}","attempt_id":"{}","error":"execution_failed"}}"#,
        "a".repeat(32),
        "b".repeat(32)
    );
    gate.receive(failed.as_bytes()).unwrap();
    gate.acknowledge().unwrap();
    let mut next = lease(7);
    next.activity_version = None;
    gate.lease(next).unwrap();
    let key = gate.current().cloned().unwrap();
    let say = String::from_utf8(activity('a', 'b', "worker-1", 1, "analyzing"))
        .unwrap()
        .replace(&"a".repeat(32), key.job_id.as_ref())
        .replace(&"b".repeat(32), key.attempt_id.as_ref());
    let error = gate.receive(say.as_bytes()).unwrap_err();
    assert!(
        matches!(error, LinkError::NotNegotiated("activity")),
        "{error}"
    );
}

#[test]
fn a_gate_selects_only_what_was_offered() {
    let (mut gate, _) = pair();
    assert_eq!(gate.offered_activity(), None);
    let mut selecting = lease(1);
    selecting.activity_version = Some(ActivityVersion::V1);
    let error = gate.lease(selecting).unwrap_err();
    assert!(
        matches!(error, LinkError::NotNegotiated("activity")),
        "{error}"
    );
    assert!(gate.is_idle());
}

#[test]
fn a_worker_shows_nothing_where_it_may_not() {
    // Not selected: silence, not an error.
    let (mut gate, mut worker) = offering();
    let mut plain = lease(1);
    plain.activity_version = None;
    worker.receive(&gate.lease(plain).unwrap()).unwrap();
    assert_eq!(worker.activity(Stage::Analyzing).unwrap(), None);
    // Idle, or waiting for an acknowledgement: no place for it.
    let (mut gate, mut worker) = offering();
    assert!(worker.activity(Stage::Analyzing).is_err());
    let mut selecting = lease(1);
    selecting.activity_version = gate.offered_activity();
    worker.receive(&gate.lease(selecting).unwrap()).unwrap();
    assert!(worker.activity(Stage::Testing).unwrap().is_some());
    assert_eq!(worker.activity(Stage::Editing).unwrap(), None);
    worker.result(text()).unwrap();
    assert!(worker.activity(Stage::PreparingResult).is_err());
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
