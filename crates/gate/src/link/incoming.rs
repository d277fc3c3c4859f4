//! What a Worker says: held against its conversation, stored, and answered.

use forge_domain::{Activity, JobStatus};
use gate_link::{LeaseKey, LinkError, Request};
use gate_store::StoreError;

use super::connection::{Connection, Next, Refused, Running};
use super::wire::{Incoming, Wire};
use crate::activity::Recorded;
use crate::log;
use crate::state::Refusal;

/// What became of a message.
pub(super) enum Stored {
    /// There is nothing to say.
    Silently,
    /// This is to be said.
    Answered(Vec<u8>),
    /// It is to be acknowledged, and then the next job begins.
    Acknowledged(Option<Box<gate_store::Lease>>),
}

/// Why a message was not stored.
#[derive(Debug)]
pub(super) enum Unstored {
    /// The store refused it.
    Store(StoreError),
    /// There is no answer to it.
    Link(LinkError),
    /// The Gate is about to stop.
    Stopping,
}

impl From<Refusal> for Unstored {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Store(error) => Self::Store(error),
            Refusal::Stopping => Self::Stopping,
        }
    }
}

impl From<LinkError> for Unstored {
    fn from(error: LinkError) -> Self {
        Self::Link(error)
    }
}

impl Connection {
    pub(super) async fn incoming(&mut self, wire: &mut Wire, incoming: Incoming) -> Next {
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
        let goes_on = self.session.takes_next()
            && !self.state.stopping().is_cancelled()
            && !wire.has_arrived();
        match self.store(request, goes_on).await {
            Ok(Stored::Silently) => Next::Continue,
            Ok(Stored::Answered(frame)) => self.send(wire, frame).await,
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
            Err(Unstored::Store(error)) if self.is_over(&error) => self.overtaken(wire).await,
            Err(Unstored::Store(error)) => Next::Refuse(Refused::Store(error)),
            Err(Unstored::Link(error)) => Next::Refuse(error.into()),
            Err(Unstored::Stopping) => Next::End("shutdown"),
        }
    }

    /// Does what a message asks for. After a result the slot gets its next job, if it `goes_on`.
    async fn store(&mut self, request: Request, goes_on: bool) -> Result<Stored, Unstored> {
        let now = self.state.now();
        let store = self.state.store();
        match request {
            Request::LateHeartbeat | Request::Crossed => Ok(Stored::Silently),
            Request::Attach(attach) => self.attach(attach).await.map(Stored::Answered),
            Request::Ready(readiness) => {
                self.ready(readiness);
                Ok(Stored::Silently)
            }
            Request::Decline(decline) => {
                self.take_back(&decline.lease, decline.reason).await?;
                Ok(Stored::Silently)
            }
            Request::Stopped(key) => {
                self.stopped(&key).await?;
                Ok(Stored::Silently)
            }
            Request::Pong => {
                self.ponged().await?;
                Ok(Stored::Silently)
            }
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
                    let next = self.request().map_err(|_stops| Unstored::Stopping)?;
                    let store = self.state.store();
                    let answer =
                        store.complete_and_claim(key.job_id, holder, completion, next, now);
                    self.state.judge(answer.await)?
                } else {
                    let answer = store.complete(key.job_id, holder, completion, now);
                    (self.state.judge(answer.await)?, None)
                };
                self.forget_activity();
                self.repeats = false;
                if let Some(at) = completed.job.retry_at {
                    self.state.bells().due(at);
                }
                log::completed(&completed, &key.attempt_id, &self.slot.id);
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
}
