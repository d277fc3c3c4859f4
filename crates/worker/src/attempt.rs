//! One attempt, from its lease to the acknowledged result, over as many connections as it takes.
//!
//! ```text
//! running ──job ends──► ended ──evidence stored, or no connection──► cleaning ──► done
//! ```
//!
//! Without a connection it goes on by itself as far as `done` ([`Attempt::adrift`]); its lease
//! clock runs on, and stops the job before the lease could be given away. Every step is a task
//! of its own and every wait for one can be given up and begun anew, so whoever holds the attempt
//! may listen to other things meanwhile.
//!
//! An attempt whose lease came with a token is kept on the disk once it has ended. One that was
//! stopped is not: the Gate asked for that, or learns nothing from it but that it failed.

use std::convert::Infallible;
use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use forge_domain::{Completion, EvidenceRecord, SlotId, WorkerFailure};
use gate_link::{AttachToken, Lease, LeaseKey, Suspended};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::activity::{self, Reporter, Stages};
use crate::execution::{CleanUp, Control, Execution, Executor, Fence};
use crate::kept::{Kept, Report};
use crate::lease_clock::{LeaseClock, Pings};
use crate::results::Results;

/// What an attempt belongs to.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    pub(crate) slot: SlotId,
    pub(crate) results: Arc<Results>,
}

/// One attempt.
pub(crate) struct Attempt {
    pub(crate) key: LeaseKey,
    home: Home,
    token: Option<AttachToken>,
    ttl: Duration,
    clock: Option<Held>,
    stages: Option<Stages>,
    stage: Stage,
    report: Report,
    /// Where the conversation stood when the connection ended.
    suspended: Option<Suspended>,
    /// Ends the job.
    cancel: CancellationToken,
    /// Nothing of it is worth keeping.
    called_off: CancellationToken,
    on_disk: bool,
}

enum Stage {
    Running(JobTask<(Execution, bool)>),
    Ended(Option<Box<dyn CleanUp>>),
    Cleaning(JobTask<Option<EvidenceRecord>>),
    Done,
}

/// How far an attempt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The job runs.
    Running,
    /// It has ended; what it left is still there.
    Ended,
    /// What it left is being removed.
    Cleaning,
    /// Only its report is left.
    Done,
}

/// A lease that is being carried out: its clock, and the same for the job to look at.
pub(crate) struct Held {
    pub(crate) clock: LeaseClock,
    published: watch::Sender<std::time::Instant>,
}

impl Held {
    fn new(clock: LeaseClock) -> Self {
        let (published, _) = watch::channel(clock.let_go_at());
        Self { clock, published }
    }

    fn fence(&self) -> Fence {
        Fence::new(self.published.subscribe())
    }

    pub(crate) fn publish(&self) {
        self.published.send_replace(self.clock.let_go_at());
    }
}

impl Attempt {
    /// Begins to carry out a lease.
    pub(crate) fn begin<E: Executor>(
        executor: &E,
        lease: Lease,
        home: Home,
        clock: LeaseClock,
        stop: &CancellationToken,
        shows_activity: bool,
    ) -> Self {
        let (key, ttl) = (lease.lease.clone(), lease.policy.lease_ttl());
        let token = lease.attach_token.clone();
        let held = Held::new(clock);
        let (cancel, called_off) = (stop.child_token(), CancellationToken::new());
        let (reporter, stages) = activity::line();
        let control = Control {
            cancel: cancel.clone(),
            fence: held.fence(),
            activity: if shows_activity {
                reporter
            } else {
                Reporter::default()
            },
        };
        let keeper = token.clone().map(|token| Keeper {
            home: home.clone(),
            key: key.clone(),
            token,
            ttl,
            called_off: called_off.clone(),
        });
        let work = executor.execute(lease, control);
        let job = async move {
            let execution = work.await;
            let kept = match &keeper {
                Some(keeper) => {
                    keeper
                        .keep(&execution.evidence, &execution.completion)
                        .await
                }
                None => false,
            };
            (execution, kept)
        };
        Self {
            key,
            home,
            token,
            ttl,
            clock: Some(held),
            stages: Some(stages),
            stage: Stage::Running(JobTask::start(job)),
            report: Report {
                evidence: Vec::new(),
                completion: Execution::defect().completion,
            },
            suspended: None,
            cancel,
            called_off,
            on_disk: false,
        }
    }

    /// What a predecessor of this process left.
    pub(crate) fn restored(kept: Kept, results: Arc<Results>) -> Self {
        Self {
            suspended: Some(Suspended::done(kept.lease.clone())),
            key: kept.lease,
            home: Home {
                slot: kept.slot,
                results,
            },
            token: Some(kept.token),
            ttl: kept.ttl,
            clock: None,
            stages: None,
            stage: Stage::Done,
            report: kept.report,
            cancel: CancellationToken::new(),
            called_off: CancellationToken::new(),
            on_disk: true,
        }
    }

