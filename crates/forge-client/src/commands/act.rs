//! `cancel` and `retry`: what changes a job.

use std::process::ExitCode;
use std::time::Duration;

use cli_shell::{CliError, Ui, clock, exit};
use forge_domain::JobId;

use super::client;
use super::show::OneJob;
use crate::http::GateClient;
use crate::show::job_text;

/// How long the word of a Worker is waited for: one that can say it does so within a second.
const PATIENCE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(100);

pub(crate) async fn cancel(job: &OneJob, ui: &Ui) -> Result<ExitCode, CliError> {
    let client = client(&job.connection, ui)?;
    let done = client.cancel(&job.job).await?;
    ui.record(&done.json, |_| job_text(&done.view))?;
    match stopped(&client, &job.job).await {
        None => {}
        Some(true) => ui.status("the Worker has stopped it: nothing of the attempt runs any more"),
        Some(false) => ui.status(
            "the Worker has not said yet that nothing of the attempt runs any more; what it still reports is refused",
        ),
    }
    Ok(exit::ok())
}

/// Whether the Worker has stopped the attempt that the cancellation ended; nothing if it ended none,
/// or if the Gate does not tell.
async fn stopped(client: &GateClient, job: &JobId) -> Option<bool> {
    let asked = clock::instant();
    loop {
        let journal = client.events(job).await.ok()?;
        let kinds: Vec<&str> = journal
            .iter()
            .map(|event| event.view.kind.as_str())
            .collect();
        let end = kinds.iter().rposition(|kind| *kind == "cancelled")?;
        let ran = matches!(
            kinds.get(end.checked_sub(1)?)?,
            &"leased" | &"attempt_reattached"
        );
        if !ran {
            return None;
        }
        if kinds
            .iter()
            .skip(end)
            .any(|kind| *kind == "attempt_stopped")
        {
            return Some(true);
        }
        if asked.elapsed() >= PATIENCE {
            return Some(false);
        }
        tokio::time::sleep(POLL).await;
    }
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
