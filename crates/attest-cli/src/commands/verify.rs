//! `verify RECEIPT…`: judges receipts. It starts no process and no runtime, opens no socket and
//! writes no file.

mod archive;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use attest_engine::recompute::OnDisk;
use attest_receipt::time::Time;
use attest_verify::trust::Trust;
use attest_verify::{Operational, Options, Outcome, Policy, Requirement, error_record, policy};
use clap::{ArgAction, Args};
use cli_shell::{CliError, Format, Ui, clock, exit, visible};
use keys::load_trust;

use self::archive::FromArchive;
use crate::answer::also_unread;
use crate::places::{Workspace, folder};
use crate::prerequisite::{self, Rule};
use crate::receipt_file::{self, Fault, FileError, Other};

/// What to judge, and by what.
#[derive(Debug, Clone, Args)]
pub struct Verify {
    /// The receipts
    #[arg(
        value_name = "RECEIPT",
        required_unless_present = "archive",
        conflicts_with = "archive"
    )]
    receipts: Vec<PathBuf>,
    /// Refuse unless this is established: signature, timestamp, recompute, linkage, trust,
    /// success, plugins, plugin:NAME (repeatable, or with commas)
    #[arg(long, value_name = "PROPERTY", help_heading = "Judgement")]
    require: Vec<String>,
    /// Refuse unless the rules of this file hold too: signers, steps, plugins, age
    #[arg(long, value_name = "FILE", help_heading = "Judgement")]
    policy: Option<PathBuf>,
    /// Whether the signature is checked; without, nothing says who made the receipt
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = true,
        action = ArgAction::Set,
        hide_possible_values = true,
        help_heading = "Judgement"
    )]
    check_signatures: bool,
    /// Hash the pipeline, inputs and outputs in the workspace again and compare
    #[arg(long, help_heading = "Judgement")]
    recompute: bool,
    /// Let the receipt of a revoked key say itself that it was signed before
    #[arg(long, help_heading = "Judgement")]
    trust_receipt_timestamp: bool,
    /// The trusted keys [default: .attest/trust in the workspace]
    #[arg(long, value_name = "DIR", value_parser = folder(), help_heading = "Judgement")]
    trust_store: Option<PathBuf>,
    /// Accepted and without effect: no network is ever used
    #[arg(long, help_heading = "Judgement")]
    offline: bool,
    #[command(flatten)]
    from: FromArchive,
    #[command(flatten)]
    workspace: Workspace,
}

/// Why a receipt could not be judged: the loop over the receipts ends.
#[derive(Debug, thiserror::Error)]
enum Unjudged {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{message}")]
    Document {
        message: String,
        source: Operational,
        other: Option<Other>,
    },
}

impl Verify {
    pub(crate) fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        prerequisite::check(&self.rules())?;
        prerequisite::check(&self.from.rules())?;
        let options = self.options()?;
        let trust = self.trust();
        let workspace = OnDisk::new(self.workspace.path());
        if let Some(path) = &self.from.archive {
            return self.from.verify(ui, path, &trust, &options, &workspace);
        }
        let mut all_pass = true;
        for path in &self.receipts {
            match judge(path, &trust, &options, &workspace) {
                Ok((outcome, other)) => {
                    tell(ui, &subject(path), &outcome)?;
                    if let Some(other) = other.filter(|_| !outcome.passed()) {
                        ui.status(other.hint());
                    }
                    all_pass &= outcome.passed();
                }
                Err(error) => return Err(give_up(ui, path, error)?),
            }
        }
        if self.lacks_trust(&trust) && !all_pass && ui.format() == Format::Human {
            ui.hint("`--trust-store DIR` names a folder of trusted keys");
        }
        Ok(if all_pass { exit::ok() } else { exit::no() })
    }

    /// `--trust-store` stands also without signatures: authorities of timestamps are pinned there.
    fn rules(&self) -> [Rule; 2] {
        [
            Rule {
                option: "--trust-receipt-timestamp",
                given: self.trust_receipt_timestamp,
                requires: "--check-signatures true",
                met: self.check_signatures,
                why: "without the signature no key is asked about",
            },
            Rule {
                option: "--workspace",
                given: self.workspace.is_named() && self.trust_store.is_some(),
                requires: "--recompute",
                met: self.recompute,
                why: "with --trust-store nothing else is read there",
            },
        ]
    }

    /// Whether signatures are judged without anybody having said whose keys are trusted.
    fn lacks_trust(&self, trust: &Trust) -> bool {
        self.check_signatures && matches!(trust, Trust::Absent { .. })
    }

    fn options(&self) -> Result<Options, CliError> {
        Ok(Options {
            check_signatures: self.check_signatures,
            trust_receipt_timestamp: self.trust_receipt_timestamp,
            recompute: self.recompute,
            require: Requirement::parse(&self.require).map_err(CliError::usage)?,
            policy: self.policy.as_deref().map(read_policy).transpose()?,
            now: Time::from(clock::now()),
        })
    }

    /// Reads the trust store, once for all receipts. Whoever names a store means that one alone.
    fn trust(&self) -> Trust {
        match &self.trust_store {
            Some(folder) => load_trust(folder, None),
            None => load_trust(self.workspace.trust().path(), Some(&self.workspace.keys())),
        }
    }
}

