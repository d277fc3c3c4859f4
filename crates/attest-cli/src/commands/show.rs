//! `show RECEIPT`: a receipt for people.

use std::path::PathBuf;
use std::process::ExitCode;

use attest_receipt::receipt::Receipt;
use clap::Args;
use cli_shell::{CliError, Format, Ui, exit};
use serde::Serialize;

use crate::prerequisite::{self, Rule};
use crate::receipt_file;
use crate::receipt_text;

/// A receipt.
#[derive(Debug, Clone, Args)]
pub struct Show {
    /// The receipt
    #[arg(value_name = "RECEIPT")]
    receipt: PathBuf,
    /// Also what the steps wrote, all of it that was recorded
    #[arg(long)]
    logs: bool,
}

/// What `--format json` prints: the receipt as it is, and what is incoherent in it.
#[derive(Debug, Serialize)]
struct Record<'x> {
    receipt: String,
    problems: Vec<String>,
    document: &'x Receipt,
}

impl Show {
    pub(crate) fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        prerequisite::check(&[Rule {
            option: "--logs",
            given: self.logs,
            requires: "--format human",
            met: ui.format() == Format::Human,
            why: "the JSON has all that was recorded",
        }])?;
        let receipt = receipt_file::read(&self.receipt)?;
        let record = Record {
            receipt: self.receipt.display().to_string(),
            problems: receipt.problems(),
            document: &receipt,
        };
        ui.record(&record, |record| {
            receipt_text::text(
                &record.receipt,
                record.document,
                &record.problems,
                self.logs,
            )
        })?;
        Ok(exit::ok())
    }
}
