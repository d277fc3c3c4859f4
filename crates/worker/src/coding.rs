//! One coding job: workspace, plugin, checks, candidate; and what is said of it if it fails.
//!
//! Each step either goes on or ends the job with one record of evidence. Nothing but the
//! candidate's objects and ref is written outside the Worker's own folders, and these only while
//! the lease holds.

use std::sync::Arc;
use std::time::Duration;

use bounded::text::with_causes;
use bounded::{CommitSubject, GitSha, ReportText};
use forge_domain::{
    AgentReport, Author, Completion, EvidenceRecord, ExecutionLimits, Reason, Stage, WorkerFailure,
};
use forge_plugin_protocol::{Operation, Outcome, Report};
use gate_link::LeaseKey;
use git_workspace::{CandidateRef, Git, GitError, GitLimits, Identity, Snapshot, Workspace};
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::acceptance::{AcceptedCoding, Terms};
use crate::checks::{CheckBench, Verdict, run_checks};
use crate::evidence::Recorder;
use crate::execution::{CleanUp, Control, Execution, Task};
use crate::place::Place;
use crate::runner::Bench;
use crate::runtime_dir::RuntimeDir;

/// The subject of a candidate whose plugin proposed none.
const DEFAULT_SUBJECT: &str = "chore: apply coding task";

/// Everything that one coding job needs.
pub(crate) struct CodingJob {
    pub(crate) bench: Arc<Bench>,
    pub(crate) key: LeaseKey,
    pub(crate) terms: Terms,
    pub(crate) coding: AcceptedCoding,
    pub(crate) control: Control,
}

/// Carries the job out.
pub(crate) async fn run_coding(job: CodingJob) -> Execution {
    let recorder = Recorder::new(*job.coding.task.base_sha(), job.terms.limits);
    // Whatever happens to the job, it is over when this is dropped.
    let over = CancellationToken::new();
    let guard = over.clone().drop_guard();
    let mut place = match job.prepare(&over).await {
        Ok(place) => place,
        Err(failure) => return failure.alone(&recorder, &job.control),
    };
    let mut evidence = Vec::new();
    let completion = match job.work_at(&mut place, &recorder, &mut evidence).await {
        Ok(completion) => completion,
        Err(failure) => failure.after(&recorder, &mut evidence, &job.control),
    };
    let limit = job.terms.limits.cleanup_timeout;
    Execution {
        evidence,
        completion,
        cleanup: Some(Box::new(Removal {
            bench: job.bench,
            place,
            limit,
            recorder,
            over: guard,
        })),
    }
}

/// Why a job ended before it had a candidate.
struct Failure {
    result: WorkerFailure,
    /// Nothing is recorded where no reason fits.
    reason: Option<Reason>,
    took: Duration,
    detail: String,
}

impl Failure {
    /// The failure of a job that left nothing to remove.
    fn alone(self, recorder: &Recorder, control: &Control) -> Execution {
        let mut evidence = Vec::new();
        let completion = self.after(recorder, &mut evidence, control);
        Execution {
            evidence,
            completion,
            cleanup: None,
        }
    }

    /// Adds the record to those that there are.
    fn after(
        self,
        recorder: &Recorder,
        evidence: &mut Vec<EvidenceRecord>,
        control: &Control,
    ) -> Completion {
        let reason = self.reason.map(Reason::as_str);
        if control.cancel.is_cancelled() {
            tracing::info!(reason, detail = %self.detail, "job stopped");
        } else {
            tracing::warn!(reason, result = %self.result, detail = %self.detail, "job failed");
        }
        evidence.extend(self.reason.map(|reason| recorder.event(reason, self.took)));
        Completion::Failed(self.result)
    }
}

/// Times a step, and names what a failure of it means.
struct Step {
    reason: Reason,
    since: Instant,
}

impl Step {
    fn begin(reason: Reason) -> Self {
        Self {
            reason,
            since: Instant::now(),
        }
    }

    fn failed(&self, reason: Reason, detail: String) -> Failure {
        Failure {
            result: WorkerFailure::ExecutionFailed,
            reason: Some(reason),
            took: self.since.elapsed(),
            detail,
        }
    }

    fn error(&self, error: &dyn std::error::Error) -> Failure {
        self.failed(self.reason, with_causes(error))
    }
}

