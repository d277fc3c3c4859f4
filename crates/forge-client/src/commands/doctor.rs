//! `doctor`: looks at everything that an operator gets wrong and says what to do.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::ExitCode;

use clap::Args;
use cli_shell::{CliError, Finding, Format, Grade, Ui, exit};

use crate::doctor::ask;
use crate::layout::wrap;
use crate::options::Connection;

/// A look at what a configuration file names on this host.
pub type HostCheck = fn(PathBuf) -> Pin<Box<dyn Future<Output = Vec<Finding>>>>;

/// What a program that knows Gate and Worker lends to `doctor`.
#[derive(Debug, Clone, Copy)]
pub struct HostChecks {
    /// For a Gate's file.
    pub gate: HostCheck,
    /// For a Worker's file.
    pub worker: HostCheck,
}

/// Checks the way from here to a job that runs.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Exit codes:
  0  nothing fails; there may be warnings
  1  something fails
  2  the arguments are wrong")]
pub struct Doctor {
    /// Look at the Gate's host too: its file, tokens, certificate, database, disk
    #[arg(long, value_name = "FILE")]
    gate_config: Option<PathBuf>,
    /// Look at the Worker's host too: its file, token, folders, plugins, git, disk
    #[arg(long, value_name = "FILE")]
    worker_config: Option<PathBuf>,
    /// Ask no Gate; look at the files that are named
    #[arg(long)]
    offline: bool,
    #[command(flatten)]
    connection: Connection,
}

impl Doctor {
    pub(crate) async fn run(&self, ui: &Ui, hosts: &HostChecks) -> Result<ExitCode, CliError> {
        if self.offline && self.gate_config.is_none() && self.worker_config.is_none() {
            let error = CliError::usage("there is nothing to look at");
            return Err(error.hint("name a file with `--gate-config` or `--worker-config`"));
        }
        let mut all = Vec::new();
        if let Some(file) = &self.gate_config {
            all.extend(show(ui, (hosts.gate)(file.clone()).await)?);
        }
        if let Some(file) = &self.worker_config {
            all.extend(show(ui, (hosts.worker)(file.clone()).await)?);
        }
        if !self.offline {
            all.extend(show(ui, ask(&self.connection).await)?);
        }
        let count = |grade| all.iter().filter(|one| **one == grade).count();
        let (fail, warn) = (count(Grade::Fail), count(Grade::Warn));
        match ui.format() {
            Format::Json => ui.json(&serde_json::json!({
                "ok": count(Grade::Ok), "warn": warn, "fail": fail,
            }))?,
            Format::Human => ui.status(summary(fail, warn)),
        }
        Ok(if fail > 0 { exit::no() } else { exit::ok() })
    }
}

fn summary(fail: usize, warn: usize) -> String {
    let warnings = match warn {
        0 => String::new(),
        1 => ", 1 warning".to_owned(),
        many => format!(", {many} warnings"),
    };
    match fail {
        0 => format!("nothing fails{warnings}"),
        1 => format!("1 check fails{warnings}"),
        many => format!("{many} checks fail{warnings}"),
    }
}

/// Shows findings as they come in and returns their grades.
fn show(ui: &Ui, findings: Vec<Finding>) -> Result<Vec<Grade>, CliError> {
    let mut grades = Vec::with_capacity(findings.len());
    for finding in findings {
        ui.record(&finding, |finding| lines(ui, finding))?;
        grades.push(finding.status);
    }
    Ok(grades)
}

fn lines(ui: &Ui, finding: &Finding) -> String {
    let (word, painted) = match finding.status {
        Grade::Ok => ("ok", ui.good("ok")),
        Grade::Warn => ("warn", ui.heading("warn")),
        Grade::Fail => ("FAIL", ui.bad("FAIL")),
    };
    let said = format!("{}: {}", finding.check, finding.message);
    // Painted afterwards, so that colours do not count as columns.
    let mut text = wrap(&said, &format!("{word:<6}"), "      ").replacen(word, &painted, 1);
    if let Some(fix) = &finding.fix {
        text.push_str(&wrap(fix, "      fix: ", "           "));
    }
    text
}
