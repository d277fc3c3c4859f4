//! One connection of one slot: takes a lease, has it carried out, renews it meanwhile, delivers.
//!
//! The socket is read all the time, also while a job runs: the Gate's pings are answered and a
//! lost connection is noticed at once. A job whose lease cannot be renewed is stopped before
//! the Gate could give it to anybody else. Which messages are allowed when is `gate-link`'s
//! business; this file adds time, cancellation and order of effects.
//!
//! Messages that a later version of the link negotiates (cancel, attach) belong into
//! [`Conversation::drive`], the only place that reads.

use std::future::{Future, pending};
use std::time::Duration;

use forge_domain::{Completion, DomainError, EvidenceBatch, EvidenceRecord, Stage, WorkerFailure};
use gate_link::{ConnectQuery, Lease, LeaseKey, LinkError, WorkerEvent, WorkerSession};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::activity::{self, Reporter, Stages};
use crate::execution::{Control, Execution, Executor, Fence};
use crate::lease_clock::{LeaseClock, Pings};
use crate::link::{Closing, Incoming, Link, LinkDown};
use crate::stop::Stop;

/// How long the Gate may take to acknowledge evidence or a result.
const ACK_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a slot that leaves waits for the Gate to close too.
const LAST_WORDS: Duration = Duration::from_millis(250);
/// How long a slot waits for a lease that the Gate may have sent before it could know that the
/// Worker drains.
const CROSSING: Duration = Duration::from_millis(100);

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    /// The Worker drains and the slot was idle.
    #[error("the Worker is draining")]
    Drained,
    /// The Worker was told to kill what runs.
    #[error("the Worker is being killed")]
    Killed,
    /// The connection is gone.
    #[error("the connection is gone")]
    Down(#[source] LinkDown),
    /// The Worker drains, and the Gate closed before it acknowledged the last result.
    #[error("the connection ended before the Gate acknowledged the last result")]
    Unsure(#[source] LinkDown),
    /// The Gate said something that has no place here, or refused what was sent.
    #[error("the conversation with the Gate failed")]
    Surprise(#[source] LinkError),
    /// The Gate said something while a job was running.
    #[error("the Gate sent a message that nothing waited for")]
    Unexpected,
    /// The records break a rule of the link; nothing was sent.
    #[error("the evidence cannot be sent")]
    Evidence(#[source] DomainError),
    /// The lease could not be renewed in time.
    #[error("the lease could not be renewed in time")]
    LeaseLost,
    /// The Gate left evidence or a result unacknowledged.
    #[error("the Gate acknowledged nothing for {} s", ACK_TIMEOUT.as_secs())]
    NoAck,
}

impl From<LinkDown> for Broken {
    fn from(down: LinkDown) -> Self {
        Self::Down(down)
    }
}

impl From<LinkError> for Broken {
    fn from(error: LinkError) -> Self {
        Self::Surprise(error)
    }
}

/// What a slot needs to serve a connection.
#[derive(Debug)]
pub(crate) struct Serving<'a, E> {
    pub(crate) query: &'a ConnectQuery,
    pub(crate) heartbeat_interval: Duration,
    pub(crate) executor: &'a E,
    pub(crate) stop: &'a Stop,
}

/// Serves one connection until it ends. Returns whether it was good for anything, and why it
/// ended.
pub(crate) async fn serve<L: Link, E: Executor>(
    link: &mut L,
    serving: &Serving<'_, E>,
) -> (bool, Broken) {
    let mut conversation = Conversation {
        link,
        serving,
        session: WorkerSession::new(serving.query),
        pings: Pings::default(),
        proved: false,
        closed: false,
        crossing: None,
    };
    loop {
        let served = match conversation.idle().await {
            Ok(Work::Lease(lease)) if conversation.drains() => {
                conversation.hand_back(&lease.lease).await
            }
            Ok(Work::Lease(lease)) => conversation.carry_out(*lease).await,
            Ok(Work::Refuse(key, reason)) => conversation.refuse(&key, &reason).await,
            Err(broken) => Err(broken),
        };
        if let Err(broken) = served {
            conversation.link.close(closing_of(&broken)).await;
            return (conversation.proved, broken);
        }
    }
}

fn closing_of(broken: &Broken) -> Closing {
    match broken {
        Broken::Drained
        | Broken::Unsure(_)
        | Broken::Surprise(LinkError::Refused)
        | Broken::Killed
        | Broken::LeaseLost => Closing::Drop,
        Broken::Surprise(_) | Broken::Unexpected | Broken::NoAck | Broken::Evidence(_) => {
            Closing::Protocol
        }
        Broken::Down(LinkDown::TooBig) => Closing::TooBig,
        Broken::Down(LinkDown::Binary) => Closing::Protocol,
        Broken::Down(_) => Closing::Drop,
    }
}

enum Work {
    Lease(Box<Lease>),
    Refuse(LeaseKey, String),
}

enum Driven<T> {
    Done(T),
    Event(WorkerEvent),
}

struct Conversation<'a, L, E> {
    link: &'a mut L,
    serving: &'a Serving<'a, E>,
    session: WorkerSession,
    pings: Pings,
    proved: bool,
    /// The Close frame is sent: nothing else can be.
    closed: bool,
    /// Until when a lease may still come that the Gate sent without knowing of the drain.
    crossing: Option<Instant>,
}

/// A lease that is being carried out: its clock, and the same for the job to look at.
struct Held {
    clock: LeaseClock,
    published: watch::Sender<std::time::Instant>,
}

impl Held {
    fn new(clock: LeaseClock) -> (Self, Fence) {
        let (published, fence) = watch::channel(clock.let_go_at());
        (Self { clock, published }, Fence::new(fence))
    }

    fn publish(&self) {
        self.published.send_replace(self.clock.let_go_at());
    }
}

impl<L: Link, E: Executor> Conversation<'_, L, E> {
    /// Waits for a lease; leaves when the Worker drains.
    async fn idle(&mut self) -> Result<Work, Broken> {
        let (drain, crossing) = (&self.serving.stop.drain, self.crossing);
        let leaves = async {
            drain.cancelled().await;
            if let Some(until) = crossing {
                sleep_until(until).await;
            }
        };
        tokio::pin!(leaves);
        loop {
            if self.closed {
                return Err(self.leave().await);
            }
            let incoming = tokio::select! {
                biased;
                // A lease that has come is answered, since its job would wait for the end of
                // its time to live otherwise.
                incoming = self.link.receive() => incoming?,
                () = &mut leaves => return Err(self.leave().await),
            };
            let Incoming::Message(message) = incoming else {
                continue; // a pong that came late
            };
            let work = match self.session.receive(&message)? {
                WorkerEvent::Lease(lease) => Work::Lease(lease),
                WorkerEvent::UnacceptableLease(lease) => Work::Refuse(lease.lease, lease.reason),
                _ => return Err(Broken::Unexpected),
            };
            self.proved = true;
            return Ok(work);
        }
    }

    fn drains(&self) -> bool {
        self.serving.stop.drain.is_cancelled()
    }

    /// Closes, and reads until the Gate has closed too.
    ///
    /// An idle slot does so at once when the Worker drains: each moment of waiting would be one
    /// more in which the Gate may give it a job. What was on its way already can no longer be
    /// answered then, as nothing may follow a Close frame (RFC 6455 section 5.5.1).
    async fn leave(&mut self) -> Broken {
        // However it ends, the slot has left.
        drop(tokio::time::timeout(LAST_WORDS, self.close()).await);
        Broken::Drained
    }

    async fn close(&mut self) -> Result<(), Broken> {
        if !self.closed {
            self.link.send_last(None).await?;
            self.closed = true;
        }
        loop {
            let Incoming::Message(message) = self.link.receive().await? else {
                continue;
            };
            let lease = match self.session.receive(&message)? {
                WorkerEvent::Lease(lease) => lease.lease,
                WorkerEvent::UnacceptableLease(lease) => lease.lease,
                _ => return Err(Broken::Unexpected),
            };
            tracing::warn!(
                job_id = %lease.job_id, attempt_id = %lease.attempt_id,
                "a lease came after the slot had closed, its attempt will expire"
            );
        }
    }

    /// Answers a lease that comes while the Worker drains, so that its job is tried again soon.
    async fn hand_back(&mut self, key: &LeaseKey) -> Result<(), Broken> {
        tracing::warn!(
            job_id = %key.job_id, attempt_id = %key.attempt_id,
            "a lease came while the Worker drains, its job is handed back"
        );
        let failed = Completion::Failed(WorkerFailure::ExecutionFailed);
        self.deliver(failed, None).await
    }

    /// Answers a lease that cannot be carried out as described; there is no evidence of it.
    async fn refuse(&mut self, key: &LeaseKey, reason: &str) -> Result<(), Broken> {
        tracing::warn!(job_id = %key.job_id, attempt_id = %key.attempt_id, reason, "lease refused");
        self.deliver(invalid_task(), None).await
    }

    async fn carry_out(&mut self, lease: Lease) -> Result<(), Broken> {
        let (job_id, attempt_id) = (lease.lease.job_id, lease.lease.attempt_id);
        tracing::info!(%job_id, %attempt_id, "lease taken");
        let ttl = lease.policy.lease_ttl();
        let interval = self.serving.heartbeat_interval;
        if interval >= ttl {
            let reason = format!("a lease of {ttl:?} ends before the heartbeat every {interval:?}");
            return self.refuse(&lease.lease, &reason).await;
        }
        let now = Instant::now().into_std();
        let (mut held, fence) = Held::new(LeaseClock::new(now, ttl, interval, self.pings));
        self.link.set_write_patience(held.clock.write_patience());

        let cancel = self.serving.stop.cancel.child_token();
        let (activity, stages) = activity::line();
        let shows = self.session.shows_activity();
        let control = Control {
            cancel: cancel.clone(),
            fence,
            activity: if shows { activity } else { Reporter::default() },
        };
        // The job has a task of its own, so that nothing it does can starve the heartbeats.
        let mut job = JobTask::start(self.serving.executor.execute(lease, control), cancel);
        let driven = self
            .drive(Some(&mut held), Some(stages), job.finished())
            .await;
        let execution = match driven {
            Ok(Driven::Done(execution)) => execution.unwrap_or_else(Execution::defect),
            Ok(Driven::Event(_)) => return job.abandon(Broken::Unexpected).await,
            Err(broken) => return job.abandon(broken).await,
        };
        tracing::info!(
            %job_id, %attempt_id,
            outcome = outcome_name(&execution.completion),
            evidence = execution.evidence.len(),
            "job carried out"
        );
        self.hand_over(execution, &mut held).await?;
        tracing::info!(%job_id, %attempt_id, "result delivered");
        Ok(())
    }

    /// Evidence, clean-up, evidence of the clean-up, result: in this order, each acknowledged.
    async fn hand_over(&mut self, execution: Execution, held: &mut Held) -> Result<(), Broken> {
        let Execution {
            evidence,
            completion,
            cleanup,
        } = execution;
        let stored = self.prove(evidence, held).await;
        let cleaned = match (cleanup, &stored) {
            (None, _) => Ok(None),
            (Some(cleanup), Ok(())) => {
                // The clean-up goes on even if the connection does not.
                let mut cleanup = JobTask::start(cleanup.run(), CancellationToken::new());
                match self.drive(Some(held), None, cleanup.finished()).await {
                    Ok(Driven::Done(record)) => Ok(record.flatten()),
                    Ok(Driven::Event(_)) => cleanup.let_end(Broken::Unexpected).await,
                    Err(broken) => cleanup.let_end(broken).await,
                }
            }
            (Some(cleanup), Err(_)) => Ok(cleanup.run().await),
        };
        let undelivered = |broken| {
            match broken {
                Broken::Unsure(_) => tracing::warn!(
                    reason = %broken,
                    "unless the Gate has stored the result, the attempt will expire"
                ),
                _ => {
                    tracing::warn!(reason = %broken, "result dropped, the attempt will expire");
                }
            }
            broken
        };
        stored.map_err(undelivered)?;
        let record = cleaned.map_err(undelivered)?;
        self.prove(record.into_iter().collect(), held)
            .await
            .map_err(undelivered)?;
        self.deliver(completion, Some(held))
            .await
            .map_err(undelivered)
    }

    async fn prove(&mut self, records: Vec<EvidenceRecord>, held: &mut Held) -> Result<(), Broken> {
        if records.is_empty() {
            return Ok(());
        }
        let batch = EvidenceBatch::new(records).map_err(Broken::Evidence)?;
        let frame = self.session.evidence(batch)?;
        self.link.send(frame).await?;
        match self.acknowledged(Some(held)).await? {
            WorkerEvent::EvidenceStored => Ok(()),
            _ => Err(Broken::Unexpected),
        }
    }

    /// Sends the result. A Worker that drains closes with it, so that the Gate knows before it
    /// acknowledges that the slot takes no other lease.
    async fn deliver(
        &mut self,
        completion: Completion,
        held: Option<&mut Held>,
    ) -> Result<(), Broken> {
        let frame = self.session.result(completion)?;
        let acknowledged = if self.drains() {
            self.link.send_last(Some(frame)).await?;
            self.closed = true;
            // No heartbeat may follow the Close frame. Whether the result was in time is
            // decided when the Gate reads it.
            match self.acknowledged(None).await {
                Err(Broken::Down(down)) => Err(Broken::Unsure(down)),
                other => other,
            }
        } else {
            self.link.send(frame).await?;
            self.acknowledged(held).await
        };
        match acknowledged? {
            WorkerEvent::ResultStored => {
                self.proved = true;
                if self.drains() {
                    // A signal between the two: the next lease may be right behind the
                    // acknowledgement.
                    self.crossing = Some(Instant::now() + CROSSING);
                }
                Ok(())
            }
            _ => Err(Broken::Unexpected),
        }
    }

    async fn acknowledged(&mut self, held: Option<&mut Held>) -> Result<WorkerEvent, Broken> {
        let waiting = self.drive(held, None, pending::<()>());
        match tokio::time::timeout(ACK_TIMEOUT, waiting).await {
            Ok(Ok(Driven::Event(event))) => Ok(event),
            Ok(Ok(Driven::Done(()))) => Err(Broken::Unexpected),
            Ok(Err(broken)) => Err(broken),
            Err(_) => Err(Broken::NoAck),
        }
    }

    /// Waits for `work` or for a message, keeps the lease alive meanwhile and sends the stages
    /// that the job reaches.
    async fn drive<F: Future>(
        &mut self,
        mut held: Option<&mut Held>,
        mut stages: Option<Stages>,
        work: F,
    ) -> Result<Driven<F::Output>, Broken> {
        tokio::pin!(work);
        loop {
            let clock = held.as_ref().map(|held| &held.clock);
            let let_go = clock.map(LeaseClock::let_go_at);
            let next_heartbeat = clock.map(LeaseClock::next_heartbeat);
            tokio::select! {
                biased;
                () = self.serving.stop.kill.cancelled() => return Err(Broken::Killed),
                () = at(let_go) => return Err(Broken::LeaseLost),
                incoming = self.link.receive() => match incoming? {
                    Incoming::Message(message) => {
                        return Ok(Driven::Event(self.session.receive(&message)?));
                    }
                    Incoming::Pong(number) => if let Some(held) = held.as_deref_mut() {
                        held.clock.answered(number);
                        self.pings = held.clock.pings();
                        held.publish();
                    },
                },
                // Before the end of the job, so that its last stage is not lost.
                stage = next(&mut stages) => self.show(stage, let_go).await?,
                output = &mut work => return Ok(Driven::Done(output)),
                () = at(next_heartbeat) => if let Some(held) = held.as_deref_mut() {
                    self.heartbeat(held).await?;
                },
            }
        }
    }

    /// Sends a stage. Where that fails the job is stopped, as where a heartbeat fails.
    async fn show(
        &mut self,
        stage: Stage,
        let_go: Option<std::time::Instant>,
    ) -> Result<(), Broken> {
        let Some(frame) = self.session.activity(stage)? else {
            return Ok(());
        };
        tokio::select! {
            biased;
            sent = self.link.send(frame) => Ok(sent?),
            () = at(let_go) => Err(Broken::LeaseLost),
        }
    }

    async fn heartbeat(&mut self, held: &mut Held) -> Result<(), Broken> {
        let started = Instant::now().into_std();
        let frame = self.session.heartbeat()?;
        let number = held.clock.heartbeat_starts(started);
        self.pings = held.clock.pings();
        let written = async {
            self.link.send(frame).await?;
            self.link.ping(number).await
        };
        let let_go = Instant::from_std(held.clock.let_go_at());
        match tokio::time::timeout_at(let_go, written).await {
            Ok(done) => done?,
            Err(_) => return Err(Broken::LeaseLost),
        }
        held.clock.heartbeat_written(started);
        held.publish();
        Ok(())
    }
}

