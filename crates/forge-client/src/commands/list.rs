//! `list` and `workers`: what there is.

use std::process::ExitCode;

use clap::Args;
use cli_shell::{CliError, Format, Ui, exit, visible};

use super::client;
use crate::api::Filter;
use crate::layout::{cell, moment};
use crate::options::Connection;
use crate::view::{Job, Worker};

/// Which jobs to list.
#[derive(Debug, Clone, Args)]
pub struct List {
    /// Only jobs with this status, such as `pending`, `leased`, `failed`
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,
    /// Only jobs of this pool
    #[arg(long, value_name = "ID")]
    pool: Option<String>,
    /// Only jobs of this repository
    #[arg(long, value_name = "ID")]
    repository: Option<String>,
    /// How many to list
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = clap::value_parser!(u16).range(1..=100))]
    limit: u16,
    /// Where an earlier list ended
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// List page after page to the end
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    connection: Connection,
}

impl List {
    pub(crate) async fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let client = client(&self.connection, ui)?;
        let mut filter = Filter {
            status: self.status.clone(),
            pool: self.pool.clone(),
            repository: self.repository.clone(),
            limit: if self.all { 100 } else { self.limit },
            cursor: self.cursor.clone(),
        };
        let mut head = ui.format() == Format::Human;
        loop {
            let (jobs, next) = client.jobs(&filter).await?;
            if head && !jobs.is_empty() {
                ui.data(ui.heading(&job_row(["job", "status", "repository", "changed"])))?;
                head = false;
            }
            for job in &jobs {
                ui.record(&job.json, |_| job_line(&job.view))?;
            }
            match next {
                Some(next) if self.all && !jobs.is_empty() => filter.cursor = Some(next),
                Some(next) => {
                    ui.status(format!("more: `--cursor {}`, or `--all`", visible(&next)));
                    break;
                }
                None => break,
            }
        }
        if head {
            ui.status("no jobs");
        }
        Ok(exit::ok())
    }
}

/// Lists the slots of the Workers.
#[derive(Debug, Clone, Args)]
pub struct Workers {
    #[command(flatten)]
    connection: Connection,
}

impl Workers {
    pub(crate) async fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let workers = client(&self.connection, ui)?.workers().await?;
        if workers.is_empty() {
            ui.status("no Workers are configured");
        } else if ui.format() == Format::Human {
            ui.data(ui.heading(&worker_row(["slot", "pool", "state", "last seen"])))?;
        }
        for worker in &workers {
            ui.record(&worker.json, |_| worker_line(&worker.view))?;
        }
        Ok(exit::ok())
    }
}

fn job_line(job: &Job) -> String {
    let repository = match (&job.repository_id, job.kind.as_deref()) {
        (Some(repository), _) => visible(repository),
        (None, _) => "(text)".to_owned(),
    };
    let changed = moment(&job.updated_at);
    // The date alone says little here; seconds say more than the year.
    let changed = changed.get(5..19).unwrap_or(&changed);
    job_row([
        &visible(&job.id),
        &visible(&job.status),
        &repository,
        changed,
    ])
}

fn job_row([id, status, repository, changed]: [&str; 4]) -> String {
    let row = format!(
        "{} {} {} {}",
        cell(id, 32),
        cell(status, 10),
        cell(repository, 20),
        cell(changed, 15)
    );
    row.trim_end().to_owned()
}

fn worker_line(worker: &Worker) -> String {
    let state = match (&worker.active_job, worker.connected, &worker.refuses) {
        (Some(_), true, _) => "working".to_owned(),
        (None, true, Some(reason)) => visible(reason).replace('_', " "),
        (None, true, None) => match worker.state.as_deref() {
            Some(state @ ("stopping" | "greeting")) => state.to_owned(),
            _ => "connected".to_owned(),
        },
        // Who has left mostly left for what it had said.
        (_, false, Some(reason)) => format!("away, left {}", visible(reason).replace('_', " ")),
        (_, false, None) => "away".to_owned(),
    };
    let seen = worker.last_seen.as_deref().map(moment);
    worker_row([
        &visible(&worker.id),
        &worker.pool.as_deref().map(visible).unwrap_or_default(),
        &state,
        seen.as_deref().unwrap_or("never"),
    ])
}

fn worker_row([id, pool, state, seen]: [&str; 4]) -> String {
    let row = format!(
        "{} {} {} {}",
        cell(id, 22),
        cell(pool, 15),
        cell(state, 19),
        cell(seen, 20)
    );
    row.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fit_the_screen() {
        let long = "x".repeat(200);
        assert!(job_row([&long; 4]).chars().count() <= cli_shell::layout::WIDTH);
        assert!(worker_row([&long; 4]).chars().count() <= cli_shell::layout::WIDTH);
    }
}
