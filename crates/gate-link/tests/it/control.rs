//! Job control, rule by rule: who may say what, and when.

use forge_domain::{CancelReason, NotAccepting, Stage};
use gate_link::{
    AttachToken, ConnectQuery, GateSession, LinkError, Readiness, Request, Suspended, WorkerEvent,
    WorkerMessage, WorkerSession,
};

use crate::sessions::{batch, lease, text};

const OFFER: &str =
    "worker_id=worker-1&slot=3&activity_version=live_activity/v1&control_version=job_control/v1";

fn token() -> AttachToken {
    "0123456789abcdef0123456789abcdef".parse().unwrap()
}

/// Both ends after the connect, before anything is said.
fn fresh() -> (GateSession, WorkerSession) {
    let query = ConnectQuery::parse(OFFER).unwrap();
    (GateSession::new(&query), WorkerSession::new(&query))
}

/// Both ends after a greeting.
fn greeted() -> (GateSession, WorkerSession) {
    let (mut gate, mut worker) = fresh();
    ping(&mut gate, &mut worker);
    (gate, worker)
}

fn ping(gate: &mut GateSession, worker: &mut WorkerSession) {
    let WorkerEvent::Ping(n) = worker.receive(&gate.ping().unwrap()).unwrap() else {
        panic!("no ping");
    };
    assert_eq!(
        gate.receive(&worker.pong(n).unwrap()).unwrap(),
        Request::Pong
    );
}

fn grant(gate: &mut GateSession, number: u32) -> Vec<u8> {
    let mut lease = lease(number);
    lease.attach_token = Some(token());
    lease.activity_version = gate.offered_activity();
    gate.lease(lease).unwrap()
}

/// Both ends with a running attempt.
fn leased() -> (GateSession, WorkerSession) {
    let (mut gate, mut worker) = greeted();
    let frame = grant(&mut gate, 1);
    assert!(matches!(worker.receive(&frame), Ok(WorkerEvent::Lease(_))));
    (gate, worker)
}

/// Both ends in a new conversation, the Worker with an attempt of the one before.
fn attaching() -> (GateSession, WorkerSession, Vec<u8>) {
    let (_, worker) = leased();
    let suspended = worker.suspend().unwrap();
    let (mut gate, mut worker) = fresh();
    worker.receive(&gate.ping().unwrap()).unwrap();
    let frame = worker.attach(suspended, token()).unwrap();
    (gate, worker, frame)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it is asked about results that nobody keeps"
)]
fn out_of_place<T: std::fmt::Debug>(result: Result<T, LinkError>) {
    assert!(
        matches!(result, Err(LinkError::OutOfPlace { .. })),
        "{result:?}"
    );
}

#[test]
fn a_conversation_begins_with_a_ping_and_no_lease_comes_before_its_pong() {
    let (mut gate, mut worker) = fresh();
    assert!(gate.controls() && !gate.is_idle());
    out_of_place(gate.lease(lease(1)));
    let first = gate.ping().unwrap();
    assert_eq!(first, b"{\"type\":\"ping\",\"n\":1}\n");
    out_of_place(gate.lease(lease(1)));
    assert!(!worker.controls());
    assert_eq!(worker.receive(&first).unwrap(), WorkerEvent::Ping(1));
    assert!(worker.controls());
    gate.receive(&worker.pong(1).unwrap()).unwrap();
    assert!(gate.is_idle() && gate.takes_next());
    assert!(gate.lease(lease(1)).is_ok());
}

#[test]
fn a_pong_answers_a_ping_once_and_the_later_one_first() {
    let (mut gate, _) = fresh();
    let pong = |n: u64| WorkerMessage::Pong(n).encode().unwrap();
    out_of_place(gate.receive(&pong(1)));
    gate.ping().unwrap();
    out_of_place(gate.receive(&pong(0)));
    out_of_place(gate.receive(&pong(2)));
    assert!(!gate.takes_ping());
    out_of_place(gate.ping());
    gate.receive(&pong(1)).unwrap();
    assert!(gate.takes_ping());
    for _ in 0..3 {
        gate.ping().unwrap();
    }
    assert_eq!(gate.unanswered(), 3);
    assert_eq!(gate.receive(&pong(3)).unwrap(), Request::Pong);
    assert_eq!(gate.unanswered(), 1);
    out_of_place(gate.receive(&pong(2)));
    out_of_place(gate.receive(&pong(3)));
    assert_eq!(gate.receive(&pong(4)).unwrap(), Request::Pong);
    assert_eq!(gate.unanswered(), 0);
}