/// A piece of work on a task of its own, which is never left behind.
struct JobTask<T> {
    tasks: tokio::task::JoinSet<T>,
    cancel: CancellationToken,
}

impl<T: Send + 'static> JobTask<T> {
    fn start(work: impl Future<Output = T> + Send + 'static, cancel: CancellationToken) -> Self {
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(work);
        Self { tasks, cancel }
    }

    /// What the work came to; nothing if it ended by a defect of this program.
    async fn finished(&mut self) -> Option<T> {
        match self.tasks.join_next().await {
            Some(Ok(output)) => Some(output),
            Some(Err(error)) => {
                tracing::error!(%error, "a job ended by a defect of this program");
                None
            }
            None => None,
        }
    }
}

impl JobTask<Execution> {
    /// Stops the job, waits until nothing of it is left, and cleans up.
    async fn abandon<R>(&mut self, broken: Broken) -> Result<R, Broken> {
        self.cancel.cancel();
        tracing::warn!(reason = %broken, "job abandoned, the attempt will expire");
        if let Some(Execution {
            cleanup: Some(cleanup),
            ..
        }) = self.finished().await
        {
            cleanup.run().await;
        }
        Err(broken)
    }
}

impl JobTask<Option<EvidenceRecord>> {
    /// Lets the clean-up end.
    async fn let_end<R>(&mut self, broken: Broken) -> Result<R, Broken> {
        self.finished().await;
        Err(broken)
    }
}

/// The answer to a task that cannot be carried out.
pub(crate) fn invalid_task() -> Completion {
    Completion::Failed(WorkerFailure::InvalidTask)
}

fn outcome_name(completion: &Completion) -> &'static str {
    match completion {
        Completion::Text { .. } => "text",
        Completion::Candidate { .. } => "candidate",
        Completion::Failed(failure) => failure.code().as_str(),
    }
}

/// The next stage; never, once the job has no more to say.
async fn next(stages: &mut Option<Stages>) -> Stage {
    if let Some(open) = stages {
        if let Some(stage) = open.next().await {
            return stage;
        }
        *stages = None;
    }
    pending().await
}

async fn at(instant: Option<std::time::Instant>) {
    match instant {
        Some(instant) => sleep_until(Instant::from_std(instant)).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests;
