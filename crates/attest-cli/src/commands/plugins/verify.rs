//! `plugins verify`: every declared digest, compared with the file that would run.

use std::process::ExitCode;

use attest_plugin_host::Strictness;
use cli_shell::{CliError, Ui, exit, visible};
use serde::Serialize;

use super::look::{Look, Status, search};
use crate::answer::also_unread;
use crate::places::Workspace;

/// What `--format json` prints of a plugin.
#[derive(Debug, Serialize)]
struct Record<'a> {
    name: &'a str,
    status: &'static str,
    digest: Option<String>,
    found: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

pub(super) fn run(workspace: &Workspace, ui: &Ui) -> Result<ExitCode, CliError> {
    let declared = super::declared(workspace, Strictness::Run, ui)?;
    let search = search();
    let (mut differs, mut unresolved) = (Vec::new(), Vec::new());
    for plugin in &declared.plugins {
        let look = Look::at(plugin, &search);
        let name = plugin.name.as_str();
        match look.status {
            Status::Ok => {}
            Status::Mismatch | Status::Unpinned => differs.push(name),
            Status::Unresolved => unresolved.push(name),
        }
        let record = Record {
            name,
            status: look.status.word(),
            digest: plugin.digest.map(|digest| digest.to_string()),
            found: look.found.map(|digest| digest.to_string()),
            problem: look.problem,
        };
        also_unread(ui.record(&record, Record::line))?;
    }
    if !differs.is_empty() {
        ui.hint(format!(
            "after a review, `attest plugins pin {}` declares what is there now",
            differs.join(" ")
        ));
    }
    if !unresolved.is_empty() {
        let names = unresolved.join(", ");
        return Err(CliError::config(format!(
            "no digest could be computed of: {names}"
        )));
    }
    Ok(if differs.is_empty() {
        exit::ok()
    } else {
        exit::no()
    })
}

impl Record<'_> {
    fn line(&self) -> String {
        let text = |digest: &Option<String>| digest.clone().unwrap_or_else(|| "-".to_owned());
        let (digest, found) = (text(&self.digest), text(&self.found));
        match &self.problem {
            Some(problem) => format!("{}: {}: {}", self.name, self.status, visible(problem)),
            None if digest == found => format!("{}: {} {found}", self.name, self.status),
            None => format!(
                "{}: {}: declared {digest}, found {found}",
                self.name, self.status
            ),
        }
    }
}