#[test]
fn without_the_offer_nothing_of_it_passes_in_either_direction() {
    let query = ConnectQuery::parse("worker_id=worker-1&slot=3").unwrap();
    let control = crate::samples::frames();
    let kinds = ["attach", "ready", "decline", "pong", "cancelled"];
    let mut seen = 0;
    for frame in &control {
        let named = |kind: &&str| frame.contains(&format!("\"type\":\"{kind}\""));
        if kinds.iter().any(named) {
            let error = GateSession::new(&query).receive(frame.as_bytes());
            assert!(
                matches!(error, Err(LinkError::NotNegotiated(_))),
                "{frame}: {error:?}"
            );
            seen += 1;
        }
        let gates = ["ping", "cancel", "attached", "lost"];
        if gates.iter().any(named) || frame.contains("control_version") {
            let query = ConnectQuery::parse(&OFFER.replace("job_control/v1", "other/v1")).unwrap();
            let error = WorkerSession::new(&query).receive(frame.as_bytes());
            assert!(error.is_err(), "{frame}");
            seen += 1;
        }
    }
    assert_eq!(seen, 11);

    let mut gate = GateSession::new(&query);
    assert!(gate.is_idle() && gate.takes_next() && !gate.controls());
    assert!(matches!(gate.ping(), Err(LinkError::NotNegotiated(_))));
    let mut selecting = lease(1);
    selecting.attach_token = Some(token());
    assert!(matches!(
        gate.lease(selecting),
        Err(LinkError::NotNegotiated(_))
    ));
    gate.lease(lease(1)).unwrap();
    let cancel = gate.cancel(CancelReason::Operator);
    assert!(matches!(cancel, Err(LinkError::NotNegotiated(_))));
    assert!(gate.current().is_some());
}

#[test]
fn a_worker_says_nothing_of_it_to_a_gate_that_has_not_shown_that_it_knows_it() {
    let (_, mut worker) = fresh();
    let refused = |result: Result<Vec<u8>, LinkError>| {
        assert!(matches!(result, Err(LinkError::NotNegotiated(_))));
    };
    let key = lease(1).lease;
    refused(worker.attach(Suspended::done(key), token()));
    refused(worker.ready(Readiness::Accepts));
    refused(worker.pong(1));
    let query = ConnectQuery::parse("worker_id=worker-1&slot=3").unwrap();
    let mut gate = GateSession::new(&query);
    worker.receive(&gate.lease(lease(1)).unwrap()).unwrap();
    refused(worker.decline());
    assert!(worker.cancelled().is_err());
    // What an original Gate and Worker say to each other is as ever.
    gate.receive(&worker.heartbeat().unwrap()).unwrap();
    gate.receive(&worker.result(text()).unwrap()).unwrap();
    let stored = worker.receive(&gate.acknowledge().unwrap()).unwrap();
    assert_eq!(stored, WorkerEvent::ResultStored);
}

#[test]
fn an_attach_is_the_first_message_or_none() {
    let (mut gate, worker, frame) = attaching();
    let Ok(Request::Attach(attach)) = gate.receive(&frame) else {
        panic!("no attach");
    };
    assert_eq!((attach.lease, attach.token), (lease(1).lease, token()));
    assert!(!worker.is_idle() && worker.current() == Some(&lease(1).lease));
    // A second one, and one after anything else.
    out_of_place(gate.receive(&frame));
    for first in [
        WorkerMessage::Pong(1),
        WorkerMessage::Ready(Readiness::Accepts),
        WorkerMessage::Ready(Readiness::Refuses(NotAccepting::Paused)),
    ] {
        let (mut gate, _) = fresh();
        gate.ping().unwrap();
        gate.receive(&first.encode().unwrap()).unwrap();
        out_of_place(gate.receive(&frame));
    }
    let (mut gate, _) = leased();
    out_of_place(gate.receive(&frame));
    // The Worker's end keeps the rule too.
    let (_, mut worker) = greeted();
    out_of_place(worker.attach(Suspended::done(lease(1).lease), token()));
    let (_, mut worker, _) = attaching();
    out_of_place(worker.attach(Suspended::done(lease(1).lease), token()));
}

