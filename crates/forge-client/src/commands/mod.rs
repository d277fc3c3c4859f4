//! One file per group of commands.

mod act;
mod candidate;
mod doctor;
mod list;
mod pools;
mod show;
mod submit;
mod watch;

use std::process::ExitCode;

use clap::Subcommand;
use cli_shell::{CliError, Ui};

pub use doctor::{HostCheck, HostChecks};

use crate::http::GateClient;
use crate::options::Connection;

/// What an operator can ask of a Gate.
#[derive(Debug, Clone, Subcommand)]
pub enum Commands {
    /// Submit a task or a text
    Submit(Box<submit::Submit>),
    /// Wait for a job to end and show it; exit code 1 if it did not succeed
    Wait(watch::Watch),
    /// Show each change of a job until it ends; exit code 1 if it did not succeed
    Watch(watch::Watch),
    /// Show a job
    Status(show::OneJob),
    /// Show a finished job's attempts, checks and agent report
    Result(show::OneJob),
    /// Show a job's journal
    Events(show::OneJob),
    /// Write the text that a job made to standard output
    Output(show::OneJob),
    /// Cancel a job
    Cancel(show::OneJob),
    /// Try a failed or cancelled job again, as a new job, and print that job's id
    Retry(show::OneJob),
    /// List jobs, newest first
    List(list::List),
    /// List the Workers' slots
    Workers(list::Workers),
    /// List the pools: what waits, what runs, what is paused
    Pools(pools::Pools),
    /// Stop giving out jobs of a pool; what runs goes on
    Pause(pools::Pause),
    /// Give out jobs of a pool again
    Resume(pools::Resume),
    /// Check the way from here to a job that runs, and say what to do
    Doctor(doctor::Doctor),
    /// Fetch a job's candidate commit into a repository, under its own ref
    Fetch(candidate::Fetch),
    /// Show what a job's candidate changes
    Diff(candidate::Diff),
}

pub(crate) async fn dispatch(
    command: &Commands,
    ui: &Ui,
    hosts: &HostChecks,
) -> Result<ExitCode, CliError> {
    match command {
        Commands::Submit(submit) => submit.run(ui).await,
        Commands::Wait(watch) => watch.wait(ui).await,
        Commands::Watch(watch) => watch.watch(ui).await,
        Commands::Status(job) => job.status(ui).await,
        Commands::Result(job) => job.result(ui).await,
        Commands::Events(job) => job.events(ui).await,
        Commands::Output(job) => job.output(ui).await,
        Commands::Cancel(job) => act::cancel(job, ui).await,
        Commands::Retry(job) => act::retry(job, ui).await,
        Commands::List(list) => list.run(ui).await,
        Commands::Workers(workers) => workers.run(ui).await,
        Commands::Pools(pools) => pools.run(ui).await,
        Commands::Pause(pause) => pause.run(ui).await,
        Commands::Resume(resume) => resume.run(ui).await,
        Commands::Doctor(doctor) => doctor.run(ui, hosts).await,
        Commands::Fetch(fetch) => fetch.run(ui).await,
        Commands::Diff(diff) => diff.run(ui).await,
    }
}

/// Makes the client, with a warning where its address deserves one.
fn client(connection: &Connection, ui: &Ui) -> Result<GateClient, CliError> {
    let client = connection.client()?;
    if client.sends_plain() {
        ui.warn(format!(
            "the token travels to {} in clear text",
            cli_shell::visible(client.url())
        ));
    }
    Ok(client)
}