    pub(crate) const fn progress(&self) -> Progress {
        match self.stage {
            Stage::Running(_) => Progress::Running,
            Stage::Ended(_) => Progress::Ended,
            Stage::Cleaning(_) => Progress::Cleaning,
            Stage::Done => Progress::Done,
        }
    }

    /// What is to be delivered, so far.
    pub(crate) const fn report(&self) -> &Report {
        &self.report
    }

    /// Whether it goes on without its connection.
    pub(crate) const fn outlives_connection(&self) -> bool {
        self.token.is_some()
    }

    /// Whether its result is on the disk.
    pub(crate) const fn is_on_disk(&self) -> bool {
        self.on_disk
    }

    /// Whether it was stopped, so that its end says nothing.
    pub(crate) fn is_called_off(&self) -> bool {
        self.called_off.is_cancelled()
    }

    /// What a new connection claims it with.
    pub(crate) fn claim(&self) -> Option<(Suspended, AttachToken)> {
        let suspended = self
            .suspended
            .clone()
            .unwrap_or_else(|| Suspended::done(self.key.clone()));
        Some((suspended, self.token.clone()?))
    }

    /// The connection has ended there.
    pub(crate) fn suspend(&mut self, conversation: Option<Suspended>) {
        if let Some(suspended) = conversation {
            self.suspended = Some(suspended);
        }
    }

    /// It goes on over a new connection, and its lease holds for `left` since it was `asked`.
    /// Returns how long written bytes may stay unacknowledged there.
    pub(crate) fn attached(
        &mut self,
        asked: std::time::Instant,
        left: Duration,
        interval: Duration,
        pings: Pings,
    ) -> Duration {
        let held = self
            .clock
            .get_or_insert_with(|| Held::new(LeaseClock::new(asked, self.ttl, interval, pings)));
        held.clock.attached(asked, left, pings);
        held.publish();
        held.clock.write_patience()
    }

    /// It has ended at the Gate too: there is no lease to renew.
    pub(crate) fn attached_to_its_end(&mut self) {
        self.clock = None;
    }

    /// When to let go unless the lease is renewed before. A result that is kept needs no lease
    /// to be carried to the Gate.
    pub(crate) fn let_go_at(&self) -> Option<std::time::Instant> {
        let safe = !matches!(self.stage, Stage::Running(_)) && self.token.is_some();
        self.clock
            .as_ref()
            .filter(|_| !safe && !self.is_called_off())
            .map(|held| held.clock.let_go_at())
    }

    /// The running job: its clock, the stages that it reaches, and its end.
    pub(crate) fn job(
        &mut self,
    ) -> (
        Option<&mut Held>,
        Option<&mut Stages>,
        impl Future<Output = ()>,
    ) {
        let ended = Self::job_ended(&mut self.stage, &mut self.report, &mut self.on_disk);
        (self.clock.as_mut(), self.stages.as_mut(), ended)
    }

    /// The removal of what the job left: the clock meanwhile, and its end.
    pub(crate) fn cleaning(&mut self) -> (Option<&mut Held>, impl Future<Output = ()>) {
        let cleaned = Self::cleaned(&mut self.stage, &mut self.report);
        (self.clock.as_mut(), cleaned)
    }

    /// The clock.
    pub(crate) const fn clock(&mut self) -> Option<&mut Held> {
        self.clock.as_mut()
    }

    /// Begins to remove what the job left.
    pub(crate) fn begin_cleaning(&mut self) {
        let Stage::Ended(cleanup) = &mut self.stage else {
            return;
        };
        self.stage = match cleanup.take() {
            None => Stage::Done,
            Some(cleanup) => {
                let keeper = self.keeper();
                let Report {
                    mut evidence,
                    completion,
                } = self.report.clone();
                Stage::Cleaning(JobTask::start(async move {
                    let record = cleanup.run().await?;
                    evidence.push(record.clone());
                    if let Some(keeper) = keeper {
                        keeper.keep(&evidence, &completion).await;
                    }
                    Some(record)
                }))
            }
        };
    }

    /// Goes on without a connection; never returns.
    pub(crate) async fn adrift(&mut self) -> Infallible {
        loop {
            self.step().await;
        }
    }

    /// Goes one step further without a connection; never, once it is done.
    pub(crate) async fn step(&mut self) {
        let let_go = self.let_go_at();
        match self.progress() {
            Progress::Running => tokio::select! {
                biased;
                () = at(let_go) => self.let_go(),
                () = Self::job_ended(&mut self.stage, &mut self.report, &mut self.on_disk) => {}
            },
            Progress::Ended => self.begin_cleaning(),
            Progress::Cleaning => Self::cleaned(&mut self.stage, &mut self.report).await,
            Progress::Done => pending().await,
        }
    }

