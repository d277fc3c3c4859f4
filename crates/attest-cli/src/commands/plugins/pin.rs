//! `plugins pin`: digests of what is there now, written where they are reviewed.

use std::os::unix::fs::PermissionsExt;
use std::process::ExitCode;

use attest_plugin_host::declare::{Declared, Digest, FILE};
use attest_plugin_host::{Executable, PinError, Plugins, Strictness, resolve};
use attest_plugin_protocol::PluginName;
use clap::Args;
use cli_shell::{CliError, Ui, exit};
use serde::Serialize;

use super::look::search;
use super::refused;
use crate::in_place;
use crate::places::Workspace;

const WHAT: &str = "declaration of plugins";

/// Which plugins to pin.
#[derive(Debug, Clone, Args)]
pub(super) struct Pin {
    /// The names of the plugins
    #[arg(value_name = "NAME", required = true)]
    names: Vec<PluginName>,
    #[command(flatten)]
    workspace: Workspace,
}

/// What `--format json` prints of a plugin.
#[derive(Debug, Serialize)]
struct Record<'a> {
    name: &'a str,
    digest: String,
    previous: Option<String>,
    changed: bool,
}

impl Pin {
    /// All of them are pinned or, if one cannot be, none.
    pub(super) fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let workspace = self.workspace.path();
        // What is no file of its own is refused before anything opens it for a lock.
        self.text()?;
        let path = workspace.join(FILE);
        let _lock = in_place::lock(&path, WHAT, || {
            ui.status(format_args!(
                "waiting for another process that writes {FILE}"
            ));
        })?;
        let before = self.text()?;
        let declared = Plugins::parse(&before, Strictness::Listing).map_err(refused)?;
        let mut text = before.clone();
        let mut records = Vec::new();
        for name in &self.names {
            let found = declared.plugins.iter().find(|one| one.name == *name);
            let plugin = found.ok_or_else(|| unknown(name))?;
            let digest = digest(plugin)?;
            let changed = plugin.digest != Some(digest);
            if changed {
                text = attest_plugin_host::pin(&text, name, digest).map_err(unpinned)?;
            }
            records.push(Record {
                name: name.as_str(),
                digest: digest.to_string(),
                previous: plugin.digest.map(|digest| digest.to_string()),
                changed,
            });
        }
        if text != before {
            let failed = |error: CliError| error.because(format!("the {WHAT} cannot be written"));
            let found = fs_err::symlink_metadata(&path);
            let found = found.map_err(|error| failed(CliError::operation(error)))?;
            let mode = found.permissions().mode() & 0o7777;
            safe_fs::write_atomic(&path, text.as_bytes(), mode)
                .map_err(|error| failed(CliError::operation(error)))?;
        }
        for record in &records {
            ui.record(record, Record::line)?;
        }
        Ok(exit::ok())
    }

    fn text(&self) -> Result<String, CliError> {
        let text = Plugins::text(self.workspace.path()).map_err(refused)?;
        text.ok_or_else(|| {
            CliError::config(format!("there is no {FILE}"))
                .hint("`docs/attest.md` shows how a plugin is declared")
        })
    }
}

impl Record<'_> {
    fn line(&self) -> String {
        let Self { name, digest, .. } = self;
        match &self.previous {
            _ if !self.changed => format!("{name}: unchanged, {digest}"),
            Some(previous) => format!("{name}: {previous} -> {digest}"),
            None => format!("{name}: pinned to {digest}"),
        }
    }
}

/// The digest of what would run now.
fn digest(plugin: &Declared) -> Result<Digest, CliError> {
    let failed =
        |error: CliError| error.because(format!("plugin {} cannot be pinned", plugin.name));
    let file = resolve(&plugin.command, &search());
    let file = file.map_err(|error| failed(CliError::config(error)))?;
    let opened = Executable::open(&file).map_err(|error| failed(CliError::operation(error)))?;
    Ok(opened.digest())
}

fn unknown(name: &PluginName) -> CliError {
    CliError::config(format!("no plugin is called `{name}`"))
        .hint("`attest plugins list` shows what is declared")
}

fn unpinned(error: PinError) -> CliError {
    match error {
        PinError::Declare(error) => refused(error),
        error => CliError::operation(error),
    }
}
