//! `fetch` and `diff`: the commit that a job made, in a repository of the operator's.

use std::path::PathBuf;
use std::process::ExitCode;

use bounded::{GitSha, Hex32};
use clap::Args;
use cli_shell::{CliError, Format, Ui, exit, visible_lines};
use forge_domain::JobId;
use git_workspace::CandidateRef;
use serde_json::json;

use super::client;
use crate::error::ClientError;
use crate::http::GateClient;
use crate::options::Connection;
use crate::repository::{diff, fetch};

/// A candidate to fetch.
#[derive(Debug, Clone, Args)]
pub struct Fetch {
    /// The job's id
    #[arg(value_name = "JOB")]
    job: JobId,
    /// The repository in which the Worker made it: a path, or a file, https or ssh URL
    #[arg(long, value_name = "PATH|URL")]
    from: String,
    /// The repository that gets the ref; its branches and files stay as they are
    #[arg(long, value_name = "REPO", default_value = ".")]
    into: PathBuf,
    #[command(flatten)]
    connection: Connection,
}

impl Fetch {
    pub(crate) async fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let client = client(&self.connection, ui)?;
        let candidate = Candidate::of(&client, &self.job).await?;
        let found = fetch(&self.into, &self.from, &candidate.reference).await?;
        if found != candidate.commit {
            return Err(ClientError::OtherCandidate {
                reference: candidate.reference.to_string(),
                found: found.to_string(),
                recorded: candidate.commit.to_string(),
            }
            .into());
        }
        let reference = candidate.reference.to_string();
        ui.record(
            &json!({"job_id": self.job, "ref": reference, "candidate_sha": found.to_string()}),
            |_| reference.clone(),
        )?;
        ui.status(format!(
            "commit {found}; `forge diff {}` shows it",
            self.job
        ));
        Ok(exit::ok())
    }
}

/// A candidate to look at.
#[derive(Debug, Clone, Args)]
pub struct Diff {
    /// The job's id
    #[arg(value_name = "JOB")]
    job: JobId,
    /// A repository that has the candidate
    #[arg(long, value_name = "REPO", default_value = ".")]
    repo: PathBuf,
    #[command(flatten)]
    connection: Connection,
}

impl Diff {
    pub(crate) async fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let client = client(&self.connection, ui)?;
        let candidate = Candidate::of(&client, &self.job).await?;
        let text = diff(&self.repo, &candidate.base, &candidate.commit)
            .await
            .map_err(|error| {
                CliError::from(error).hint(format!(
                    "`forge fetch {} --from PATH` brings it there",
                    self.job
                ))
            })?;
        if ui.format() == Format::Json {
            ui.json(&json!({
                "job_id": self.job,
                "base_sha": candidate.base.to_string(),
                "candidate_sha": candidate.commit.to_string(),
                "diff": String::from_utf8_lossy(&text),
            }))?;
        } else if ui.writes_to_terminal() {
            ui.raw(visible_lines(&String::from_utf8_lossy(&text)).as_bytes())?;
        } else {
            ui.raw(&text)?;
        }
        Ok(exit::ok())
    }
}

/// What the Gate has on record of a job's candidate.
struct Candidate {
    reference: CandidateRef,
    base: GitSha,
    commit: GitSha,
}

impl Candidate {
    async fn of(client: &GateClient, id: &JobId) -> Result<Self, ClientError> {
        let job = client.job(id).await?.view;
        let parsed = (
            job.attempt_id
                .as_deref()
                .and_then(|id| id.parse::<Hex32>().ok()),
            job.base_sha.as_deref().and_then(|sha| sha.parse().ok()),
            job.candidate_sha
                .as_deref()
                .and_then(|sha| sha.parse().ok()),
            id.as_ref().parse::<Hex32>().ok(),
        );
        let (Some(attempt), Some(base), Some(commit), Some(job_id)) = parsed else {
            return Err(ClientError::NoCandidate {
                job: id.to_string(),
                status: cli_shell::visible(&job.status),
            });
        };
        Ok(Self {
            reference: CandidateRef::new(job_id, attempt),
            base,
            commit,
        })
    }
}
