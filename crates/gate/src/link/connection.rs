//! Drives one slot: gives it work when it is idle, stores what it says, and
//! drops it at the first word that has no place. A refusal changes nothing.

use std::sync::Arc;

use forge_domain::{Generation, Holder, PoolId, SlotId};
use gate_link::{GateSession, Lease, LeaseKey, LinkError};
use gate_store::{Answer, ClaimRequest, StoreError};
use jiff::Timestamp;

use super::control::{Control, next_order, until};
use super::wire::Wire;
use crate::activity::Performer;
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
    pub(super) state: GateState,
    pub(super) slot: Slot,
    pub(super) session: GateSession,
    /// The attempt that the slot runs, for its live activity.
    pub(super) running: Option<Running>,
    pub(super) bell: Arc<Bell>,
    /// What the bell had missed when the last result brought no next job.
    pub(super) asked: Option<u64>,
    /// What job control needs, if the Worker offers it.
    pub(super) control: Option<Control>,
    /// The attempt of the slot has ended with a result, which its Worker may say again.
    pub(super) repeats: bool,
}

/// An attempt and the end of its lease as the last heartbeat left it.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) performer: Performer,
    pub(super) deadline: Timestamp,
}

/// How a conversation goes on.
#[derive(Debug)]
pub(super) enum Next {
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
    /// The Worker said something that the slot does not go on waiting after, or is gone.
    Said(Next),
    /// The Gate stops.
    Stopping,
}

/// Why a message is refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
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
        state.presence().connected(&slot.id, state.now());
        let control = session.controls().then(|| Control::new(&state, &slot.id));
        let bell = state.bells().of(&slot.pool).unwrap_or_default();
        let connection = Self {
            state,
            slot,
            session,
            running: None,
            bell,
            asked: None,
            control,
            repeats: false,
        };
        connection.show_held();
        connection
    }

    /// Serves the slot until one side ends it, and says why it ended.
    pub(super) async fn serve(&mut self, mut wire: Wire) -> &'static str {
        let bell = Arc::clone(&self.bell);
        let mut next = self.greet(&mut wire).await;
        loop {
            let refused = match next {
                Next::Continue => {
                    next = self.turn(&mut wire, &bell).await;
                    continue;
                }
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
        // Before the slot can be connected again: what comes then is for the next connection.
        self.state.orders().deaf(&id);
        self.state.presence().disconnected(&id, self.state.now());
        let answer = self
            .state
            .store()
            .disconnect_slot(id.clone(), generation, self.state.now());
        // A refusal means that another session has the slot; a failure stops the Gate.
        drop(self.state.judge(answer.await));
        log::worker_disconnected(&id, reason);
    }

    /// Does the next thing.
    async fn turn(&mut self, wire: &mut Wire, bell: &Arc<Bell>) -> Next {
        self.show_held();
        if let Some(beat) = self.due(wire) {
            return self.beat(wire, beat).await;
        }
        if self.session.is_idle() {
            self.idle(wire, bell).await
        } else {
            self.busy(wire).await
        }
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
        let woken = loop {
            tokio::select! {
                answer = place.claimed() => break Woken::Claimed(answer),
                () = rung.as_mut() => break Woken::Rung,
                incoming = wire.receive() => {
                    let next = self.incoming(wire, incoming).await;
                    // After a pong it keeps its place among those that wait.
                    if !matches!(next, Next::Continue) || !self.session.is_idle() {
                        break Woken::Said(next);
                    }
                }
                () = self.state.stopping().cancelled() => break Woken::Stopping,
                () = until(self.next_beat()) => {
                    if let Some(beat) = self.due(wire) {
                        let next = self.beat(wire, beat).await;
                        if !matches!(next, Next::Continue) {
                            break Woken::Said(next);
                        }
                    }
                }
            }
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
            Woken::Said(next) => next,
            Woken::Stopping if lease.is_none() => Next::End("shutdown"),
            Woken::Claimed(_) | Woken::Rung | Woken::Stopping => Next::Continue,
        };
        match (next, lease) {
            (Next::Continue, Some(lease)) => self.grant(wire, lease).await,
            (next, _) => next,
        }
    }

    /// Waits for what comes next while an attempt runs, or while there is to be none.
    async fn busy(&mut self, wire: &mut Wire) -> Next {
        // An attempt that can be gone on with over another connection keeps no Gate from stopping.
        let stays = self.session.current().is_some() && !self.session.controls();
        let next_beat = self.next_beat();
        tokio::select! {
            biased;
            order = next_order(&mut self.control) => self.obey(wire, order).await,
            incoming = wire.receive() => self.incoming(wire, incoming).await,
            () = self.state.stopping().cancelled(), if !stays => Next::End("shutdown"),
            // What is due is done in the next turn.
            () = until(next_beat) => Next::Continue,
        }
    }

    /// A claim in the name of this slot.
    pub(super) fn request(&mut self) -> Result<ClaimRequest, Next> {
        let made = random::attempt().and_then(|attempt| {
            let attach = self.control.as_mut().map(Control::proof).transpose()?;
            Ok((attempt, attach))
        });
        let (attempt, attach) = made.map_err(|error| {
            self.state.fail(error);
            Next::End("shutdown")
        })?;
        Ok(ClaimRequest {
            slot: self.slot.id.clone(),
            generation: self.slot.generation,
            attempt,
            attach,
        })
    }

    async fn ask(&mut self) -> Result<Option<gate_store::Lease>, Next> {
        let request = self.request()?;
        let answer = self.state.store().claim(request, self.state.now());
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
        if let Some(reason) = self.session.refuses() {
            return self.keep_back(&lease, reason).await;
        }
        match self.begin(lease) {
            Ok(frame) => self.send(wire, frame).await,
            Err(error) => Next::Refuse(error.into()),
        }
    }

    /// Begins an attempt, and returns the frame that tells the Worker.
    pub(super) fn begin(&mut self, lease: gate_store::Lease) -> Result<Vec<u8>, LinkError> {
        self.asked = None;
        self.repeats = false;
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
            attach_token: self.control.as_mut().and_then(Control::token),
            work: lease.work,
            policy: lease.policy.as_ref().clone(),
        };
        self.session.lease(message)
    }

    pub(super) fn forget_activity(&mut self) {
        if let Some(running) = self.running.take() {
            self.state
                .live_activity()
                .forget(&running.performer.attempt);
        }
    }

    pub(super) fn holder(&self, key: &LeaseKey) -> Holder {
        Holder {
            attempt: key.attempt_id,
            slot: self.slot.id.clone(),
            generation: self.slot.generation,
        }
    }

    pub(super) async fn send(&self, wire: &mut Wire, frame: Vec<u8>) -> Next {
        if wire.send(frame).await {
            Next::Continue
        } else {
            Next::End("peer is gone")
        }
    }
}
