//! What a connection does for job control: greet and ping, stop what has ended elsewhere, go on with
//! an attempt of an earlier connection, and take back a lease.

use std::time::Duration;

use digest_text::Sha256Text;
use forge_domain::{AttemptStatus, CancelReason, Event, JobStatus, NotAccepting, SlotId};
use gate_link::{Attach, AttachToken, LeaseKey, Readiness};
use gate_store::{Attachment, StoreError};
use jiff::Timestamp;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, sleep_until};

use super::connection::{Connection, Next, Running};
use super::incoming::Unstored;
use super::orders::Order;
use super::pulse::{Beat, Pulse};
use super::wire::Wire;
use crate::activity::Performer;
use crate::log;
use crate::presence::Held;
use crate::random::{self, NoRandomness};
use crate::state::{GateState, Refusal};
use crate::timekeeper;

/// What is known of a Worker that offers job control.
#[derive(Debug)]
pub(super) struct Control {
    orders: Receiver<Order>,
    pulse: Pulse,
    /// What the next lease comes with.
    proof: Option<(AttachToken, Sha256Text)>,
    /// When the attempt was ended that the Worker is stopping.
    ended: Option<Instant>,
    /// An attempt of this slot that was over when its Worker claimed it. The Worker stops it before
    /// it answers the greeting.
    over: Option<LeaseKey>,
}

impl Control {
    pub(super) fn new(state: &GateState, slot: &SlotId) -> Self {
        Self {
            orders: state.orders().listen(slot),
            pulse: Pulse::new(state.pace(), Instant::now()),
            proof: None,
            ended: None,
            over: None,
        }
    }

    /// The digest of the token of the next lease.
    pub(super) fn proof(&mut self) -> Result<Sha256Text, NoRandomness> {
        if let Some((_, digest)) = &self.proof {
            return Ok(*digest);
        }
        let token = random::token()?;
        let digest = digest_of(&token);
        self.proof = Some((token, digest));
        Ok(digest)
    }

    /// The token of the lease that was claimed; the next one has another.
    pub(super) fn token(&mut self) -> Option<AttachToken> {
        self.proof.take().map(|(token, _)| token)
    }
}

fn digest_of(token: &AttachToken) -> Sha256Text {
    Sha256Text::of(token.reveal())
}

/// The next order; never one where there is no job control. Cancel safe.
pub(super) async fn next_order(control: &mut Option<Control>) -> Option<Order> {
    match control {
        Some(control) => control.orders.recv().await,
        None => std::future::pending().await,
    }
}

/// Waits for a time, for ever where there is none.
pub(super) async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

impl Connection {
    /// Shows the Worker that this Gate knows job control, before anything else.
    pub(super) async fn greet(&mut self, wire: &mut Wire) -> Next {
        if self.control.is_none() {
            return Next::Continue;
        }
        match self.session.ping() {
            Ok(frame) => self.send(wire, frame).await,
            Err(error) => Next::Refuse(error.into()),
        }
    }

    /// Shows the operator what this connection has to finish before it takes a lease. The store knows
    /// nothing of it: an attempt that is to stop has ended there.
    pub(super) fn show_held(&self) {
        let session = &self.session;
        // A result that is said again is settled before anything new, as the greeting is.
        let repeats = self.repeats && session.current().is_some();
        let held = if session.is_cancelling() {
            Some(Held::Stopping)
        } else if session.controls() && (!session.takes_ping() || repeats) {
            Some(Held::Greeting)
        } else {
            None
        };
        self.state.presence().held(&self.slot.id, held);
    }

    /// When time brings something.
    pub(super) fn next_beat(&self) -> Option<Instant> {
        let pings = self.session.takes_ping();
        self.control
            .as_ref()
            .map(|control| control.pulse.next(pings).0)
    }

    /// What is due by now.
    pub(super) fn due(&self, wire: &mut Wire) -> Option<Beat> {
        let control = self.control.as_ref()?;
        let (now, pings) = (Instant::now(), self.session.takes_ping());
        control.pulse.due(now, pings, false)?;
        // Asked only now: it costs a look at the socket.
        control.pulse.due(now, pings, wire.has_arrived())
    }

