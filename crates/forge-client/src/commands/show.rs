//! `status`, `result`, `events` and `output`: one job, looked at.

use std::process::ExitCode;

use clap::Args;
use cli_shell::{CliError, Ui, exit};
use forge_domain::JobId;

use super::client;
use crate::error::ClientError;
use crate::options::Connection;
use crate::show::{job_text, result_text};

use super::watch::event_line;

/// A job and the Gate that has it.
#[derive(Debug, Clone, Args)]
pub struct OneJob {
    /// The job's id
    #[arg(value_name = "JOB")]
    pub(crate) job: JobId,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

impl OneJob {
    pub(crate) async fn status(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let job = client(&self.connection, ui)?.job(&self.job).await?;
        ui.record(&job.json, |_| job_text(&job.view))?;
        Ok(exit::ok())
    }

    pub(crate) async fn result(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let result = client(&self.connection, ui)?.result(&self.job).await?;
        ui.record(&result.json, |_| result_text(&result.view))?;
        Ok(exit::ok())
    }

    pub(crate) async fn events(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let events = client(&self.connection, ui)?.events(&self.job).await?;
        if events.is_empty() {
            // The Gate answers like this for a job that it does not know; every other has an entry.
            return Err(ClientError::NotFound {
                what: format!("job `{}`", self.job),
            }
            .into());
        }
        for event in events {
            ui.record(&event.json, |_| event_line(&event.view))?;
        }
        Ok(exit::ok())
    }

    /// Writes the text as it is where a program reads it, and made visible on a terminal.
    pub(crate) async fn output(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let bytes = client(&self.connection, ui)?.output(&self.job).await?;
        let text = String::from_utf8_lossy(&bytes);
        if ui.format() == cli_shell::Format::Json {
            ui.json(&serde_json::json!({"job_id": self.job.to_string(), "output": text}))?;
        } else if ui.writes_to_terminal() {
            ui.data(cli_shell::visible_lines(&text))?;
        } else {
            ui.raw(&bytes)?;
        }
        Ok(exit::ok())
    }
}