    /// The lease could not be renewed: ends the job before it could be given to another. Its
    /// failure is delivered if the Gate still wants it, but it is not worth a file.
    pub(crate) fn let_go(&mut self) {
        if self.progress() == Progress::Running && !self.is_called_off() {
            tracing::warn!(
                job_id = %self.key.job_id, attempt_id = %self.key.attempt_id,
                "the lease could not be renewed in time, its job is stopped"
            );
            self.call_off();
        }
    }

    /// Ends the job; nothing of it is kept.
    pub(crate) fn call_off(&self) {
        self.called_off.cancel();
        self.cancel.cancel();
    }

    /// Waits until nothing of the job is left; it was called off, or has ended.
    pub(crate) async fn settle(&mut self) {
        while self.progress() != Progress::Done {
            self.step().await;
        }
    }

    /// Removes what is on the disk: the Gate has it, or has called it off.
    pub(crate) async fn forget(&mut self) {
        if std::mem::take(&mut self.on_disk) {
            self.home.results.forget(&self.home.slot).await;
        }
    }

    /// The Gate has no place for the result: it is moved aside, and reported.
    pub(crate) async fn refused(&mut self, reason: &str) {
        let (job_id, attempt_id) = (&self.key.job_id, &self.key.attempt_id);
        if self.is_called_off() && !self.on_disk {
            tracing::info!(%job_id, %attempt_id, reason, "a stopped attempt is none any more");
            return;
        }
        let path = if std::mem::take(&mut self.on_disk) {
            self.home.results.refuse(&self.home.slot).await
        } else {
            None
        };
        let path = path.unwrap_or_default();
        tracing::warn!(
            event = "result_refused", %job_id, %attempt_id, path = %path.display(), reason,
            "the Gate has no place for a result, it is not delivered"
        );
    }

    async fn job_ended(stage: &mut Stage, report: &mut Report, on_disk: &mut bool) {
        let Stage::Running(job) = stage else { return };
        let (execution, kept) = job
            .finished()
            .await
            .unwrap_or_else(|| (Execution::defect(), false));
        let Execution {
            evidence,
            completion,
            cleanup,
        } = execution;
        *report = Report {
            evidence,
            completion,
        };
        *on_disk = kept;
        *stage = Stage::Ended(cleanup);
    }

    async fn cleaned(stage: &mut Stage, report: &mut Report) {
        let Stage::Cleaning(cleanup) = stage else {
            return;
        };
        report.evidence.extend(cleanup.finished().await.flatten());
        *stage = Stage::Done;
    }

    fn keeper(&self) -> Option<Keeper> {
        let token = self.token.clone().filter(|_| self.on_disk)?;
        Some(Keeper {
            home: self.home.clone(),
            key: self.key.clone(),
            token,
            ttl: self.ttl,
            called_off: self.called_off.clone(),
        })
    }
}

/// Writes the report of an attempt to the disk, from the task that makes it.
struct Keeper {
    home: Home,
    key: LeaseKey,
    token: AttachToken,
    ttl: Duration,
    called_off: CancellationToken,
}

impl Keeper {
    async fn keep(&self, evidence: &[EvidenceRecord], completion: &Completion) -> bool {
        if self.called_off.is_cancelled() {
            return false;
        }
        let kept = Kept {
            slot: self.home.slot.clone(),
            lease: self.key.clone(),
            token: self.token.clone(),
            ttl: self.ttl,
            report: Report {
                evidence: evidence.to_vec(),
                completion: completion.clone(),
            },
        };
        self.home.results.keep(kept).await
    }
}

/// A piece of work on a task of its own, which is never left behind.
struct JobTask<T>(tokio::task::JoinSet<T>);

impl<T: Send + 'static> JobTask<T> {
    fn start(work: impl Future<Output = T> + Send + 'static) -> Self {
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(work);
        Self(tasks)
    }

    /// What the work came to; nothing if it ended by a defect of this program. Cancel safe.
    async fn finished(&mut self) -> Option<T> {
        match self.0.join_next().await {
            Some(Ok(output)) => Some(output),
            Some(Err(error)) => {
                tracing::error!(%error, "a job ended by a defect of this program");
                None
            }
            None => None,
        }
    }
}

/// The answer to a task that cannot be carried out.
pub(crate) const fn invalid_task() -> Completion {
    Completion::Failed(WorkerFailure::InvalidTask)
}

/// The name of an end, for the log.
pub(crate) fn outcome_name(completion: &Completion) -> &'static str {
    match completion {
        Completion::Text { .. } => "text",
        Completion::Candidate { .. } => "candidate",
        Completion::Failed(failure) => failure.code().as_str(),
    }
}

/// Waits for an instant; never ends without one.
pub(crate) async fn at(instant: Option<std::time::Instant>) {
    match instant {
        Some(instant) => sleep_until(Instant::from_std(instant)).await,
        None => pending().await,
    }
}