fn judge(
    path: &Path,
    trust: &Trust,
    options: &Options,
    workspace: &OnDisk,
) -> Result<(Outcome, Option<Other>), Unjudged> {
    let bytes = receipt_file::bytes(path)?;
    let other = Other::of(&bytes);
    match attest_verify::verify(&bytes, trust, options, Some(workspace)) {
        Ok(outcome) => Ok((outcome, other)),
        Err(source) => Err(Unjudged::Document {
            message: source.message(&subject(path)),
            source,
            other,
        }),
    }
}

fn tell(ui: &Ui, subject: &str, outcome: &Outcome) -> Result<(), CliError> {
    if ui.format() == Format::Json {
        json_line(ui, &outcome.to_json(subject))?;
    } else {
        let mut lines = outcome.text_lines(subject);
        if let Some(first) = lines.first_mut() {
            *first = if outcome.passed() {
                ui.good(first)
            } else {
                ui.bad(first)
            };
        }
        lines.push(String::new());
        also_unread(ui.raw(lines.join("\n").as_bytes()))?;
    }
    for warning in &outcome.warnings {
        ui.warn(visible(warning));
    }
    Ok(())
}

/// Leaves a record for programs, and returns the error for people.
fn give_up(ui: &Ui, path: &Path, error: Unjudged) -> Result<CliError, CliError> {
    let (kind, detail) = match &error {
        Unjudged::Document {
            message, source, ..
        } if source.is_resource_limit() => ("resource-limit", message.clone()),
        Unjudged::Document { message, .. } => ("operational", message.clone()),
        Unjudged::File(file) => match file {
            FileError::Read {
                fault: Fault::TooLong,
                ..
            } => ("resource-limit", one_line(file)),
            _ => ("operational", one_line(file)),
        },
    };
    if ui.format() == Format::Json {
        json_line(ui, &error_record(&subject(path), kind, &detail))?;
    }
    Ok(match error {
        Unjudged::File(file) => file.into(),
        Unjudged::Document { message, other, .. } => {
            let error = CliError::operation(message);
            match other {
                Some(other) => error.hint(other.hint()),
                None => error,
            }
        }
    })
}

fn json_line(ui: &Ui, record: &[u8]) -> Result<(), CliError> {
    also_unread(ui.json_line(&String::from_utf8_lossy(record)))
}

fn subject(path: &Path) -> String {
    path.display().to_string()
}

fn one_line(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    visible(&text)
}

fn read_policy(path: &Path) -> Result<Policy, CliError> {
    let refused =
        |error: CliError| error.because(format!("cannot use the policy `{}`", path.display()));
    let bytes = safe_fs::read_bounded(path, policy::MAX_BYTES as u64)
        .map_err(|error| refused(CliError::config(error)))?;
    Policy::parse(&bytes).map_err(|error| refused(CliError::config(error)))
}
