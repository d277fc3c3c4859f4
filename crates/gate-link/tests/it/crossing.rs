//! Both ends of a conversation with job control, with messages under way in both directions at
//! once, connections that are cut, and an owner who cancels at any moment. Whatever crosses: no end
//! is ever surprised, nothing that ended counts, and no lease comes while something else still runs.

use std::collections::VecDeque;

use forge_domain::{CancelReason, NotAccepting, Stage};
use gate_link::{
    AttachToken, ConnectQuery, GateSession, LeaseKey, Readiness, Request, Suspended, WorkerEvent,
    WorkerSession,
};
use proptest::prelude::*;

use crate::sessions::{batch, lease, stage, text};

const OFFER: &str =
    "worker_id=worker-1&slot=3&activity_version=live_activity/v1&control_version=job_control/v1";

#[derive(Debug, Clone, Copy)]
enum Step {
    /// The oldest message that is under way arrives.
    AtGate,
    AtWorker,
    /// The connection is lost, with all that is under way, and made again.
    Cut,
    /// What the Gate does by itself.
    Lease,
    Ping,
    /// The owner cancels the job, or its lease runs out.
    End,
    /// The connection hears of it.
    Order,
    /// What the Worker does by itself.
    Pong,
    Heartbeat,
    Evidence,
    Result,
    Activity(Stage),
    Ready(Option<NotAccepting>),
    /// The tree of a cancelled or lost attempt is gone, or a lease is given back.
    Settle,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let reason = prop::option::of(prop::sample::select(NotAccepting::ALL));
    let step = prop_oneof![
        9 => Just(Step::AtGate),
        9 => Just(Step::AtWorker),
        1 => Just(Step::Cut),
        5 => Just(Step::Lease),
        2 => Just(Step::Ping),
        2 => Just(Step::End),
        2 => Just(Step::Order),
        4 => Just(Step::Pong),
        2 => Just(Step::Heartbeat),
        2 => Just(Step::Evidence),
        3 => Just(Step::Result),
        2 => stage().prop_map(Step::Activity),
        2 => reason.prop_map(Step::Ready),
        4 => Just(Step::Settle),
    ];
    prop::collection::vec(step, 0..150)
}

/// What the Worker has to do before anything else about its attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Duty {
    Nothing,
    /// Stop what was cancelled, and say so.
    Stop,
    /// Stop what was lost; the pong says so.
    StopLost,
    /// Give the lease back.
    GiveBack,
    /// Repeat the result of what has ended.
    Repeat,
}

/// The two ends, what is under way between them, and what their drivers know.
struct Pair {
    gate: GateSession,
    worker: WorkerSession,
    to_gate: VecDeque<Vec<u8>>,
    to_worker: VecDeque<Vec<u8>>,
    /// The store: the live attempt of the slot, and those that ended with a result.
    live: Option<LeaseKey>,
    delivered: Vec<LeaseKey>,
    orders: VecDeque<LeaseKey>,
    number: u32,
    /// The Worker: what runs, what it kept from the last connection, what it has to do.
    runs: Option<LeaseKey>,
    kept: Option<Suspended>,
    duty: Duty,
    pongs: VecDeque<u64>,
    /// Pings of this connection.
    pinged: usize,
}

fn sessions() -> (GateSession, WorkerSession) {
    let query = ConnectQuery::parse(OFFER).unwrap();
    (GateSession::new(&query), WorkerSession::new(&query))
}

fn token() -> AttachToken {
    "0123456789abcdef0123456789abcdef".parse().unwrap()
}