    pub(super) async fn beat(&mut self, wire: &mut Wire, beat: Beat) -> Next {
        match beat {
            Beat::Ping => {}
            Beat::NoPong => return Next::End("no pong"),
            Beat::NotStopped => return Next::End("did not stop"),
        }
        match self.session.ping() {
            Ok(frame) => {
                if let Some(control) = &mut self.control {
                    control.pulse.pinged(Instant::now());
                }
                self.send(wire, frame).await
            }
            Err(error) => Next::Refuse(error.into()),
        }
    }

    /// The Worker answered a ping. The first answer says too that nothing runs of an attempt that it
    /// has lost.
    pub(super) async fn ponged(&mut self) -> Result<(), Refusal> {
        let Some(control) = &mut self.control else {
            return Ok(());
        };
        control.pulse.ponged(Instant::now());
        match control.over.take() {
            Some(key) => self.over_and_gone(&key).await,
            None => Ok(()),
        }
    }

    async fn over_and_gone(&self, key: &LeaseKey) -> Result<(), Refusal> {
        // Its deadline may have passed a moment ago, and nobody has ended it yet.
        timekeeper::expire(&self.state, self.state.now()).await?;
        let store = self.state.store();
        let known = self.state.judge(store.events(key.job_id).await)?;
        let mut ended = None;
        for entry in &known {
            match &entry.event {
                Event::Stopped { attempt, .. } if *attempt == key.attempt_id => return Ok(()),
                Event::LeaseExpired { attempt, .. }
                | Event::Cancelled {
                    attempt: Some((attempt, _)),
                } if *attempt == key.attempt_id => ended = Some(entry.at),
                _ => {}
            }
        }
        let took = ended.map(|at| self.state.now().duration_since(at));
        let took = took.and_then(|took| Duration::try_from(took).ok());
        match self.note_stopped(key, took.unwrap_or_default()).await {
            // A clock that was set back: it lives on until it has run out again.
            Err(Refusal::Store(StoreError::Refused(_))) => Ok(()),
            other => other,
        }
    }

    /// Stops what runs, if that is meant: what has ended meanwhile needs no order.
    pub(super) async fn obey(&mut self, wire: &mut Wire, order: Option<Order>) -> Next {
        let Some(order) = order else {
            return Next::End("takes no orders");
        };
        if self.session.is_cancelling() || self.session.current() != Some(&order.lease) {
            return Next::Continue;
        }
        self.cancel(wire, order.reason, order.at).await
    }

    async fn cancel(&mut self, wire: &mut Wire, reason: CancelReason, ended: Instant) -> Next {
        self.forget_activity();
        // A result that did not count has claimed nothing either.
        self.asked = None;
        let key = self.session.current().cloned();
        match (self.session.cancel(reason), key) {
            (Ok(frame), Some(key)) => {
                log::cancel_sent(&key, &self.slot.id, reason);
                self.show_held();
                if let Some(control) = &mut self.control {
                    control.ended = Some(ended);
                    control.pulse.cancelled(Instant::now());
                }
                self.send(wire, frame).await
            }
            (Ok(_), None) => Next::Continue,
            (Err(error), _) => Next::Refuse(error.into()),
        }
    }

    /// Whether the store refused a message because the attempt had ended without its Worker, who
    /// could not know.
    pub(super) fn is_over(&self, error: &StoreError) -> bool {
        use forge_domain::Refused;
        let told = matches!(
            error,
            StoreError::Refused(
                Refused::Superseded
                    | Refused::DeadlinePassed
                    | Refused::Immutable {
                        status: AttemptStatus::Expired | AttemptStatus::Cancelled,
                    }
            )
        );
        told && self.control.is_some() && !self.repeats && self.session.current().is_some()
    }

    /// Answers a message of an attempt that is over: it is to stop. Its order may be under way.
    pub(super) async fn overtaken(&mut self, wire: &mut Wire) -> Next {
        let Some(key) = self.session.current().cloned() else {
            return Next::Continue;
        };
        // The deadline may have passed a moment ago: then it is ended here and now.
        let ended = timekeeper::expire(&self.state, self.state.now()).await;
        let job = match ended {
            Ok(()) => self.state.judge(self.state.store().job(key.job_id).await),
            Err(refusal) => Err(refusal),
        };
        let reason = match job {
            Ok(Some(job)) if job.status == JobStatus::Cancelled => CancelReason::Operator,
            Ok(_) => CancelReason::LeaseLost,
            Err(_) => return Next::End("shutdown"),
        };
        self.cancel(wire, reason, Instant::now()).await
    }

