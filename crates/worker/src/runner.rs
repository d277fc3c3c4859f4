//! Carries out leases for real: accepts or refuses them, and runs text and coding jobs.

use std::sync::Arc;

use forge_domain::{Completion, WorkerFailure};
use forge_plugin_protocol::{Operation, Outcome};
use gate_link::Lease;
use git_workspace::Git;
use process_tree::Wrapper;
use tracing::Instrument;

use crate::acceptance::{Accepted, AcceptedWork, Terms, accept};
use crate::coding::{CodingJob, run_coding};
use crate::config::{Host, WorkerConfig};
use crate::execution::{Control, Execution, Executor, Task};
use crate::plugin::PluginRunner;
use crate::ready_workspaces::ReadyWorkspaces;
use crate::removals::Removals;

/// What all jobs of a Worker share.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) config: WorkerConfig,
    pub(crate) host: Host,
    pub(crate) plugins: PluginRunner,
    pub(crate) git: Git,
    pub(crate) ready: ReadyWorkspaces,
    pub(crate) removals: Removals,
}

/// The executor of a running Worker.
#[derive(Debug)]
pub(crate) struct JobRunner(Arc<Bench>);

impl JobRunner {
    /// Runs plugins and checks through `wrapper`.
    pub(crate) fn new(config: WorkerConfig, host: Host, wrapper: Wrapper) -> Self {
        let git = Git::new(
            &host.git,
            cli_shell::env::var_os("PATH").unwrap_or_default(),
        );
        Self(Arc::new(Bench {
            ready: ReadyWorkspaces::new(config.prepared_workspaces),
            removals: Removals::new(),
            config,
            host,
            plugins: PluginRunner {
                wrapper,
                identities: Arc::default(),
            },
            git,
        }))
    }

    /// Removes the workspaces that were made ahead, and what is left of earlier jobs.
    pub(crate) async fn close(&self) {
        self.0.ready.close(&self.0.removals).await;
        self.0.removals.close().await;
    }
}

impl Executor for JobRunner {
    fn execute(&self, lease: Lease, control: Control) -> Task<Execution> {
        let span = tracing::info_span!(
            "job",
            job_id = %lease.lease.job_id,
            attempt_id = %lease.lease.attempt_id
        );
        Box::pin(carry_out(Arc::clone(&self.0), lease, control).instrument(span))
    }
}

async fn carry_out(bench: Arc<Bench>, lease: Lease, control: Control) -> Execution {
    let Lease {
        lease: key,
        work,
        policy,
        ..
    } = lease;
    // Looking at folders may block where a disk is busy, and must not delay a heartbeat.
    let judge = Arc::clone(&bench);
    let judged =
        tokio::task::spawn_blocking(move || accept(&judge.config, &judge.host, &policy, work));
    let accepted = match judged.await {
        Ok(Ok(accepted)) => accepted,
        Ok(Err(rejection)) => {
            tracing::warn!(reason = %rejection, "lease refused");
            return Execution::failed(WorkerFailure::InvalidTask);
        }
        Err(error) => {
            tracing::error!(%error, "the lease could not be judged");
            return Execution::defect();
        }
    };
    let Accepted { terms, work } = accepted;
    match work {
        AcceptedWork::Text { input } => run_text(&bench, &terms, input, &control).await,
        AcceptedWork::Coding(coding) => {
            run_coding(CodingJob {
                bench,
                key,
                terms,
                coding: *coding,
                control,
            })
            .await
        }
    }
}

/// A text job has no evidence and leaves nothing behind.
async fn run_text(bench: &Bench, terms: &Terms, input: String, control: &Control) -> Execution {
    let operation = match Operation::text(input) {
        Ok(operation) => operation,
        Err(error) => {
            tracing::warn!(reason = %error, "lease refused");
            return Execution::failed(WorkerFailure::InvalidTask);
        }
    };
    let ran = bench
        .plugins
        .run(terms, terms.environment.clone(), &operation, control)
        .await;
    match ran {
        Ok(Outcome::Text(output)) => Execution {
            completion: Completion::Text {
                result: output.as_str().to_owned(),
            },
            ..Execution::defect()
        },
        Ok(Outcome::Workspace { .. }) => Execution::failed(WorkerFailure::ExecutionFailed),
        Err(failure) => {
            let (reason, detail) = (failure.reason.as_str(), &failure.detail);
            if control.cancel.is_cancelled() {
                tracing::info!(reason, %detail, "job stopped");
            } else {
                tracing::warn!(reason, %detail, "plugin failed");
            }
            Execution::failed(WorkerFailure::ExecutionFailed)
        }
    }
}