impl CodingJob {
    fn git(&self) -> Git {
        let limits = GitLimits {
            timeout: self.terms.limits.git_timeout,
            output_bytes: self.terms.limits.git_output_bytes,
        };
        self.bench
            .git
            .clone()
            .with_limits(limits)
            .with_cancel(self.control.cancel.clone())
    }

    /// Proves the base and makes the folders, or takes those that wait.
    async fn prepare(&self, over: &CancellationToken) -> Result<Place, Failure> {
        let step = Step::begin(Reason::PreparationFailed);
        let git = self.git();
        let task = &self.coding.task;
        let branch = &self.coding.target.default_branch;
        let (ready, removals) = (&self.bench.ready, &self.bench.removals);
        let repository = &self.coding.repository;
        let (base, waiting) = tokio::join!(
            git.check_base(repository, task.base_sha(), branch),
            ready.take(repository, removals)
        );
        let base = match base {
            Ok(base) => base,
            Err(error) => {
                if let Some(place) = waiting {
                    ready.give_back(place, removals).await;
                }
                return Err(unusable_base(&step, &error));
            }
        };
        let place = match waiting {
            Some(place) => ready.bring(place, &git, &base, removals).await,
            None => None,
        };
        ready.refill(&self.bench, &base, over);
        if let Some(place) = place {
            return Ok(place);
        }
        let step = Step::begin(Reason::RuntimeSetupFailed);
        let runtime = RuntimeDir::make(&self.bench.host.runtime_root)
            .await
            .map_err(|error| step.error(&error))?;
        let step = Step::begin(Reason::WorktreeSetupFailed);
        let root = &self.bench.host.worktree_root;
        let workspace = git
            .prepare(&base, root, runtime.path())
            .await
            .map_err(|error| step.error(&error))?;
        Ok(Place { workspace, runtime })
    }

    /// From the untouched workspace to the candidate.
    async fn work_at(
        &self,
        place: &mut Place,
        recorder: &Recorder,
        evidence: &mut Vec<EvidenceRecord>,
    ) -> Result<Completion, Failure> {
        let (subject, report) = self.edit(place).await?;
        let snapshot = inspect(&mut place.workspace).await?;
        self.check(place, recorder, evidence).await?;
        let step = Step::begin(Reason::CandidateCommitFailed);
        // Read before the commit: after it nothing may fail.
        let report = report.as_ref().map(agent_report).transpose();
        let report = report.map_err(|detail| step.failed(step.reason, detail))?;
        let sha = self
            .commit(&place.workspace, &snapshot, subject, &step)
            .await?;
        for record in evidence.iter_mut() {
            record.candidate_sha = Some(sha);
        }
        tracing::info!(candidate_sha = %sha, "candidate made");
        Ok(Completion::Candidate { sha, report })
    }

    async fn edit(
        &self,
        place: &Place,
    ) -> Result<(Option<CommitSubject>, Option<Report>), Failure> {
        let step = Step::begin(Reason::PluginFailed);
        let workspace = place.workspace.path().to_str().ok_or_else(|| {
            step.failed(
                step.reason,
                "the path of the workspace is not UTF-8".to_owned(),
            )
        })?;
        let limits: &ExecutionLimits = &self.terms.limits;
        let instruction = self.coding.task.instruction();
        let operation = Operation::workspace_edit(workspace, instruction, limits.plugin_timeout)
            .map_err(|error| step.error(&error))?;
        let mut environment = self.terms.environment.clone();
        environment.push(("TMPDIR".into(), place.runtime.tmp().into()));
        match self
            .bench
            .plugins
            .run(&self.terms, environment, &operation, &self.control)
            .await
        {
            Ok(Outcome::Workspace { subject, report }) => Ok((subject, report)),
            Ok(Outcome::Text(_)) => {
                Err(step.failed(step.reason, "the plugin answered with a text".to_owned()))
            }
            Err(failure) => Err(step.failed(failure.reason, failure.detail)),
        }
    }