impl Pair {
    fn new() -> Self {
        let (gate, worker) = sessions();
        let mut pair = Self {
            gate,
            worker,
            to_gate: VecDeque::new(),
            to_worker: VecDeque::new(),
            live: None,
            delivered: Vec::new(),
            orders: VecDeque::new(),
            number: 0,
            runs: None,
            kept: None,
            duty: Duty::Nothing,
            pongs: VecDeque::new(),
            pinged: 0,
        };
        pair.step(Step::Ping);
        pair
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::AtGate => {
                if let Some(frame) = self.to_gate.pop_front() {
                    self.at_gate(&frame);
                }
            }
            Step::AtWorker => {
                if let Some(frame) = self.to_worker.pop_front() {
                    self.at_worker(&frame);
                }
            }
            Step::Cut => self.cut(),
            Step::Lease => self.lease(),
            Step::Ping => {
                let may = self.gate.takes_ping();
                let frame = self.gate.ping().ok();
                assert_eq!(frame.is_some(), may || self.pinged == 0);
                self.pinged += usize::from(frame.is_some());
                self.to_worker.extend(frame);
            }
            Step::End => self.orders.extend(self.live.take()),
            Step::Order => self.order(),
            Step::Pong if self.duty != Duty::StopLost => {
                if let Some(n) = self.pongs.front()
                    && let Ok(frame) = self.worker.pong(*n)
                {
                    self.pongs.pop_front();
                    self.to_gate.push_back(frame);
                }
            }
            Step::Settle => self.settle(),
            Step::Ready(reason) => {
                let readiness = reason.map_or(Readiness::Accepts, Readiness::Refuses);
                let idle = self.worker.is_idle() && self.duty != Duty::StopLost;
                if idle && self.worker.controls() && self.kept.is_none() {
                    self.to_gate
                        .push_back(self.worker.ready(readiness).unwrap());
                }
            }
            Step::Result if matches!(self.duty, Duty::Nothing | Duty::Repeat) => {
                self.to_gate.extend(self.worker.result(text()).ok());
            }
            // A Worker that has something to do first says nothing else.
            _ if self.duty != Duty::Nothing => {}
            Step::Heartbeat => self.to_gate.extend(self.worker.heartbeat().ok()),
            Step::Evidence => self.to_gate.extend(self.worker.evidence(batch()).ok()),
            Step::Activity(stage) => {
                self.to_gate
                    .extend(self.worker.activity(stage).ok().flatten());
            }
            Step::Pong | Step::Result => {}
        }
    }

    fn lease(&mut self) {
        if self.live.is_some() || !self.gate.is_idle() {
            assert!(self.gate.is_idle() || self.gate.lease(lease(999)).is_err());
            return;
        }
        self.number += 1;
        let mut lease = lease(self.number);
        lease.attach_token = Some(token());
        lease.activity_version = self.gate.offered_activity();
        self.live = Some(lease.lease.clone());
        self.to_worker.push_back(self.gate.lease(lease).unwrap());
    }

    /// Tells the Worker what the store has ended.
    fn order(&mut self) {
        if let Some(key) = self.orders.pop_front() {
            self.cancel(&key);
        }
    }

    fn cancel(&mut self, key: &LeaseKey) {
        if self.gate.current() == Some(key) && !self.gate.is_cancelling() {
            let frame = self.gate.cancel(CancelReason::Operator).unwrap();
            self.to_worker.push_back(frame);
        }
    }

    fn at_gate(&mut self, frame: &[u8]) {
        let text = String::from_utf8_lossy(frame);
        let request = self.gate.receive(frame);
        let request = request.unwrap_or_else(|error| panic!("{text}: {error}: {:?}", self.gate));
        match request {
            Request::Heartbeat(key) => {
                if self.live.as_ref() != Some(&key) {
                    self.cancel(&key);
                }
            }
            Request::Evidence(evidence) => self.answer(&evidence.lease),
            Request::Result(result) => {
                self.answer(&result.lease);
                if self.live.as_ref() == Some(&result.lease) {
                    self.delivered.extend(self.live.take());
                }
            }
            Request::Attach(attach) => {
                let frame = if self.live.as_ref() == Some(&attach.lease) {
                    self.gate.attached(1_000)
                } else if self.delivered.contains(&attach.lease) {
                    self.gate.attached(0)
                } else {
                    self.gate.lost()
                };
                self.to_worker.push_back(frame.unwrap());
            }
            Request::Decline(decline) => {
                self.live.take_if(|live| *live == decline.lease);
            }
            Request::Stopped(key) => {
                assert_ne!(self.live.as_ref(), Some(&key));
                assert_ne!(self.runs.as_ref(), Some(&key), "it still runs");
            }
            Request::Activity(..)
            | Request::LateHeartbeat
            | Request::Ready(_)
            | Request::Crossed
            | Request::Pong => {}
        }
    }

    /// Answers evidence or a result as the store has it.
    fn answer(&mut self, key: &LeaseKey) {
        if self.live.as_ref() == Some(key) || self.delivered.contains(key) {
            let frame = self.gate.acknowledge().unwrap();
            self.to_worker.push_back(frame);
        } else {
            self.cancel(key);
        }
    }

    fn at_worker(&mut self, frame: &[u8]) {
        let text = String::from_utf8_lossy(frame);
        let event = self.worker.receive(frame);
        let event = event.unwrap_or_else(|error| panic!("{text}: {error}: {:?}", self.worker));
        match event {
            WorkerEvent::Lease(lease) => {
                assert_eq!(self.runs, None, "two attempts on a slot");
                if self.worker.refuses().is_some() {
                    self.duty = Duty::GiveBack;
                } else {
                    self.runs = Some(lease.lease);
                }
            }
            WorkerEvent::ResultStored => {
                self.runs = None;
                self.duty = Duty::Nothing;
            }
            WorkerEvent::Attached { deadline_ms: 0 } => self.duty = Duty::Repeat,
            WorkerEvent::Cancel(_) => self.duty = Duty::Stop,
            WorkerEvent::Lost => self.duty = Duty::StopLost,
            WorkerEvent::Ping(n) => {
                if let Some(suspended) = self.kept.take() {
                    let frame = self.worker.attach(suspended, token()).unwrap();
                    self.to_gate.push_back(frame);
                }
                self.pongs.push_back(n);
            }
            WorkerEvent::Attached { .. }
            | WorkerEvent::EvidenceStored
            | WorkerEvent::LateCancel => {}
            other => panic!("{other:?}"),
        }
    }

    fn settle(&mut self) {
        match std::mem::replace(&mut self.duty, Duty::Nothing) {
            Duty::Stop => {
                self.runs = None;
                self.to_gate.push_back(self.worker.cancelled().unwrap());
            }
            Duty::StopLost => self.runs = None,
            Duty::GiveBack => self.to_gate.push_back(self.worker.decline().unwrap()),
            other => self.duty = other,
        }
    }

    fn cut(&mut self) {
        let (gate, worker) = sessions();
        self.gate = gate;
        let worker = std::mem::replace(&mut self.worker, worker);
        if let Some(suspended) = worker.suspend() {
            self.runs = Some(suspended.lease.clone());
            self.kept = Some(suspended);
        } else if self.kept.is_none() {
            // Nobody asks for it any more: its tree is stopped before the next connect.
            self.runs = None;
        }
        self.duty = Duty::Nothing;
        self.pongs.clear();
        self.pinged = 0;
        self.to_gate.clear();
        self.to_worker.clear();
        self.step(Step::Ping);
    }

    /// Lets everything that is under way arrive, and everybody do what they have to.
    fn drain(&mut self) {
        let rests = |pair: &Self| {
            let empty = pair.to_gate.is_empty() && pair.to_worker.is_empty();
            empty && pair.orders.is_empty() && pair.pongs.is_empty() && pair.duty == Duty::Nothing
        };
        for _ in 0..400 {
            if rests(self) {
                return;
            }
            for step in [
                Step::AtWorker,
                Step::Settle,
                Step::Pong,
                Step::AtGate,
                Step::Order,
            ] {
                self.step(step);
            }
            if self.duty == Duty::Repeat {
                self.step(Step::Result);
            }
        }
        assert!(rests(self));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn whatever_crosses_the_two_ends_always_agree(steps in steps()) {
        let mut pair = Pair::new();
        for step in steps {
            pair.step(step);
        }
        pair.drain();
        prop_assert_eq!(pair.gate.current(), pair.worker.current());
        // A lease that a cut has swallowed runs out.
        if pair.live.as_ref() != pair.gate.current() {
            prop_assert!(pair.gate.current().is_none());
            pair.step(Step::End);
            pair.drain();
        }
        prop_assert_eq!(pair.gate.current(), pair.live.as_ref());
        prop_assert_eq!(pair.gate.refuses(), pair.worker.refuses());
        prop_assert_eq!(
            pair.gate.is_idle(),
            pair.worker.is_idle() && pair.gate.refuses().is_none()
        );
        prop_assert!(pair.gate.takes_ping());
        prop_assert_eq!(pair.gate.unanswered(), 0);
        // The conversation goes on: another attempt comes to its end.
        if pair.live.is_some() {
            pair.step(Step::Result);
            pair.drain();
        }
        pair.step(Step::Ready(None));
        pair.drain();
        pair.step(Step::Lease);
        pair.drain();
        prop_assert!(pair.worker.current().is_some());
        pair.step(Step::Result);
        pair.drain();
        prop_assert!(pair.gate.is_idle() && pair.worker.is_idle());
        prop_assert_eq!(pair.runs, None);
    }
}
