//! Drives one slot: gives it work when it is idle, stores what it says, and
//! drops it at the first word that has no place. A refusal changes nothing.

use std::sync::Arc;

use forge_domain::{Activity, Generation, Holder, JobStatus, PoolId, SlotId};
use gate_link::{GateSession, Lease, LeaseKey, LinkError, Request};
use gate_store::{Answer, ClaimRequest, StoreError};
use jiff::Timestamp;

use super::wire::{Incoming, Wire};
use crate::activity::{Performer, Recorded};
use crate::log;
use crate::random;
use crate::state::{GateState, Refusal};
use crate::wake::Bell;

/// A slot and its session.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) id: SlotId,
    pub(super) pool: PoolId,
    pub(super) generation: Generation,
}

/// The slot's conversation.
#[derive(Debug)]
pub(super) struct Connection {
    state: GateState,
    slot: Slot,
    session: GateSession,
    /// The attempt that the slot runs, for its live activity.
    running: Option<Running>,
    bell: Arc<Bell>,
    /// What the bell had missed when the last result brought no next job.
    asked: Option<u64>,
}

/// An attempt and the end of its lease as the last heartbeat left it.
#[derive(Debug)]
struct Running {
    performer: Performer,
    deadline: Timestamp,
}

/// How a conversation goes on.
enum Next {
    /// It does.
    Continue,
    /// The peer is gone, or the Gate stops.
    End(&'static str),
    /// The last message is refused.
    Refuse(Refused),
}

/// What woke an idle slot.
enum Woken {
    /// Somebody claimed a job for it.
    Claimed(Option<Answer<Option<gate_store::Lease>>>),
    /// There may be work.
    Rung,
    /// The Worker said something, or is gone.
    Said(Incoming),
    /// The Gate stops.
    Stopping,
}

/// What became of a message.
enum Stored {
    /// There is nothing to say.
    Silently,
    /// It is to be acknowledged, and then the next job begins.
    Acknowledged(Option<Box<gate_store::Lease>>),
}

/// Why a message is refused.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("the message is not text")]
    NotText,
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error(transparent)]
    Store(StoreError),
}

impl Connection {
    pub(super) fn new(state: GateState, slot: Slot, session: GateSession) -> Self {
        log::worker_connected(&slot.id);
        let bell = state.bells().of(&slot.pool).unwrap_or_default();
        Self {
            state,
            slot,
            session,
            running: None,
            bell,
            asked: None,
        }
    }

