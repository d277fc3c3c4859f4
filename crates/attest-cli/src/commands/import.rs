//! `import STATEMENT --format in-toto`: judges an envelope, its statement and the receipt in it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use attest_exchange::dsse;
use attest_exchange::import::{Delivered, ImportOptions, Imported, judge, parse_requirements};
use attest_receipt::time::Time;
use attest_verify::error_record;
use attest_verify::trust::Trust;
use clap::{Args, ValueEnum};
use cli_shell::{CliError, Format, Ui, clock, exit, visible};
use keys::load_trust;
use safe_fs::SafeFsError;

use super::format::StatementFormat;
use crate::answer::also_unread;
use crate::delivered::Folder;
use crate::places::{Workspace, folder};
use crate::prerequisite::{self, Rule};

/// What to judge, and by what.
#[derive(Debug, Clone, Args)]
pub struct Import {
    /// The DSSE envelope
    #[arg(value_name = "STATEMENT")]
    statement: PathBuf,
    #[command(flatten)]
    _format: StatementFormat,
    /// The trusted keys [default: .attest/trust in the workspace]
    #[arg(long, value_name = "DIR", value_parser = folder())]
    trust_store: Option<PathBuf>,
    /// Let the statement of a revoked key say itself that it was made before
    #[arg(long)]
    trust_statement_time: bool,
    /// Refuse unless this is established: signature, timestamp, artifacts, trust, success,
    /// plugins, plugin:NAME (repeatable, or with commas)
    #[arg(long, value_name = "PROPERTY")]
    require: Vec<String>,
    /// Compare the files in this folder with those that the receipt lists
    #[arg(long, value_name = "DIR", value_parser = folder())]
    artifact_root: Option<PathBuf>,
    /// How the result is written: `text` or `json` [default: as the global `--format`]
    #[arg(long, value_enum, value_name = "FORMAT", hide_possible_values = true)]
    report: Option<Report>,
    #[command(flatten)]
    workspace: Workspace,
    #[arg(long, hide = true)]
    identity_policy: Option<OsString>,
}

/// How the result is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Report {
    /// For people
    Text,
    /// One record, for programs
    Json,
}

impl Import {
    pub(crate) fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        if self.identity_policy.is_some() {
            return Err(CliError::usage(
                "workflow identities are not part of this program",
            ));
        }
        prerequisite::check(&[Rule {
            option: "--workspace",
            given: self.workspace.is_named(),
            requires: "no --trust-store",
            met: self.trust_store.is_none(),
            why: "the trusted keys are all that is read there",
        }])?;
        let require = parse_requirements(&self.require).map_err(CliError::usage)?;
        let bytes = match safe_fs::read_bounded(&self.statement, dsse::MAX_BYTES as u64) {
            Ok(bytes) => bytes,
            Err(error) => {
                let kind = match &error {
                    SafeFsError::TooLarge { .. } => "resource-limit",
                    _ => "operational",
                };
                let error = CliError::operation(error).because("cannot read the statement");
                return Err(self.give_up(ui, kind, error)?);
            }
        };
        let delivered = self.artifact_root.as_deref().map(Folder::new);
        let options = ImportOptions {
            trust: &self.trust(),
            trust_statement_time: self.trust_statement_time,
            require: &require,
            delivered: delivered.as_ref().map(|folder| folder as &dyn Delivered),
            now: Time::from(clock::now()),
        };
        match judge(&bytes, &options) {
            Ok(imported) => {
                self.tell(ui, &imported)?;
                Ok(if imported.passed() {
                    exit::ok()
                } else {
                    exit::no()
                })
            }
            Err(error) => {
                let name = self.name();
                let error =
                    CliError::operation(error).because(format!("unreadable JSON in `{name}`"));
                Err(self.give_up(ui, "operational", error)?)
            }
        }
    }

    fn trust(&self) -> Trust {
        match &self.trust_store {
            Some(folder) => load_trust(folder, None),
            None => load_trust(self.workspace.trust().path(), Some(&self.workspace.keys())),
        }
    }

    fn as_json(&self, ui: &Ui) -> bool {
        match self.report {
            Some(report) => report == Report::Json,
            None => ui.format() == Format::Json,
        }
    }

    fn name(&self) -> String {
        self.statement.display().to_string()
    }

    fn tell(&self, ui: &Ui, imported: &Imported) -> Result<(), CliError> {
        if self.as_json(ui) {
            json_line(ui, &imported.to_json(&self.name()))?;
        } else {
            let mut lines = imported.text_lines(&self.name());
            if let Some(first) = lines.first_mut() {
                *first = if imported.passed() {
                    ui.good(first)
                } else {
                    ui.bad(first)
                };
            }
            lines.push(String::new());
            also_unread(ui.raw(lines.join("\n").as_bytes()))?;
        }
        let receipts = imported.original.iter().flat_map(|one| &one.warnings);
        for warning in imported.warnings.iter().chain(receipts) {
            ui.warn(visible(warning));
        }
        Ok(())
    }

    /// Leaves a record for programs, and returns the error for people.
    fn give_up(&self, ui: &Ui, kind: &str, error: CliError) -> Result<CliError, CliError> {
        if self.as_json(ui) {
            let detail = visible(&error.messages().join(": "));
            json_line(ui, &error_record(&self.name(), kind, &detail))?;
        }
        Ok(error)
    }
}

fn json_line(ui: &Ui, record: &[u8]) -> Result<(), CliError> {
    also_unread(ui.json_line(&String::from_utf8_lossy(record)))
}
