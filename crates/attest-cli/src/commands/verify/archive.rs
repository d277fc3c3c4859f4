//! `verify --archive FILE`: a receipt with its ledger, from somebody else.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use attest_engine::recompute::OnDisk;
use attest_exchange::archive::{self, Archive, ArchiveError, Limits};
use attest_verify::trust::Trust;
use attest_verify::{Check, CheckName, Options, Outcome, Status, error_record};
use clap::Args;
use cli_shell::{CliError, Format, Ui, exit, visible};
use safe_fs::SafeFsError;
use serde::Serialize;

use crate::answer::also_unread;
use crate::prerequisite::Rule;

/// An archive, and how much of it is taken.
#[derive(Debug, Clone, Args)]
pub(crate) struct FromArchive {
    /// Verify the receipt in this archive of `attest causal export`, and its ledger
    #[arg(long, value_name = "FILE", help_heading = "Archives")]
    pub(super) archive: Option<PathBuf>,
    /// Refuse an archive of more bytes [default: 67108864, 64 MiB]
    #[arg(long, value_name = "N", help_heading = "Archives")]
    max_archive_bytes: Option<u64>,
    /// Refuse one that unpacks to more bytes [default: 536870912, 512 MiB]
    #[arg(long, value_name = "N", help_heading = "Archives")]
    max_unpacked_bytes: Option<u64>,
    /// Refuse one with more entries [default: 10000]
    #[arg(long, value_name = "N", help_heading = "Archives")]
    max_entries: Option<u64>,
    /// Refuse one with a larger entry [default: 67108864, 64 MiB]
    #[arg(long, value_name = "N", help_heading = "Archives")]
    max_entry_bytes: Option<u64>,
}

/// The last record of `--format json`.
#[derive(Debug, Serialize)]
struct Record {
    archive: String,
    verdict: &'static str,
    partial: bool,
}

#[derive(Debug, thiserror::Error)]
enum Unread {
    #[error("cannot read the archive `{}`", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: SafeFsError,
    },
    #[error("`{}`", path.display())]
    Archive {
        path: PathBuf,
        #[source]
        source: ArchiveError,
    },
}

impl FromArchive {
    /// Options that mean nothing without an archive.
    pub(super) fn rules(&self) -> [Rule; 4] {
        [
            ("--max-archive-bytes", self.max_archive_bytes),
            ("--max-unpacked-bytes", self.max_unpacked_bytes),
            ("--max-entries", self.max_entries),
            ("--max-entry-bytes", self.max_entry_bytes),
        ]
        .map(|(option, value)| Rule {
            option,
            given: value.is_some(),
            requires: "--archive",
            met: self.archive.is_some(),
            why: "a receipt by itself has a limit of its own",
        })
    }

    fn limits(&self) -> Limits {
        let default = Limits::default();
        Limits {
            archive: self.max_archive_bytes.unwrap_or(default.archive),
            unpacked: self.max_unpacked_bytes.unwrap_or(default.unpacked),
            entries: self.max_entries.unwrap_or(default.entries),
            entry: self.max_entry_bytes.unwrap_or(default.entry),
        }
    }

    /// Judges the archive. Keys in it are not looked at: the reader's own store decides.
    pub(super) fn verify(
        &self,
        ui: &Ui,
        path: &Path,
        trust: &Trust,
        options: &Options,
        workspace: &OnDisk,
    ) -> Result<ExitCode, CliError> {
        let archive = match read(path, &self.limits()) {
            Ok(archive) => archive,
            Err(error) => return Err(give_up(ui, path, error)?),
        };
        let name = format!("{}:receipt.yaml", path.display());
        let mut outcome =
            match attest_verify::verify(&archive.receipt, trust, options, Some(workspace)) {
                Ok(outcome) => outcome,
                Err(error) => {
                    let record = error.to_json(&name);
                    json_line(ui, &record)?;
                    return Err(CliError::operation(error.message(&name)));
                }
            };
        let linkage = linkage(&archive, &outcome);
        outcome.add_linkage(linkage);
        super::tell(ui, &name, &outcome)?;
        conclude(ui, path, archive.partial, &outcome)?;
        Ok(if outcome.passed() {
            exit::ok()
        } else {
            exit::no()
        })
    }
}

fn read(path: &Path, limits: &Limits) -> Result<Archive, Unread> {
    let bytes = safe_fs::read_bounded(path, limits.archive).map_err(|source| match source {
        SafeFsError::TooLarge { .. } => Unread::Archive {
            path: path.to_owned(),
            source: ArchiveError::too_long(limits),
        },
        source => Unread::File {
            path: path.to_owned(),
            source,
        },
    })?;
    archive::read(&bytes, limits).map_err(|source| Unread::Archive {
        path: path.to_owned(),
        source,
    })
}

fn linkage(archive: &Archive, outcome: &Outcome) -> Check {
    match &outcome.receipt {
        Some(receipt) => archive.linkage(receipt),
        None => Check::new(
            CheckName::ChainLinkage,
            Status::Skipped,
            "schema check failed",
        ),
    }
}

fn conclude(ui: &Ui, path: &Path, partial: bool, outcome: &Outcome) -> Result<(), CliError> {
    let record = Record {
        archive: path.display().to_string(),
        verdict: outcome.verdict.as_str(),
        partial,
    };
    also_unread(ui.record(&record, |record| {
        let suffix = if record.partial { " (partial)" } else { "" };
        let name = visible(&record.archive);
        format!("archive {name}: {}{suffix}", record.verdict)
    }))
}

/// Leaves a record for programs, and returns the error for people.
fn give_up(ui: &Ui, path: &Path, error: Unread) -> Result<CliError, CliError> {
    let kind = match &error {
        Unread::Archive { source, .. } if source.is_resource_limit() => "resource-limit",
        _ => "operational",
    };
    let detail = super::one_line(&error);
    json_line(ui, &error_record(&super::subject(path), kind, &detail))?;
    Ok(CliError::operation(error))
}

fn json_line(ui: &Ui, record: &[u8]) -> Result<(), CliError> {
    if ui.format() != Format::Json {
        return Ok(());
    }
    super::json_line(ui, record)
}
