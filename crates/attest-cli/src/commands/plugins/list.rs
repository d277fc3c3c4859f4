//! `plugins list`: the declared plugins in the order in which they are asked.

use std::process::ExitCode;

use attest_plugin_host::Strictness;
use attest_plugin_host::declare::{Declared, OnFailure};
use cli_shell::layout::{cell, wrap, wrap_words};
use cli_shell::{CliError, Format, Ui, exit, visible};
use serde::Serialize;

use super::look::{Look, command, search};
use crate::places::Workspace;

/// Columns of a name.
const NAME: usize = 32;
/// Columns of a status.
const STATUS: usize = 10;

/// What `--format json` prints of a plugin.
#[derive(Debug, Serialize)]
struct Record<'a> {
    name: &'a str,
    command: String,
    file: Option<String>,
    status: &'static str,
    digest: Option<String>,
    found: Option<String>,
    hooks: Vec<&'static str>,
    deterministic: bool,
    on_failure: &'static str,
    timeout_secs: u64,
    wants_output: bool,
    env: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interpreter: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

pub(super) fn run(workspace: &Workspace, ui: &Ui) -> Result<ExitCode, CliError> {
    let declared = super::declared(workspace, Strictness::Listing, ui)?;
    let search = search();
    let width = declared.plugins.iter().map(|one| one.name.as_str().len());
    let width = width.max().unwrap_or_default().min(NAME);
    for plugin in &declared.plugins {
        let record = Record::of(plugin, Look::at(plugin, &search));
        match ui.format() {
            Format::Json => ui.json(&record)?,
            Format::Human if ui.writes_to_terminal() => ui.raw(record.lines(width).as_bytes())?,
            Format::Human => ui.data(record.line())?,
        }
    }
    Ok(exit::ok())
}

impl<'a> Record<'a> {
    fn of(plugin: &'a Declared, look: Look) -> Self {
        Self {
            name: plugin.name.as_str(),
            command: command(plugin),
            file: look.file.map(|file| file.to_string_lossy().into_owned()),
            status: look.status.word(),
            digest: plugin.digest.map(|digest| digest.to_string()),
            found: look.found.map(|digest| digest.to_string()),
            hooks: plugin.hooks.iter().map(|hook| hook.as_str()).collect(),
            deterministic: plugin.deterministic,
            on_failure: match plugin.on_failure {
                OnFailure::FailClosed => "fail-closed",
                OnFailure::FailOpen => "fail-open",
            },
            timeout_secs: plugin.timeout.as_secs(),
            wants_output: plugin.wants_output,
            env: plugin.env.keys().map(String::as_str).collect(),
            interpreter: look.interpreter,
            problem: look.problem,
        }
    }

    /// One line with every column, for programs that read it.
    fn line(&self) -> String {
        let file = self.file.as_deref().unwrap_or("-");
        let digest = self.found.as_deref().or(self.digest.as_deref());
        let mut line = format!(
            "{}  {}  {}  {}  {}  {}  {}",
            self.name,
            self.status,
            self.on_failure,
            self.hooks.join(","),
            visible(&self.command),
            visible(file),
            digest.unwrap_or("-"),
        );
        // Last, since it has spaces, and only where there is one, so that no other line changes.
        if let Some(problem) = &self.problem {
            line.push_str("  ");
            line.push_str(&visible(problem));
        }
        line
    }

    /// A few lines that fit a terminal.
    fn lines(&self, width: usize) -> String {
        let first = format!(
            "{}  {}  {}  ",
            cell(self.name, width),
            cell(self.status, STATUS),
            cell(self.on_failure, "fail-closed".len()),
        );
        let below = " ".repeat(first.len());
        let mut out = wrap(&self.hooks.join(" "), &first, &below);
        let mut say = |text: String| out.push_str(&wrap_words(&text, "  ", "    "));
        say(match &self.file {
            Some(file) if *file != self.command => {
                format!("{} is {}", visible(&self.command), visible(file))
            }
            _ => visible(&self.command),
        });
        match (&self.digest, &self.found) {
            (Some(digest), Some(found)) if digest != found => {
                say(format!("pinned {digest}"));
                say(format!("found {found}"));
            }
            (None, Some(found)) => say(format!("found {found}")),
            (Some(digest), _) => say(digest.clone()),
            (None, None) => {}
        }
        if let Some(interpreter) = &self.interpreter {
            say(format!(
                "a script: `{}`, which runs it, is not pinned",
                visible(interpreter)
            ));
        }
        if let Some(problem) = &self.problem {
            // It may quote a whole search path, which nobody copies from here.
            out.push_str(&wrap(&visible(problem), "  ", "    "));
        }
        out
    }
}
