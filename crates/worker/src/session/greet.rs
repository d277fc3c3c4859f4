//! The beginning of a connection of a slot that still has an attempt.
//!
//! A Gate with job control speaks first, with a ping. The slot claims its attempt before it
//! answers that, and the Gate says whether it goes on here. Another Gate sends nothing until it
//! has a lease for the slot, and by then the attempt is over there: the Gate gives a slot nothing
//! while it holds one.

use std::time::Duration;

use gate_link::WorkerEvent;
use tokio::time::{Instant, sleep_until, timeout};

use super::drive::{Driven, Upkeep};
use super::{ACK_TIMEOUT, Broken, Conversation, GREETING, Work};
use crate::attempt::{Attempt, Progress};
use crate::execution::Executor;
use crate::link::{Incoming, Link};

impl<L: Link, E: Executor> Conversation<'_, L, E> {
    /// Settles what the slot has from before; a lease may come instead of a greeting.
    pub(super) async fn resume(
        &mut self,
        tenant: &mut Option<Attempt>,
    ) -> Result<Option<Work>, Broken> {
        let Some(attempt) = tenant else {
            return Ok(None);
        };
        let work = match self.greeting(attempt).await? {
            WorkerEvent::Ping(number) => {
                self.greeting = true;
                let goes_on = self.claim(attempt).await?;
                let mut let_go = attempt.let_go_at();
                if !goes_on {
                    give_up(attempt, "lost").await;
                    *tenant = None;
                    let_go = None;
                    self.say_whether_ready().await?;
                }
                self.greeting = false;
                self.pong(number, let_go).await?;
                return self.go_on(tenant).await.map(|()| None);
            }
            WorkerEvent::Lease(lease) => Work::CarryOut(lease),
            WorkerEvent::UnacceptableLease(lease) => Work::Refuse(lease.lease, lease.reason),
            _ => return Err(Broken::Unexpected),
        };
        self.proved = true;
        give_up(attempt, "the Gate has leased another job to the slot").await;
        *tenant = None;
        Ok(Some(work))
    }

    /// Waits for the first message; the attempt goes on meanwhile.
    async fn greeting(&mut self, attempt: &mut Attempt) -> Result<WorkerEvent, Broken> {
        let stop = self.serving.stop;
        loop {
            // A slot that drains waits for its job, but not for ever for an audience.
            let only_waits = attempt.progress() == Progress::Done;
            let patience = async {
                stop.drain.cancelled().await;
                sleep_until(Instant::now() + GREETING).await;
            };
            let incoming = tokio::select! {
                biased;
                () = stop.kill.cancelled() => return Err(Broken::Killed),
                incoming = self.link.receive() => incoming?,
                () = patience, if only_waits => return Err(Broken::Drained),
                () = attempt.step(), if !only_waits => continue,
            };
            if let Incoming::Message(message) = incoming {
                return Ok(self.session.receive(&message)?);
            }
        }
    }

    /// Asks whether the attempt goes on here; whether it does.
    async fn claim(&mut self, attempt: &mut Attempt) -> Result<bool, Broken> {
        let Some((suspended, token)) = attempt.claim() else {
            return Ok(false);
        };
        let frame = self.session.attach(suspended, token)?;
        let asked = Instant::now().into_std();
        self.send(frame, None).await?;
        let driven = {
            let answer = self.drive(Upkeep::default(), attempt.adrift());
            timeout(ACK_TIMEOUT, answer).await
        };
        let event = match driven {
            Ok(Ok(Driven::Event(event))) => event,
            Ok(Ok(Driven::Done(never))) => match never {},
            Ok(Err(broken)) => return Err(broken),
            Err(_) => return Err(Broken::NoAck),
        };
        let (job_id, attempt_id) = (&attempt.key.job_id, &attempt.key.attempt_id);
        match event {
            WorkerEvent::Attached { deadline_ms } => {
                self.proved = true;
                tracing::info!(
                    event = "attempt_reattached", %job_id, %attempt_id, deadline_ms,
                    "the attempt goes on over this connection"
                );
                if deadline_ms == 0 {
                    return self.attached_to_an_end(attempt).await;
                }
                let left = Duration::from_millis(deadline_ms);
                let interval = self.serving.heartbeat_interval;
                let patience = attempt.attached(asked, left, interval, self.pings);
                self.link.set_write_patience(patience);
                Ok(true)
            }
            WorkerEvent::Lost => {
                self.proved = true;
                Ok(false)
            }
            _ => Err(Broken::Unexpected),
        }
    }

    /// The Gate has a result of this attempt already: only the same one has a place there.
    async fn attached_to_an_end(&mut self, attempt: &mut Attempt) -> Result<bool, Broken> {
        if attempt.progress() == Progress::Running {
            // There is none that it could have got from here.
            give_up(attempt, "the Gate has a result of a job that still runs").await;
            return Err(Broken::Unexpected);
        }
        attempt.attached_to_its_end();
        Ok(true)
    }
}

/// The attempt is none any more: ends what runs of it, and puts its result aside.
async fn give_up(attempt: &mut Attempt, reason: &str) {
    if attempt.progress() == Progress::Running {
        tracing::warn!(
            job_id = %attempt.key.job_id, attempt_id = %attempt.key.attempt_id, reason,
            "the attempt is none any more, its job is stopped"
        );
        attempt.call_off();
    }
    attempt.settle().await;
    attempt.refused(reason).await;
}
