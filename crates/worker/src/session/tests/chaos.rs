//! Whatever goes wrong in whatever order: connections that are lost, hang or are refused, a Gate
//! that is away or restarts, cancellations, acknowledgements that get lost. The other end is the
//! Gate's own session machine, with a store of a few lines.

use std::collections::BTreeMap;

use forge_domain::CancelReason;
use gate_link::{GateMessage, GateSession, Lease, Request};

use super::*;
use crate::link::Incoming;

const LEASES: usize = 4;

/// A small deterministic generator (xorshift64*).
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % limit
    }

    fn up_to(&mut self, seconds: u64) -> Duration {
        Duration::from_millis(self.below(seconds * 1000 + 1))
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

#[derive(Debug, PartialEq)]
enum End {
    Result(Completion),
    Expired,
    Cancelled,
}

/// What a Gate remembers.
struct Store {
    live: Option<(LeaseKey, Instant)>,
    ended: BTreeMap<String, End>,
    leases: usize,
    repeated: usize,
    reattached: usize,
}

impl Store {
    fn next_lease(&mut self) -> Lease {
        self.leases += 1;
        let text = controlled().replace(ATTEMPT, &format!("{:032x}", self.leases));
        let GateMessage::Lease(lease) = GateMessage::decode(text.as_bytes()).unwrap() else {
            panic!("no lease")
        };
        self.live = Some((lease.lease.clone(), Instant::now() + TTL));
        *lease
    }

    fn holds(&self, key: &LeaseKey) -> Option<Duration> {
        let (live, deadline) = self.live.as_ref()?;
        let left = deadline.checked_duration_since(Instant::now())?;
        (live == key && !left.is_zero()).then_some(left)
    }

    fn end(&mut self, end: End) {
        if let Some((key, _)) = self.live.take() {
            let known = self.ended.insert(key.attempt_id.to_string(), end);
            assert_eq!(known, None, "an attempt ends once");
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.live.as_ref().map(|(_, deadline)| *deadline)
    }

    /// Ends a lease that has run out: from here on its job is somebody else's.
    fn expire(&mut self, life: &Life) {
        let due = self
            .deadline()
            .is_some_and(|deadline| deadline <= Instant::now());
        if due {
            assert_eq!(running(life), 0, "a job outlives its lease");
            self.end(End::Expired);
        }
    }
}

fn running(life: &Life) -> usize {
    let log = life.log();
    let began = log.iter().filter(|said| **said == "started").count();
    let ended = ["done", "done too late", "cancelled"];
    began - log.iter().filter(|said| ended.contains(said)).count()
}

/// One connection, from its greeting to the end that `draw` has in store for it.
async fn connection(life: &Life, store: &mut Store, draw: &mut Draw) {
    let mut gate = life.connection();
    let query = ConnectQuery {
        activity_version: Some(ActivityVersion::V1),
        control_version: Some(ControlVersion::V1),
        ..ConnectQuery::new(slot())
    };
    let mut session = GateSession::new(&query);
    // The slot may have hung up meanwhile.
    let say = |gate: &Gate, frame: Vec<u8>| {
        gate.outgoing.send(Ok(Incoming::Message(frame))).ok();
    };
    let ends = Instant::now() + draw.up_to(90);
    if draw.chance(10) {
        return; // hangs up before the greeting
    }
    say(&gate, session.ping().unwrap());
    let mut pings = Instant::now() + BEAT;
    let mut cancels = draw.chance(25).then(|| Instant::now() + draw.up_to(60));
    let mut hangs = draw.chance(25).then(|| Instant::now() + draw.up_to(60));
    loop {
        store.expire(life);
        let expired = session.current().is_some_and(|key| {
            let end = store.ended.get(&key.attempt_id.to_string());
            end == Some(&End::Expired)
        });
        if expired && let Ok(frame) = session.cancel(CancelReason::LeaseLost) {
            say(&gate, frame);
        }
        if cancels.is_some_and(|at| at <= Instant::now()) {
            cancels = None;
            if let Ok(frame) = session.cancel(CancelReason::Operator) {
                store.end(End::Cancelled);
                say(&gate, frame);
            }
        }
        if hangs.is_some_and(|at| at <= Instant::now()) {
            hangs = None;
            // Neither reads nor answers, and its leases run on.
            wait(life, store, draw.up_to(45)).await;
            continue;
        }
        if pings <= Instant::now() {
            pings = Instant::now() + BEAT;
            if let Ok(frame) = session.ping() {
                say(&gate, frame);
            }
        }
        if session.is_idle() && store.live.is_none() {
            if store.leases == LEASES {
                return;
            }
            let lease = store.next_lease();
            say(&gate, session.lease(lease).unwrap());
        }
        let next = [store.deadline(), cancels, hangs, Some(pings), Some(ends)];
        let next = next.into_iter().flatten().min().unwrap();
        let sent = tokio::select! {
            sent = gate.sent.recv() => sent.expect("the Worker's end says that it is closed"),
            () = sleep_until(next) => {
                if ends <= Instant::now() {
                    return;
                }
                continue;
            }
        };
        let message = match sent {
            Sent::Message(message) => message,
            Sent::Ping(number) => {
                gate.pong(number);
                continue;
            }
            Sent::Closed(_) => return,
            Sent::Last(_) => panic!("nobody drains"),
        };
        let request = session.receive(message.as_bytes());
        match request.unwrap_or_else(|error| panic!("{error}: {message}")) {
            Request::Heartbeat(key) => {
                if store.holds(&key).is_some() {
                    store.live = Some((key, Instant::now() + TTL));
                }
            }
            Request::Evidence(evidence) => {
                let attempt = evidence.lease.attempt_id.to_string();
                assert!(
                    store.holds(&evidence.lease).is_some() || store.ended.contains_key(&attempt)
                );
                if draw.chance(10) {
                    return; // stored, and never acknowledged
                }
                say(&gate, session.acknowledge().unwrap());
            }
            Request::Result(result) => {
                let attempt = result.lease.attempt_id.to_string();
                if store.holds(&result.lease).is_some() {
                    store.end(End::Result(result.completion));
                } else {
                    let known = &store.ended[&attempt];
                    assert_eq!(*known, End::Result(result.completion), "the same again");
                    store.repeated += 1;
                }
                if draw.chance(30) {
                    return; // stored, and never acknowledged
                }
                say(&gate, session.acknowledge().unwrap());
            }
            Request::Attach(attach) => {
                assert_eq!(attach.token.reveal(), TOKEN);
                let attempt = attach.lease.attempt_id.to_string();
                let frame = if let Some(left) = store.holds(&attach.lease) {
                    store.reattached += 1;
                    session.attached(u64::try_from(left.as_millis()).unwrap().max(1))
                } else if let Some(End::Result(_)) = store.ended.get(&attempt) {
                    session.attached(0)
                } else {
                    session.lost()
                };
                say(&gate, frame.unwrap());
            }
            Request::Stopped(_) => assert_eq!(running(life), 0, "said before it was true"),
            Request::Pong | Request::Crossed | Request::LateHeartbeat | Request::Activity(..) => {}
            Request::Ready(_) | Request::Decline(_) => panic!("{message}"),
        }
    }
}

/// Time in which nobody listens to the slot, and leases run out.
async fn wait(life: &Life, store: &mut Store, time: Duration) {
    let until = Instant::now() + time;
    while let Some(deadline) = store.deadline().filter(|deadline| *deadline <= until) {
        sleep_until(deadline).await;
        store.expire(life);
    }
    sleep_until(until).await;
}

fn job(number: usize, draw: &mut Draw) -> Job {
    let evidence = vec![recorder().event(Reason::CleanupFailed, Duration::from_millis(7))];
    Job {
        takes: draw.up_to(50),
        stops: Duration::from_millis(draw.below(700)),
        stages: vec![
            (draw.up_to(5), Analyzing),
            (draw.up_to(25), Editing),
            (draw.up_to(60), Testing),
        ],
        evidence: if draw.chance(50) { evidence } else { vec![] },
        cleanup: draw.chance(50).then_some(None),
        ..Job::new(0, text(&format!("result {number}")))
    }
}

/// One slot, four leases; returns what was seen of each kind of event.
async fn run(seed: u64) -> [usize; 4] {
    let mut draw = Draw(seed);
    let jobs: VecDeque<_> = (1..=LEASES).map(|number| job(number, &mut draw)).collect();
    let life = Life::new(jobs);
    let mut store = Store {
        live: None,
        ended: BTreeMap::new(),
        leases: 0,
        repeated: 0,
        reattached: 0,
    };
    let mut connections = 0;
    while store.ended.len() < LEASES || !life.files().0.is_empty() || running(&life) > 0 {
        connections += 1;
        assert!(connections < 500, "seed {seed}: it never ends");
        connection(&life, &mut store, &mut draw).await;
        let away = draw.up_to(45);
        if draw.chance(50) {
            // Restarted: nobody served, and what lives gets time to come back.
            sleep(away).await;
            if let Some((_, deadline)) = &mut store.live {
                *deadline = (*deadline).max(Instant::now() + TTL);
            }
        } else {
            if draw.chance(20) {
                store.end(End::Cancelled);
            }
            wait(&life, &mut store, away).await;
        }
    }
    let began = life.log().iter().filter(|said| **said == "started").count();
    assert_eq!(began, LEASES, "each lease is begun once");
    // Only what the Gate has called off or given up can have been moved aside.
    let without = store
        .ended
        .values()
        .filter(|end| !matches!(end, End::Result(_)))
        .count();
    assert!(life.files().1.len() <= without);
    [LEASES - without, without, store.repeated, store.reattached]
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_a_lease_is_begun_once_and_ends_once() {
    let mut seen = [0; 4];
    for seed in 1..=40 {
        let counts = run(seed * 7919).await;
        for (sum, count) in seen.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    // All of it happens, or the test shows nothing.
    assert!(seen.iter().all(|count| *count > 10), "{seen:?}");
}