#[test]
fn an_attached_attempt_goes_on_and_its_stages_too() {
    let (mut gate, mut worker) = leased();
    for stage in [Stage::Analyzing, Stage::Editing] {
        gate.receive(&worker.activity(stage).unwrap().unwrap())
            .unwrap();
    }
    let suspended = worker.suspend().unwrap();
    let (mut gate, mut worker) = fresh();
    worker.receive(&gate.ping().unwrap()).unwrap();
    gate.receive(&worker.attach(suspended, token()).unwrap())
        .unwrap();
    // Nothing else has a place before the answer.
    out_of_place(worker.heartbeat());
    out_of_place(worker.ready(Readiness::Accepts));
    out_of_place(worker.result(text()));
    out_of_place(gate.lease(lease(2)));
    let event = worker.receive(&gate.attached(29_000).unwrap()).unwrap();
    assert_eq!(
        event,
        WorkerEvent::Attached {
            deadline_ms: 29_000
        }
    );
    assert_eq!(gate.current(), worker.current());
    assert!(worker.shows_activity());
    assert_eq!(worker.activity(Stage::Editing).unwrap(), None);
    let testing = worker.activity(Stage::Testing).unwrap().unwrap();
    assert!(matches!(
        gate.receive(&testing),
        Ok(Request::Activity(_, activity)) if activity.sequence == 3
    ));
    gate.receive(&worker.heartbeat().unwrap()).unwrap();
    gate.receive(&worker.evidence(batch()).unwrap()).unwrap();
    worker.receive(&gate.acknowledge().unwrap()).unwrap();
    gate.receive(&worker.result(text()).unwrap()).unwrap();
    worker.receive(&gate.acknowledge().unwrap()).unwrap();
    // Still no lease before the pong.
    assert!(worker.is_idle() && !gate.is_idle() && !gate.takes_next());
    out_of_place(gate.lease(lease(2)));
    gate.receive(&worker.pong(1).unwrap()).unwrap();
    assert!(gate.is_idle());
}

#[test]
fn a_lost_attempt_leaves_an_idle_slot_once_a_pong_follows() {
    let (mut gate, mut worker, frame) = attaching();
    gate.receive(&frame).unwrap();
    out_of_place(worker.pong(1));
    out_of_place(gate.receive(&WorkerMessage::Pong(1).encode().unwrap()));
    assert_eq!(
        worker.receive(&gate.lost().unwrap()).unwrap(),
        WorkerEvent::Lost
    );
    assert!(worker.is_idle() && worker.current().is_none());
    out_of_place(gate.lease(lease(2)));
    gate.receive(&worker.pong(1).unwrap()).unwrap();
    assert!(gate.is_idle());
    // It is said once.
    out_of_place(gate.lost());
    out_of_place(gate.attached(1));
}

#[test]
fn an_answer_to_an_attach_names_its_attempt() {
    for answer in ["attached", "lost"] {
        let frame = crate::samples::frames()
            .into_iter()
            .find(|frame| frame.contains(&format!("\"type\":\"{answer}\"")))
            .unwrap();
        let (_, mut worker, _) = attaching();
        let error = worker.receive(frame.as_bytes());
        assert!(matches!(error, Err(LinkError::WrongTarget { .. })));
        let (_, mut worker) = greeted();
        out_of_place(worker.receive(frame.as_bytes()));
        let (_, mut worker) = leased();
        out_of_place(worker.receive(frame.as_bytes()));
    }
}

