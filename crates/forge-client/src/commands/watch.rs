//! `wait` and `watch`: a job until its end.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use cli_shell::{CliError, Format, Ui, exit, visible};
use forge_domain::JobId;

use super::client;
use crate::api::Seen;
use crate::error::ClientError;
use crate::follow::{Change, follow};
use crate::http::GateClient;
use crate::layout::{time_of_day, wrap};
use crate::options::{Connection, Waiting};
use crate::show::{event_text, failure, job_text, stage_text, waiting_text};
use crate::view::{Activity, Event, Job, WhyWaiting};

/// A job to follow.
#[derive(Debug, Clone, Args)]
pub struct Watch {
    /// The job's id
    #[arg(value_name = "JOB")]
    job: JobId,
    #[command(flatten)]
    waiting: Waiting,
    #[command(flatten)]
    connection: Connection,
}

impl Watch {
    /// Shows the job when it has ended.
    pub(crate) async fn wait(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let client = client(&self.connection, ui)?;
        let limit = self.waiting.or_ten_minutes();
        let job = until_the_end(&client, &self.job, limit, self.waiting.poll, ui).await?;
        ui.record(&job.json, |_| job_text(&job.view))?;
        verdict(&job.view)
    }

    /// Shows each change as it comes.
    pub(crate) async fn watch(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let client = client(&self.connection, ui)?;
        let limit = self.waiting.or_a_day();
        // Output errors travel beside the error type of the network.
        let mut broken = None;
        let outcome = follow(
            &client,
            &self.job,
            limit,
            self.waiting.poll,
            &mut |change| {
                if broken.is_none() {
                    broken = show(ui, &self.job, change).err();
                }
                match &broken {
                    Some(_) => Err(ClientError::Task {
                        problem: "output is gone".to_owned(),
                    }),
                    None => Ok(()),
                }
            },
        )
        .await;
        if let Some(broken) = broken {
            return Err(broken);
        }
        let job = outcome?;
        ui.record(&job.json, |_| job_text(&job.view))?;
        verdict(&job.view)
    }
}

/// Waits for the end with nothing but a spinner on the screen.
pub(super) async fn until_the_end(
    client: &GateClient,
    job: &JobId,
    limit: Duration,
    poll: Duration,
    ui: &Ui,
) -> Result<Seen<Job>, ClientError> {
    let spinner = ui.progress(format!("job {job}"), None);
    follow(client, job, limit, poll, &mut |change| {
        match change {
            Change::Event(event) => spinner.label(event_text(&event.view)),
            Change::Stage { activity, .. } => spinner.label(stage_text(&activity)),
            Change::Waiting { waiting, is_new } => {
                if is_new && !waiting.is_about_to_end() {
                    ui.status(waiting_lines(&waiting));
                }
                spinner.label(waiting_text(&waiting));
            }
            Change::Lost(error) => ui.warn(format!("{error}; still trying")),
            Change::Found => ui.status("the Gate answers again"),
        }
        Ok(())
    })
    .await
}

/// The exit code of a job that has ended: an honest no where it did not succeed.
pub(super) fn verdict(job: &Job) -> Result<ExitCode, CliError> {
    if job.has_succeeded() {
        return Ok(exit::ok());
    }
    let because = match job.failure_code.as_deref() {
        Some(code) if code != job.status => format!(" ({})", failure(code)),
        _ => String::new(),
    };
    let status = match job.status.as_str() {
        "cancelled" => "was cancelled".to_owned(),
        other => visible(other),
    };
    Err(ClientError::JobFailed {
        job: visible(&job.id),
        status,
        because,
    }
    .into())
}

pub(super) fn event_line(event: &Event) -> String {
    format!("{}  {}", time_of_day(&event.at), event_text(event))
}

fn waiting_lines(waiting: &WhyWaiting) -> String {
    wrap(&waiting_text(waiting), "", "  ").trim_end().to_owned()
}

fn stage_line(activity: &Activity) -> String {
    let at = activity.received_at.as_deref().map(time_of_day);
    let at = at.unwrap_or_else(|| time_of_day(&cli_shell::clock::now().to_string()));
    format!("{at}  {}", stage_text(activity))
}

fn show(ui: &Ui, job: &JobId, change: Change) -> Result<(), CliError> {
    match change {
        Change::Event(event) => ui.record(&event.json, |_| event_line(&event.view)),
        Change::Stage { activity, .. } if ui.format() == Format::Human => {
            ui.data(stage_line(&activity))
        }
        Change::Stage { attempt, activity } => ui.json(&serde_json::json!({
            "job_id": job.to_string(),
            "attempt_id": attempt,
            "sequence": activity.sequence,
            "stage": activity.stage,
            "received_at": activity.received_at,
        })),
        // A number that changes is no news, and a moment is not worth a line.
        Change::Waiting { waiting, is_new } if !is_new || waiting.is_about_to_end() => Ok(()),
        Change::Waiting { waiting, .. } if ui.format() == Format::Human => {
            let at = time_of_day(&cli_shell::clock::now().to_string());
            let text = wrap(&waiting_text(&waiting), &format!("{at}  "), "          ");
            ui.data(text.trim_end())
        }
        Change::Waiting { waiting, .. } => ui.json(&serde_json::json!({
            "job_id": job.to_string(),
            "waiting": {"reason": waiting.reason, "message": waiting.message},
        })),
        Change::Lost(error) => {
            ui.warn(format!("{error}; still trying"));
            Ok(())
        }
        Change::Found => {
            ui.status("the Gate answers again");
            Ok(())
        }
    }
}