    /// Serves the slot until one side ends it, and says why it ended.
    pub(super) async fn serve(&mut self, mut wire: Wire) -> &'static str {
        let bell = Arc::clone(&self.bell);
        loop {
            let next = if self.session.is_idle() {
                self.idle(&mut wire, &bell).await
            } else {
                self.busy(&mut wire).await
            };
            let refused = match next {
                Next::Continue => continue,
                Next::End("message too large") => {
                    wire.too_large().await;
                    return "message too large";
                }
                Next::End("shutdown") => {
                    wire.going_away().await;
                    return "shutdown";
                }
                Next::End("peer is gone") => {
                    wire.gone().await;
                    return "peer is gone";
                }
                Next::End(reason) => return reason,
                Next::Refuse(refused) => refused,
            };
            log::message_refused(&self.slot.id, &refused);
            if let Ok(frame) = self.session.refuse() {
                wire.send(frame).await;
            }
            wire.drop_gently().await;
            return "message refused";
        }
    }

    /// Frees the slot. The lease it may hold runs on to its deadline.
    pub(super) async fn disconnect(mut self, reason: &'static str) {
        self.forget_activity();
        let Slot { id, generation, .. } = self.slot;
        let answer = self
            .state
            .store()
            .disconnect_slot(id.clone(), generation, self.state.now());
        // A refusal means that another session has the slot; a failure stops the Gate.
        drop(self.state.judge(answer.await));
        log::worker_disconnected(&id, reason);
    }

    async fn idle(&mut self, wire: &mut Wire, bell: &Arc<Bell>) -> Next {
        if self.state.stopping().is_cancelled() {
            return Next::End("shutdown");
        }
        // What the Worker has said comes first: one that has said goodbye gets no lease.
        if wire.has_arrived() {
            let incoming = wire.receive().await;
            return self.incoming(wire, incoming).await;
        }
        // Waits before it asks: work that arrives in between is claimed for it.
        let mut rung = std::pin::pin!(bell.everybody().notified());
        rung.as_mut().enable();
        let mut place = match self.request() {
            Ok(request) => bell.wait(request),
            Err(next) => return next,
        };
        let own = if self.asked.take() == Some(bell.missed()) {
            None
        } else {
            match self.ask().await {
                Ok(lease) => lease,
                Err(next) => return next,
            }
        };
        if let Some(lease) = own {
            // Who claimed for this slot in the meantime got nothing; the next one may.
            if place.leave().is_some() {
                self.state.ring(&self.slot.pool);
            }
            return self.grant(wire, lease).await;
        }
        let woken = tokio::select! {
            answer = place.claimed() => Woken::Claimed(answer),
            () = rung => Woken::Rung,
            incoming = wire.receive() => Woken::Said(incoming),
            () = self.state.stopping().cancelled() => Woken::Stopping,
        };
        let (claimed, woken) = match woken {
            Woken::Claimed(answer) => (answer, Woken::Rung),
            // A claim that was made in its name stands, whatever else has woken it.
            other => (place.leave(), other),
        };
        let lease = match claimed {
            None => None,
            Some(answer) => match self.claimed(answer).await {
                Ok(lease) => lease,
                Err(next) => return next,
            },
        };
        let next = match woken {
            Woken::Said(incoming) => self.incoming(wire, incoming).await,
            Woken::Stopping if lease.is_none() => Next::End("shutdown"),
            Woken::Claimed(_) | Woken::Rung | Woken::Stopping => Next::Continue,
        };
        match (next, lease) {
            (Next::Continue, Some(lease)) => self.grant(wire, lease).await,
            (next, _) => next,
        }
    }

    async fn busy(&mut self, wire: &mut Wire) -> Next {
        let incoming = wire.receive().await;
        self.incoming(wire, incoming).await
    }

    /// A claim in the name of this slot.
    fn request(&self) -> Result<ClaimRequest, Next> {
        let attempt = random::attempt().map_err(|error| {
            self.state.fail(error);
            Next::End("shutdown")
        })?;
        Ok(ClaimRequest {
            slot: self.slot.id.clone(),
            generation: self.slot.generation,
            attempt,
            attach: None,
        })
    }

    async fn ask(&self) -> Result<Option<gate_store::Lease>, Next> {
        let answer = self.state.store().claim(self.request()?, self.state.now());
        self.claimed(answer).await
    }

    async fn claimed(
        &self,
        answer: Answer<Option<gate_store::Lease>>,
    ) -> Result<Option<gate_store::Lease>, Next> {
        self.state
            .judge(answer.await)
            .map_err(|refusal| match refusal {
                Refusal::Store(_) => Next::End("superseded"),
                Refusal::Stopping => Next::End("shutdown"),
            })
    }

    async fn grant(&mut self, wire: &mut Wire, lease: gate_store::Lease) -> Next {
        match self.begin(lease) {
            Ok(frame) => self.send(wire, frame).await,
            Err(error) => Next::Refuse(error.into()),
        }
    }

    /// Begins an attempt, and returns the frame that tells the Worker.
    fn begin(&mut self, lease: gate_store::Lease) -> Result<Vec<u8>, LinkError> {
        self.asked = None;
        self.state.bells().due(lease.deadline);
        log::attempt_leased(&lease.job, &lease.attempt, &self.slot.id);
        self.running = Some(Running {
            performer: Performer {
                job: lease.job,
                attempt: lease.attempt,
                ordinal: lease.ordinal,
                slot: self.slot.id.clone(),
            },
            deadline: lease.deadline,
        });
        let message = Lease {
            lease: LeaseKey {
                job_id: lease.job,
                attempt_id: lease.attempt,
            },
            activity_version: self.session.offered_activity(),
            attach_token: None,
            work: lease.work,
            policy: lease.policy.as_ref().clone(),
        };
        self.session.lease(message)
    }

    async fn incoming(&mut self, wire: &mut Wire, incoming: Incoming) -> Next {
        let text = match incoming {
            Incoming::Text(text) => text,
            Incoming::NotText => return Next::Refuse(Refused::NotText),
            Incoming::TooLarge => return Next::End("message too large"),
            Incoming::Gone => return Next::End("peer is gone"),
        };
        let request = match self.session.receive(text.as_bytes()) {
            Ok(request) => request,
            Err(error) => return Next::Refuse(error.into()),
        };
        // Who has said more than its result is heard first.
        let goes_on = !self.state.stopping().is_cancelled() && !wire.has_arrived();
        match self.store(request, goes_on).await {
            Ok(Stored::Silently) => Next::Continue,
            Ok(Stored::Acknowledged(next)) => {
                let ack = self.session.acknowledge();
                let lease = next.map(|lease| self.begin(*lease)).transpose();
                let sent = match (ack, lease) {
                    (Ok(ack), Ok(None)) => wire.send(ack).await,
                    (Ok(ack), Ok(Some(lease))) => wire.send_both(ack, lease).await,
                    (Err(error), _) | (_, Err(error)) => return Next::Refuse(error.into()),
                };
                if sent {
                    Next::Continue
                } else {
                    Next::End("peer is gone")
                }
            }
            Err(Refusal::Store(error)) => Next::Refuse(Refused::Store(error)),
            Err(Refusal::Stopping) => Next::End("shutdown"),
        }
    }

    /// Does what a message asks for. After a result the slot gets its next job, if it `goes_on`.
    async fn store(&mut self, request: Request, goes_on: bool) -> Result<Stored, Refusal> {
        let now = self.state.now();
        let store = self.state.store();
        match request {
            Request::LateHeartbeat
            | Request::Attach(_)
            | Request::Ready(_)
            | Request::Decline(_)
            | Request::Stopped(_)
            | Request::Crossed
            | Request::Pong => Ok(Stored::Silently),
            Request::Heartbeat(key) => {
                let holder = self.holder(&key);
                let answer = store.heartbeat(key.job_id, holder, now).await;
                let deadline = self.state.judge(answer)?;
                if let Some(running) = &mut self.running {
                    running.deadline = deadline;
                }
                self.state.live_activity().extend(&key.attempt_id, deadline);
                Ok(Stored::Silently)
            }
            Request::Activity(key, activity) => {
                self.show(&key, activity).await?;
                Ok(Stored::Silently)
            }
            Request::Evidence(evidence) => {
                let key = evidence.lease;
                let records = evidence.batch.records().len();
                let holder = self.holder(&key);
                let answer = store.bind_evidence(key.job_id, holder, evidence.batch, now);
                self.state.judge(answer.await)?;
                log::evidence_bound(&key.job_id, &key.attempt_id, &self.slot.id, records);
                Ok(Stored::Acknowledged(None))
            }
            Request::Result(result) => {
                let key = result.lease;
                let holder = self.holder(&key);
                let completion = result.completion;
                let (completed, lease) = if goes_on {
                    self.asked = Some(self.bell.missed());
                    let next = self.request().map_err(|_stops| Refusal::Stopping)?;
                    let answer =
                        store.complete_and_claim(key.job_id, holder, completion, next, now);
                    self.state.judge(answer.await)?
                } else {
                    let answer = store.complete(key.job_id, holder, completion, now);
                    (self.state.judge(answer.await)?, None)
                };
                self.forget_activity();
                if let Some(at) = completed.job.retry_at {
                    self.state.bells().due(at);
                }
                log::completed(&completed.job, &key.attempt_id, &self.slot.id);
                Ok(Stored::Acknowledged(lease.map(Box::new)))
            }
        }
    }

    /// Shows that the attempt has reached a stage. An attempt that is over has none.
    async fn show(&self, key: &LeaseKey, activity: Activity) -> Result<(), Refusal> {
        let refused =
            |reason: forge_domain::Refused| Err(Refusal::Store(StoreError::Refused(reason)));
        let Some(Running {
            performer,
            deadline,
        }) = &self.running
        else {
            return refused(forge_domain::Refused::Superseded);
        };
        let table = self.state.live_activity();
        match table.record(performer, activity, *deadline, self.state.now()) {
            Recorded::Shown => {}
            Recorded::Dropped(total) => {
                log::activity_dropped(&key.attempt_id, &self.slot.id, total);
            }
            Recorded::Expired => return refused(forge_domain::Refused::DeadlinePassed),
            // The session has refused what does not go forward.
            Recorded::OutOfOrder => {}
        }
        // Whoever ends the lease forgets its activity afterwards, so what was recorded before
        // this look is either of a running attempt or forgotten here.
        let job = self.state.judge(self.state.store().job(key.job_id).await)?;
        let runs = job.is_some_and(|job| {
            job.status == JobStatus::Leased && job.attempt_id == Some(key.attempt_id)
        });
        if runs {
            return Ok(());
        }
        table.forget(&key.attempt_id);
        refused(forge_domain::Refused::Superseded)
    }

    fn forget_activity(&mut self) {
        if let Some(running) = self.running.take() {
            self.state
                .live_activity()
                .forget(&running.performer.attempt);
        }
    }

    fn holder(&self, key: &LeaseKey) -> Holder {
        Holder {
            attempt: key.attempt_id,
            slot: self.slot.id.clone(),
            generation: self.slot.generation,
        }
    }

    async fn send(&self, wire: &mut Wire, frame: Vec<u8>) -> Next {
        if wire.send(frame).await {
            Next::Continue
        } else {
            Next::End("peer is gone")
        }
    }
}