#[test]
fn what_is_suspended_is_what_runs() {
    let (_, worker) = greeted();
    assert_eq!(worker.suspend(), None);
    for prepare in [
        |_: &mut WorkerSession| {},
        |worker: &mut WorkerSession| drop(worker.evidence(batch()).unwrap()),
        |worker: &mut WorkerSession| drop(worker.result(text()).unwrap()),
    ] {
        let (_, mut worker) = leased();
        prepare(&mut worker);
        assert_eq!(worker.suspend().unwrap().lease, lease(1).lease);
    }
    let (_, worker, _) = attaching();
    assert_eq!(worker.suspend().unwrap().lease, lease(1).lease);
    // What is being stopped does not go on.
    let (mut gate, mut worker) = leased();
    let cancel = gate.cancel(CancelReason::Operator).unwrap();
    worker.receive(&cancel).unwrap();
    assert_eq!(worker.suspend(), None);
}

#[test]
fn a_slot_that_refuses_gets_no_lease_until_it_accepts() {
    let (mut gate, mut worker) = greeted();
    for reason in NotAccepting::ALL {
        let refuses = Readiness::Refuses(*reason);
        let request = gate.receive(&worker.ready(refuses).unwrap()).unwrap();
        assert_eq!(request, Request::Ready(refuses));
        assert_eq!(
            (gate.refuses(), worker.refuses()),
            (Some(*reason), Some(*reason))
        );
        assert!(!gate.is_idle() && !gate.takes_next());
        out_of_place(gate.lease(lease(1)));
        ping(&mut gate, &mut worker);
        assert!(!gate.is_idle());
    }
    gate.receive(&worker.ready(Readiness::Accepts).unwrap())
        .unwrap();
    assert_eq!((gate.refuses(), worker.refuses()), (None, None));
    assert!(gate.is_idle());
    // Before the first pong too.
    let (mut gate, mut worker) = fresh();
    worker.receive(&gate.ping().unwrap()).unwrap();
    let refuses = Readiness::Refuses(NotAccepting::Draining);
    gate.receive(&worker.ready(refuses).unwrap()).unwrap();
    gate.receive(&worker.pong(1).unwrap()).unwrap();
    assert!(!gate.is_idle());
}

#[test]
fn readiness_is_said_by_an_idle_slot() {
    let refuses = Readiness::Refuses(NotAccepting::DiskLow);
    let (_, mut worker) = leased();
    out_of_place(worker.ready(refuses));
    worker.result(text()).unwrap();
    out_of_place(worker.ready(refuses));
    let frame = WorkerMessage::Ready(refuses).encode().unwrap();
    // Once the Worker has said anything about the attempt, it knows of the lease.
    let (mut gate, worker) = leased();
    gate.receive(&worker.heartbeat().unwrap()).unwrap();
    out_of_place(gate.receive(&frame));
    let (mut gate, _, attach) = attaching();
    gate.receive(&attach).unwrap();
    out_of_place(gate.receive(&frame));
    gate.attached(1).unwrap();
    out_of_place(gate.receive(&frame));
    gate.refuse().unwrap();
    out_of_place(gate.receive(&frame));
}

#[test]
fn a_lease_that_crosses_a_refusal_is_given_back() {
    let (mut gate, mut worker) = greeted();
    let refuses = worker
        .ready(Readiness::Refuses(NotAccepting::Draining))
        .unwrap();
    let lease = grant(&mut gate, 1);
    assert!(matches!(gate.receive(&refuses), Ok(Request::Ready(_))));
    worker.receive(&lease).unwrap();
    let decline = worker.decline().unwrap();
    assert!(worker.is_idle());
    let Ok(Request::Decline(decline)) = gate.receive(&decline) else {
        panic!("no decline");
    };
    assert_eq!(decline.lease, super::sessions::lease(1).lease);
    assert_eq!(decline.reason, NotAccepting::Draining);
    assert!(gate.current().is_none() && !gate.is_idle());
    gate.receive(&worker.ready(Readiness::Accepts).unwrap())
        .unwrap();
    assert!(gate.is_idle());
}

