//! `cancel` and `retry`: what changes a job.

use std::process::ExitCode;

use cli_shell::{CliError, Ui, exit};

use super::client;
use super::show::OneJob;
use crate::show::job_text;

pub(crate) async fn cancel(job: &OneJob, ui: &Ui) -> Result<ExitCode, CliError> {
    let done = client(&job.connection, ui)?.cancel(&job.job).await?;
    ui.record(&done.json, |_| job_text(&done.view))?;
    Ok(exit::ok())
}

pub(crate) async fn retry(job: &OneJob, ui: &Ui) -> Result<ExitCode, CliError> {
    let done = client(&job.connection, ui)?.retry(&job.job).await?;
    // The id alone, as `submit` prints it: `$(forge retry JOB)` is the job to watch.
    ui.record(&done.json, |_| cli_shell::visible(&done.view.id))?;
    if done.view.id == job.job.to_string() {
        ui.status("the same job; its next attempt is due now");
    } else {
        ui.status(format!(
            "a new job; follow it with `forge watch {}`",
            cli_shell::visible(&done.view.id)
        ));
    }
    Ok(exit::ok())
}