    async fn check(
        &self,
        place: &Place,
        recorder: &Recorder,
        evidence: &mut Vec<EvidenceRecord>,
    ) -> Result<(), Failure> {
        let mut environment = self.coding.check_environment.clone();
        environment.extend(place.runtime.check_variables());
        let bench = CheckBench {
            wrapper: &self.bench.plugins.wrapper,
            workspace: place.workspace.path(),
            environment: &environment,
            limits: &self.terms.limits,
            recorder,
            cancel: &self.control.cancel,
        };
        let tests = self.coding.task.tests();
        if !tests.is_empty() {
            self.control.activity.reached(Stage::Testing);
        }
        let (records, verdict) = run_checks(&bench, tests).await;
        self.control.activity.reached(Stage::PreparingResult);
        evidence.extend(records);
        let (result, detail) = match verdict {
            Verdict::Passed => return Ok(()),
            Verdict::Failed => (WorkerFailure::ScopedTestFailed, "a declared check failed"),
            Verdict::Cancelled => (
                WorkerFailure::ExecutionFailed,
                "cancelled during the checks",
            ),
        };
        let detail = detail.to_owned();
        Err(Failure {
            result,
            reason: None,
            took: Duration::ZERO,
            detail,
        })
    }

    async fn commit(
        &self,
        workspace: &Workspace,
        snapshot: &Snapshot,
        subject: Option<CommitSubject>,
        step: &Step,
    ) -> Result<GitSha, Failure> {
        let subject = match subject {
            Some(subject) => subject,
            None => CommitSubject::new(DEFAULT_SUBJECT).map_err(|error| step.error(&error))?,
        };
        let author = self.coding.task.author().map(identity);
        // A commit without a ref is nothing that anybody could take for a candidate.
        let (verified, draft) = tokio::join!(
            workspace.verify_unchanged(snapshot),
            workspace.draft(snapshot, &subject, author.as_ref())
        );
        verified.map_err(|error| step.error(&error))?;
        let draft = draft.map_err(|error| step.error(&error))?;
        let name = CandidateRef::new(self.key.job_id.into(), self.key.attempt_id.into());
        // A Worker that slept through its lease must leave no ref of it.
        if !self.control.fence.holds(cli_shell::clock::instant()) {
            return Err(step.failed(step.reason, "the lease no longer holds".to_owned()));
        }
        workspace
            .publish(&draft, &name)
            .await
            .map_err(|error| step.error(&error))
    }
}

fn unusable_base(step: &Step, error: &GitError) -> Failure {
    if error.is_invalid_task() {
        Failure {
            result: WorkerFailure::InvalidTask,
            reason: None,
            took: Duration::ZERO,
            detail: with_causes(error),
        }
    } else {
        step.error(error)
    }
}

/// What the plugin left, as a tree that differs from that of the base.
async fn inspect(workspace: &mut Workspace) -> Result<Snapshot, Failure> {
    let step = Step::begin(Reason::InvalidWorkspaceChange);
    let snapshot = workspace
        .snapshot()
        .await
        .map_err(|error| step.error(&error))?;
    if snapshot.changed() {
        Ok(snapshot)
    } else {
        Err(step.failed(Reason::NoChanges, "the plugin changed nothing".to_owned()))
    }
}

fn identity(author: &Author) -> Identity {
    Identity {
        name: author.name.clone(),
        email: author.email.clone(),
    }
}

fn agent_report(report: &Report) -> Result<AgentReport, String> {
    let summary = ReportText::new(report.summary()).map_err(|error| error.to_string())?;
    let changes = report
        .changes()
        .map(ReportText::new)
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    AgentReport::new(summary, changes).map_err(|error| error.to_string())
}

/// Puts the folders of a job aside; they are removed in the background.
struct Removal {
    bench: Arc<Bench>,
    place: Place,
    limit: Duration,
    recorder: Recorder,
    over: DropGuard,
}

impl CleanUp for Removal {
    fn run(self: Box<Self>) -> Task<Option<EvidenceRecord>> {
        Box::pin(async move {
            let Self {
                bench,
                place,
                limit,
                recorder,
                over: _over,
            } = *self;
            let since = Instant::now();
            let detail = match timeout(limit, bench.removals.put_aside(place)).await {
                Ok(Ok(())) => return None,
                Ok(Err(error)) => with_causes(&error),
                Err(_) => format!("not done within {limit:?}"),
            };
            tracing::warn!(%detail, "clean-up failed, the next start of the Worker sweeps");
            Some(recorder.event(Reason::CleanupFailed, since.elapsed()))
        })
    }
}