#[test]
fn a_lease_that_crosses_nothing_is_not_given_back() {
    let (_, mut worker) = leased();
    out_of_place(worker.decline());
    let message = |reason| {
        let lease = lease(1).lease;
        WorkerMessage::Decline(gate_link::Decline { lease, reason })
            .encode()
            .unwrap()
    };
    let decline = message(NotAccepting::Draining);
    let (mut gate, _) = greeted();
    out_of_place(gate.receive(&decline));
    let (mut gate, _) = leased();
    out_of_place(gate.receive(&decline));
    // Crossed, but begun.
    let (mut gate, mut worker) = greeted();
    let refuses = worker
        .ready(Readiness::Refuses(NotAccepting::Draining))
        .unwrap();
    let lease = grant(&mut gate, 1);
    gate.receive(&refuses).unwrap();
    worker.receive(&lease).unwrap();
    gate.receive(&worker.heartbeat().unwrap()).unwrap();
    out_of_place(gate.receive(&decline));
    // Crossed, and another one.
    let (mut gate, mut worker) = greeted();
    let refuses = worker
        .ready(Readiness::Refuses(NotAccepting::Draining))
        .unwrap();
    grant(&mut gate, 2);
    gate.receive(&refuses).unwrap();
    let error = gate.receive(&decline);
    assert!(matches!(error, Err(LinkError::WrongTarget { .. })));
}

#[test]
fn a_cancelled_attempt_holds_its_slot_until_it_has_stopped() {
    let (mut gate, mut worker) = leased();
    let crossing = [
        worker.heartbeat().unwrap(),
        worker.activity(Stage::Analyzing).unwrap().unwrap(),
        worker.evidence(batch()).unwrap(),
    ];
    let cancel = gate.cancel(CancelReason::LeaseLost).unwrap();
    assert!(gate.is_cancelling() && gate.current().is_some());
    out_of_place(gate.cancel(CancelReason::Operator));
    out_of_place(gate.lease(lease(2)));
    out_of_place(gate.acknowledge());
    let event = worker.receive(&cancel).unwrap();
    assert_eq!(event, WorkerEvent::Cancel(CancelReason::LeaseLost));
    for frame in crossing {
        assert_eq!(gate.receive(&frame).unwrap(), Request::Crossed);
    }
    out_of_place(worker.heartbeat());
    out_of_place(worker.activity(Stage::Testing));
    out_of_place(worker.result(text()));
    out_of_place(worker.evidence(batch()));
    out_of_place(worker.ready(Readiness::Accepts));
    out_of_place(worker.receive(&cancel));
    ping_while_stopping();
    let (mut gate, mut worker) = leased();
    worker
        .receive(&gate.cancel(CancelReason::Operator).unwrap())
        .unwrap();
    let stopped = worker.cancelled().unwrap();
    assert!(worker.is_idle());
    let request = gate.receive(&stopped).unwrap();
    assert_eq!(request, Request::Stopped(lease(1).lease));
    assert!(gate.is_idle());
    out_of_place(gate.receive(&stopped));
    out_of_place(worker.cancelled());
}

fn ping_while_stopping() {
    let (mut gate, mut worker) = leased();
    worker
        .receive(&gate.cancel(CancelReason::Operator).unwrap())
        .unwrap();
    ping(&mut gate, &mut worker);
    assert!(gate.is_cancelling());
}

#[test]
fn a_result_that_crosses_a_cancel_does_not_count() {
    let (mut gate, mut worker) = leased();
    let result = worker.result(text()).unwrap();
    let cancel = gate.cancel(CancelReason::Operator).unwrap();
    assert_eq!(gate.receive(&result).unwrap(), Request::Crossed);
    worker.receive(&cancel).unwrap();
    gate.receive(&worker.cancelled().unwrap()).unwrap();
    assert!(gate.is_idle() && worker.is_idle());
}