    /// Judges a claim to an attempt of an earlier connection, and returns the answer.
    pub(super) async fn attach(&mut self, attach: Attach) -> Result<Vec<u8>, Unstored> {
        let Attach { lease: key, token } = attach;
        let now = self.state.now();
        let (holder, digest) = (self.holder(&key), digest_of(&token));
        let answer = self.state.store().attach(key.job_id, holder, digest, now);
        let frame = match self.state.judge(answer.await)? {
            Attachment::Live { ordinal, deadline } => {
                let left = milliseconds(now, deadline);
                log::attempt_reattached(&key, &self.slot.id, left);
                self.running = Some(Running {
                    performer: Performer {
                        job: key.job_id,
                        attempt: key.attempt_id,
                        ordinal,
                        slot: self.slot.id.clone(),
                    },
                    deadline,
                });
                self.session.attached(left)
            }
            Attachment::Ended => {
                log::attempt_reattached(&key, &self.slot.id, 0);
                self.repeats = true;
                self.session.attached(0)
            }
            lost @ (Attachment::Over | Attachment::Lost) => {
                if let (Attachment::Over, Some(control)) = (lost, &mut self.control) {
                    control.over = Some(key.clone());
                }
                log::attach_refused(&key, &self.slot.id);
                self.session.lost()
            }
        };
        Ok(frame?)
    }

    pub(super) fn ready(&self, readiness: Readiness) {
        let refuses = match readiness {
            Readiness::Accepts => None,
            Readiness::Refuses(reason) => Some(reason),
        };
        let presence = self.state.presence();
        presence.says(&self.slot.id, refuses, self.state.now());
        log::worker_ready(&self.slot.id, refuses);
    }

    /// A lease was claimed for the slot while its Worker said that it takes none.
    pub(super) async fn keep_back(
        &mut self,
        lease: &gate_store::Lease,
        reason: NotAccepting,
    ) -> Next {
        if let Some(control) = &mut self.control {
            control.proof = None;
        }
        let key = LeaseKey {
            job_id: lease.job,
            attempt_id: lease.attempt,
        };
        match self.take_back(&key, reason).await {
            Ok(()) => Next::Continue,
            Err(_) => Next::End("shutdown"),
        }
    }

    /// Gives a lease that has not begun to another slot.
    pub(super) async fn take_back(
        &mut self,
        key: &LeaseKey,
        reason: NotAccepting,
    ) -> Result<(), Refusal> {
        self.forget_activity();
        let (holder, now) = (self.holder(key), self.state.now());
        let answer = self.state.store().withdraw(key.job_id, holder, reason, now);
        match self.state.judge(answer.await) {
            Ok(_) => log::attempt_withdrawn(key, &self.slot.id, reason),
            // It has ended meanwhile, and nothing of it ever ran.
            Err(Refusal::Store(_)) => return Ok(()),
            Err(refusal) => return Err(refusal),
        }
        self.state.ring(&self.slot.pool);
        Ok(())
    }

    /// Nothing of a cancelled attempt runs any more.
    pub(super) async fn stopped(&mut self, key: &LeaseKey) -> Result<(), Refusal> {
        let ended = self.control.as_mut().and_then(|control| {
            control.pulse.stopped();
            control.ended.take()
        });
        let took = ended.map(|at| at.elapsed()).unwrap_or_default();
        self.note_stopped(key, took).await
    }

    async fn note_stopped(&self, key: &LeaseKey, took: Duration) -> Result<(), Refusal> {
        let (slot, now) = (self.slot.id.clone(), self.state.now());
        let noted = self
            .state
            .store()
            .stopped(key.job_id, key.attempt_id, slot, now);
        self.state.judge(noted.await)?;
        log::attempt_stopped(key, &self.slot.id, took);
        Ok(())
    }
}

/// What is left until the deadline, at least 1: 0 has a meaning of its own.
fn milliseconds(now: Timestamp, deadline: Timestamp) -> u64 {
    let left = deadline.duration_since(now).as_millis();
    u64::try_from(left).unwrap_or_default().max(1)
}
