//! One attempt, as far as this connection carries it.

use std::future::pending;

use forge_domain::{CancelReason, Completion, EvidenceBatch, WorkerFailure};
use gate_link::{Lease, LeaseKey, WorkerEvent};
use tokio::time::Instant;

use super::drive::{Driven, Upkeep};
use super::{ACK_TIMEOUT, Broken, CROSSING, Conversation};
use crate::attempt::{Attempt, Progress, invalid_task, outcome_name};
use crate::execution::Executor;
use crate::lease_clock::LeaseClock;
use crate::link::Link;

/// Why an attempt is not carried on here.
pub(super) enum Halt {
    /// The connection has ended.
    Broken(Broken),
    /// The Gate has cancelled it.
    Cancelled(CancelReason),
}

impl<T: Into<Broken>> From<T> for Halt {
    fn from(broken: T) -> Self {
        Self::Broken(broken.into())
    }
}

impl<L: Link, E: Executor> Conversation<'_, L, E> {
    /// Answers a lease that comes while the Worker drains, so that its job is tried again soon.
    pub(super) async fn hand_back(&mut self, key: &LeaseKey) -> Result<(), Broken> {
        tracing::warn!(
            job_id = %key.job_id, attempt_id = %key.attempt_id,
            "a lease came while the Worker drains, its job is handed back"
        );
        let failed = Completion::Failed(WorkerFailure::ExecutionFailed);
        self.answer(failed).await
    }

    /// Answers a lease that cannot be carried out as described; there is no evidence of it.
    pub(super) async fn refuse(&mut self, key: &LeaseKey, reason: &str) -> Result<(), Broken> {
        tracing::warn!(job_id = %key.job_id, attempt_id = %key.attempt_id, reason, "lease refused");
        self.answer(invalid_task()).await
    }

    async fn answer(&mut self, completion: Completion) -> Result<(), Broken> {
        match self.deliver(completion, Upkeep::default()).await {
            Ok(()) => Ok(()),
            Err(Halt::Broken(broken)) => Err(broken),
            // There is nothing to stop.
            Err(Halt::Cancelled(_)) => self.say_cancelled().await,
        }
    }

    pub(super) async fn carry_out(
        &mut self,
        lease: Lease,
        tenant: &mut Option<Attempt>,
    ) -> Result<(), Broken> {
        let (job_id, attempt_id) = (&lease.lease.job_id, &lease.lease.attempt_id);
        tracing::info!(%job_id, %attempt_id, "lease taken");
        let (ttl, interval) = (lease.policy.lease_ttl(), self.serving.heartbeat_interval);
        if interval >= ttl {
            let reason = format!("a lease of {ttl:?} ends before the heartbeat every {interval:?}");
            return self.refuse(&lease.lease, &reason).await;
        }
        let now = Instant::now().into_std();
        let clock = LeaseClock::new(now, ttl, interval, self.pings);
        self.link.set_write_patience(clock.write_patience());
        *tenant = Some(Attempt::begin(
            self.serving.executor,
            lease,
            self.serving.home.clone(),
            clock,
            &self.serving.stop.cancel,
            self.session.shows_activity(),
        ));
        self.go_on(tenant).await
    }

    /// Carries the attempt on from wherever it is. Afterwards the slot is free, unless the
    /// connection has ended and the attempt outlives it.
    pub(super) async fn go_on(&mut self, tenant: &mut Option<Attempt>) -> Result<(), Broken> {
        let Some(attempt) = tenant else {
            return Ok(());
        };
        match self.see_through(attempt).await {
            Ok(()) => {
                attempt.forget().await;
                let (job_id, attempt_id) = (&attempt.key.job_id, &attempt.key.attempt_id);
                tracing::info!(%job_id, %attempt_id, "result delivered");
                *tenant = None;
                Ok(())
            }
            Err(Halt::Cancelled(reason)) => {
                let stopped = self.stop(attempt, reason).await;
                *tenant = None;
                stopped
            }
            Err(Halt::Broken(broken)) => {
                if !outlives(attempt, &broken).await {
                    *tenant = None;
                }
                Err(broken)
            }
        }
    }

    /// Execution, evidence, clean-up, evidence of the clean-up, result: in this order, each
    /// acknowledged. What an earlier connection carried over is sent again.
    async fn see_through(&mut self, attempt: &mut Attempt) -> Result<(), Halt> {
        let mut stored = 0;
        loop {
            match attempt.progress() {
                Progress::Running => {
                    let stops = attempt.let_go_at().is_some();
                    let (clock, stages, ended) = attempt.job();
                    let upkeep = Upkeep {
                        clock,
                        stops,
                        stages,
                    };
                    uninterrupted(&self.drive(upkeep, ended).await?)?;
                    say_ended(attempt);
                }
                Progress::Ended => {
                    stored = self.prove(attempt, stored).await?;
                    attempt.begin_cleaning();
                }
                Progress::Cleaning => {
                    let stops = attempt.let_go_at().is_some();
                    let (clock, cleaned) = attempt.cleaning();
                    let upkeep = Upkeep {
                        clock,
                        stops,
                        stages: None,
                    };
                    uninterrupted(&self.drive(upkeep, cleaned).await?)?;
                }
                Progress::Done => {
                    self.prove(attempt, stored).await?;
                    let completion = attempt.report().completion.clone();
                    return self.deliver(completion, upkeep(attempt)).await;
                }
            }
        }
    }

    /// Sends the records from number `stored` on; returns how many the Gate has.
    async fn prove(&mut self, attempt: &mut Attempt, stored: usize) -> Result<usize, Halt> {
        let records = &attempt.report().evidence;
        let count = records.len();
        let new = records.get(stored..).unwrap_or_default().to_vec();
        if new.is_empty() {
            return Ok(count);
        }
        let batch = EvidenceBatch::new(new).map_err(Broken::Evidence)?;
        let frame = self.session.evidence(batch)?;
        self.send(frame, attempt.let_go_at()).await?;
        match self.acknowledged(upkeep(attempt)).await? {
            WorkerEvent::EvidenceStored => Ok(count),
            _ => Err(Broken::Unexpected.into()),
        }
    }

    /// Sends the result. A Worker that drains closes with it, so that the Gate knows before it
    /// acknowledges that the slot takes no other lease. A Gate with job control is told that
    /// afterwards, as it hears it of an idle slot: a lease right behind its acknowledgement can
    /// be declined, and nothing but a word says why the slot goes.
    async fn deliver(&mut self, completion: Completion, upkeep: Upkeep<'_>) -> Result<(), Halt> {
        let frame = self.session.result(completion)?;
        let drains = self.drains();
        let acknowledged = if drains && !self.session.controls() {
            self.send_last(Some(frame)).await?;
            // No heartbeat may follow the Close frame. Whether the result was in time is
            // decided when the Gate reads it.
            self.acknowledged(Upkeep::default()).await
        } else {
            self.send(frame, None).await?;
            self.acknowledged(upkeep).await
        };
        let event = match acknowledged {
            Err(Halt::Broken(Broken::Down(down))) if drains => {
                return Err(Broken::Unsure(down).into());
            }
            other => other?,
        };
        match event {
            WorkerEvent::ResultStored => {
                self.proved = true;
                if self.drains() {
                    // A signal between the two: the next lease may be right behind the
                    // acknowledgement.
                    self.crossing = Some(Instant::now() + CROSSING);
                }
                Ok(())
            }
            _ => Err(Broken::Unexpected.into()),
        }
    }

    async fn acknowledged(&mut self, upkeep: Upkeep<'_>) -> Result<WorkerEvent, Halt> {
        let waiting = self.drive(upkeep, pending::<()>());
        match tokio::time::timeout(ACK_TIMEOUT, waiting).await {
            Ok(Ok(Driven::Event(WorkerEvent::Cancel(reason)))) => Err(Halt::Cancelled(reason)),
            Ok(Ok(Driven::Event(event))) => Ok(event),
            Ok(Ok(Driven::Done(()))) => Err(Broken::Unexpected.into()),
            Ok(Err(broken)) => Err(broken.into()),
            Err(_) => Err(Broken::NoAck.into()),
        }
    }

    /// Ends a cancelled attempt: all of its processes, then its folders; then says so.
    async fn stop(&mut self, attempt: &mut Attempt, reason: CancelReason) -> Result<(), Broken> {
        let (job_id, attempt_id) = (attempt.key.job_id, attempt.key.attempt_id);
        tracing::info!(%job_id, %attempt_id, %reason, "the Gate has cancelled the attempt");
        let since = Instant::now();
        attempt.call_off();
        let driven = self.drive(Upkeep::default(), attempt.settle()).await;
        // Whatever became of the connection, nothing is left running.
        attempt.settle().await;
        if reason == CancelReason::LeaseLost && attempt.is_on_disk() {
            // Nobody wanted this end: it came too late.
            attempt.refused("the lease had run out").await;
        }
        attempt.forget().await;
        let ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(event = "attempt_stopped", %job_id, %attempt_id, ms, "attempt stopped");
        match driven? {
            Driven::Done(()) => self.say_cancelled().await,
            Driven::Event(_) => Err(Broken::Unexpected),
        }
    }

    async fn say_cancelled(&mut self) -> Result<(), Broken> {
        self.proved = true;
        let frame = self.session.cancelled()?;
        if self.closed {
            return Ok(());
        }
        self.send(frame, None).await
    }
}