#[test]
fn a_cancel_answers_what_waits_for_an_acknowledgement() {
    for say in [
        |worker: &mut WorkerSession| worker.evidence(batch()).unwrap(),
        |worker: &mut WorkerSession| worker.result(text()).unwrap(),
    ] {
        let (mut gate, mut worker) = leased();
        gate.receive(&say(&mut worker)).unwrap();
        worker
            .receive(&gate.cancel(CancelReason::Operator).unwrap())
            .unwrap();
        out_of_place(gate.acknowledge());
        gate.receive(&worker.cancelled().unwrap()).unwrap();
        assert!(gate.is_idle() && worker.is_idle());
    }
}

#[test]
fn a_cancel_that_crosses_a_decline_changes_nothing_at_the_worker() {
    let (mut gate, mut worker) = greeted();
    let refuses = worker
        .ready(Readiness::Refuses(NotAccepting::Paused))
        .unwrap();
    let lease = grant(&mut gate, 1);
    let cancel = gate.cancel(CancelReason::Operator).unwrap();
    gate.receive(&refuses).unwrap();
    worker.receive(&lease).unwrap();
    let decline = worker.decline().unwrap();
    assert_eq!(worker.receive(&cancel).unwrap(), WorkerEvent::LateCancel);
    assert!(matches!(gate.receive(&decline), Ok(Request::Stopped(_))));
    assert!(worker.is_idle() && gate.current().is_none());
    // Read before the Worker gave it back, it is stopped as any other.
    let (mut gate, mut worker) = greeted();
    let refuses = worker
        .ready(Readiness::Refuses(NotAccepting::Paused))
        .unwrap();
    let lease = grant(&mut gate, 1);
    let cancel = gate.cancel(CancelReason::Operator).unwrap();
    gate.receive(&refuses).unwrap();
    worker.receive(&lease).unwrap();
    worker.receive(&cancel).unwrap();
    out_of_place(worker.decline());
    let stopped = gate.receive(&worker.cancelled().unwrap());
    assert!(matches!(stopped, Ok(Request::Stopped(_))));
}

#[test]
fn a_cancel_names_the_attempt_that_runs() {
    let sample = crate::samples::frames()
        .into_iter()
        .find(|frame| frame.contains("\"type\":\"cancel\""))
        .unwrap();
    let (_, mut worker) = leased();
    let error = worker.receive(sample.as_bytes());
    assert!(matches!(error, Err(LinkError::WrongTarget { .. })));
    let (_, mut worker) = greeted();
    out_of_place(worker.receive(sample.as_bytes()));
    let (_, mut worker, _) = attaching();
    out_of_place(worker.receive(sample.as_bytes()));
    let (mut gate, _) = greeted();
    out_of_place(gate.cancel(CancelReason::Operator));
    let (mut gate, _) = leased();
    let other = WorkerMessage::Cancelled(lease(9).lease).encode().unwrap();
    out_of_place(gate.receive(&other));
    gate.cancel(CancelReason::Operator).unwrap();
    let error = gate.receive(&other);
    assert!(matches!(error, Err(LinkError::WrongTarget { .. })));
    assert!(gate.is_cancelling());
}

#[test]
fn a_late_heartbeat_of_a_cancelled_attempt_costs_nothing() {
    let (mut gate, mut worker) = leased();
    let late = worker.heartbeat().unwrap();
    worker
        .receive(&gate.cancel(CancelReason::Operator).unwrap())
        .unwrap();
    gate.receive(&worker.cancelled().unwrap()).unwrap();
    grant(&mut gate, 2);
    assert_eq!(gate.receive(&late).unwrap(), Request::LateHeartbeat);
    assert_eq!(gate.current(), Some(&lease(2).lease));
}

#[test]
fn after_a_refusal_nothing_has_a_place() {
    for message in [
        WorkerMessage::Pong(1),
        WorkerMessage::Cancelled(lease(1).lease),
        WorkerMessage::Ready(Readiness::Accepts),
    ] {
        let (mut gate, _) = leased();
        gate.ping().unwrap();
        gate.cancel(CancelReason::Operator).unwrap();
        gate.refuse().unwrap();
        out_of_place(gate.receive(&message.encode().unwrap()));
        out_of_place(gate.cancel(CancelReason::Operator));
    }
}
