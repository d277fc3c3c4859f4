//! A slot without an attempt: waits for a lease, says whether it takes one, leaves.

use forge_domain::NotAccepting;
use gate_link::{Readiness, WorkerEvent};
use tokio::time::{Instant, sleep_until, timeout};

use super::{BARRIER, Broken, Conversation, LAST_WORDS, SILENCE, Work};
use crate::execution::Executor;
use crate::link::{Incoming, Link};

impl<L: Link, E: Executor> Conversation<'_, L, E> {
    /// Waits for a lease; leaves when the Worker drains, and when a Gate that pings falls silent:
    /// nothing is sent here that could show that it is gone.
    pub(super) async fn idle(&mut self) -> Result<Work, Broken> {
        let mut guard = self.serving.guard.watch();
        let mut heard = Instant::now();
        loop {
            if self.closed {
                return Err(self.leave().await);
            }
            self.say_whether_ready().await?;
            let (stop, controls) = (self.serving.stop, self.session.controls());
            let incoming = tokio::select! {
                biased;
                // A lease that has come is answered, since its job would wait for the end of
                // its time to live otherwise.
                incoming = self.link.receive() => incoming?,
                () = leaving(stop, controls, self.crossing, self.barrier) => {
                    if controls && self.barrier.is_none() {
                        continue; // says so first
                    }
                    return Err(self.leave().await);
                }
                Ok(()) = guard.changed(), if controls => continue,
                () = sleep_until(heard + SILENCE), if controls => return Err(Broken::Silent),
            };
            heard = Instant::now();
            match incoming {
                Incoming::Pong(number) => {
                    if self.barrier.is_some_and(|(barrier, _)| barrier == number) {
                        return Err(self.leave().await);
                    }
                }
                Incoming::Message(message) => {
                    if let Some(work) = self.hear(&message).await? {
                        return Ok(work);
                    }
                }
            }
        }
    }

    /// Does what a message asks for, or says what work it brings.
    async fn hear(&mut self, message: &[u8]) -> Result<Option<Work>, Broken> {
        // Said before the message is looked at: a lease crosses it, and can be declined.
        self.say_whether_ready().await?;
        let work = match self.session.receive(message)? {
            WorkerEvent::Lease(lease) => Work::CarryOut(lease),
            WorkerEvent::UnacceptableLease(lease) => Work::Refuse(lease.lease, lease.reason),
            WorkerEvent::Ping(number) => {
                self.say_whether_ready().await?;
                self.pong(number, None).await?;
                return Ok(None);
            }
            WorkerEvent::LateCancel => return Ok(None),
            _ => return Err(Broken::Unexpected),
        };
        self.proved = true;
        if let Some(reason) = self.session.refuses() {
            let key = self.session.current();
            tracing::info!(
                event = "lease_declined", job_id = key.map(|key| key.job_id.as_str()),
                attempt_id = key.map(|key| key.attempt_id.as_str()), %reason,
                "a lease crossed the word that the slot takes none, it is given back"
            );
            let frame = self.session.decline()?;
            self.send(frame, None).await?;
            return Ok(None);
        }
        Ok(Some(work))
    }

    /// Tells a Gate that can be told whether the slot takes leases, if that has changed.
    pub(super) async fn say_whether_ready(&mut self) -> Result<(), Broken> {
        if !self.session.controls() || self.closed {
            return Ok(());
        }
        let refuses = if self.drains() {
            Some(NotAccepting::Draining)
        } else if self.serving.guard.is_low().await {
            Some(NotAccepting::DiskLow)
        } else {
            None
        };
        if refuses == self.session.refuses() {
            return Ok(());
        }
        let frame = self
            .session
            .ready(refuses.map_or(Readiness::Accepts, Readiness::Refuses))?;
        self.send(frame, None).await?;
        if refuses == Some(NotAccepting::Draining) {
            // The Gate answers in order: what it sent before it knew comes before the pong.
            let number = self.pings.next();
            self.barrier = Some((number, Instant::now() + BARRIER));
            self.link.ping(number).await?;
        }
        Ok(())
    }

    /// Closes, and reads until the Gate has closed too.
    ///
    /// What is on its way to a Gate that cannot be told of the drain can no longer be answered
    /// then, as nothing may follow a Close frame (RFC 6455 section 5.5.1): each moment of waiting
    /// would be one more in which that Gate may give the slot a job.
    pub(super) async fn leave(&mut self) -> Broken {
        // However it ends, the slot has left.
        drop(timeout(LAST_WORDS, self.close()).await);
        Broken::Drained
    }

    async fn close(&mut self) -> Result<(), Broken> {
        if !self.closed {
            self.send_last(None).await?;
        }
        loop {
            let Incoming::Message(message) = self.link.receive().await? else {
                continue;
            };
            let lease = match self.session.receive(&message)? {
                WorkerEvent::Lease(lease) => lease.lease,
                WorkerEvent::UnacceptableLease(lease) => lease.lease,
                WorkerEvent::Ping(_) | WorkerEvent::LateCancel => continue,
                _ => return Err(Broken::Unexpected),
            };
            tracing::warn!(
                job_id = %lease.job_id, attempt_id = %lease.attempt_id,
                "a lease came after the slot had closed, its attempt will expire"
            );
        }
    }
}

/// Ends when the slot has to do something about a drain.
async fn leaving(
    stop: &crate::stop::Stop,
    controls: bool,
    crossing: Option<Instant>,
    barrier: Option<(u64, Instant)>,
) {
    stop.drain.cancelled().await;
    let until = match barrier {
        Some((_, until)) => Some(until),
        None => crossing.filter(|_| !controls),
    };
    if let Some(until) = until {
        tokio::select! {
            () = stop.kill.cancelled() => {}
            () = sleep_until(until) => {}
        }
    }
}