/// Heartbeats go on while an answer is waited for.
fn upkeep(attempt: &mut Attempt) -> Upkeep<'_> {
    Upkeep {
        stops: attempt.let_go_at().is_some(),
        clock: attempt.clock(),
        stages: None,
    }
}

fn uninterrupted(driven: &Driven<()>) -> Result<(), Halt> {
    match driven {
        Driven::Done(()) => Ok(()),
        Driven::Event(WorkerEvent::Cancel(reason)) => Err(Halt::Cancelled(*reason)),
        Driven::Event(_) => Err(Broken::Unexpected.into()),
    }
}

fn say_ended(attempt: &Attempt) {
    let report = attempt.report();
    tracing::info!(
        job_id = %attempt.key.job_id, attempt_id = %attempt.key.attempt_id,
        outcome = outcome_name(&report.completion),
        evidence = report.evidence.len(),
        "job carried out"
    );
}

/// What becomes of an attempt whose connection has ended; whether it goes on.
async fn outlives(attempt: &mut Attempt, broken: &Broken) -> bool {
    let had_ended = attempt.progress() != Progress::Running;
    if attempt.outlives_connection() && !matches!(broken, Broken::Killed) {
        if had_ended && broken.is_final() {
            attempt.settle().await;
            attempt.refused(&broken.to_string()).await;
            return false;
        }
        if matches!(broken, Broken::LeaseLost) {
            attempt.let_go();
        }
        return true;
    }
    abandon(attempt, broken).await;
    false
}

/// Stops the job, waits until nothing of it is left, and cleans up.
pub(crate) async fn abandon(attempt: &mut Attempt, broken: &Broken) {
    let (job_id, attempt_id) = (attempt.key.job_id, attempt.key.attempt_id);
    match (attempt.progress(), broken) {
        (Progress::Running, _) => tracing::warn!(
            %job_id, %attempt_id, reason = %broken, "job abandoned, the attempt will expire"
        ),
        _ if attempt.is_on_disk() => tracing::warn!(
            %job_id, %attempt_id, reason = %broken,
            "a result was not delivered, it is kept for the next start"
        ),
        (_, Broken::Unsure(_)) => tracing::warn!(
            %job_id, %attempt_id, reason = %broken,
            "unless the Gate has stored the result, the attempt will expire"
        ),
        _ => tracing::warn!(
            %job_id, %attempt_id, reason = %broken, "result dropped, the attempt will expire"
        ),
    }
    attempt.call_off();
    attempt.settle().await;
}
