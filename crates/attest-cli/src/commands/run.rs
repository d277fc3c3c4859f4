//! `run`: a pipeline, its receipt and what to say about it.

mod live;
mod pipeline;
mod rules;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use attest_engine::output::Record;
use clap::{Args, ValueEnum};
use cli_shell::{CliError, Ui};

/// What to run, and what to keep of it.
#[derive(Debug, Clone, Args)]
pub struct Run {
    /// The pipeline file [default: attest.yaml]
    #[arg(short, long, value_name = "FILE")]
    pipeline: Option<PathBuf>,
    /// Sign the receipt
    #[arg(long)]
    sign: bool,
    /// The key to sign with, by its id [default: the only one there is]
    #[arg(long, value_name = "ID")]
    key: Option<String>,
    /// How many steps may run at once
    #[arg(long, value_name = "N", default_value = "1")]
    jobs: NonZeroUsize,
    /// Write the receipt to this file instead of a new one in the state folder
    #[arg(long, value_name = "FILE")]
    output: Vec<PathBuf>,
    #[command(flatten)]
    keeping: Keeping,
}

/// What is kept of a run, and where.
#[derive(Debug, Clone, Args)]
pub(crate) struct Keeping {
    /// The folder of receipts, cache and ledger [default: .attest]
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
    /// How much of each step's two outputs the receipt records: `none`, `tail` (the last 64 KiB)
    /// or `full` (at most 4 MiB)
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        default_value_t,
        hide_possible_values = true
    )]
    pub(crate) record_output: RecordOutput,
}

/// How much of the outputs is recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecordOutput {
    /// Nothing
    None,
    /// The end
    #[default]
    Tail,
    /// As much as a receipt may hold
    Full,
}

impl From<RecordOutput> for Record {
    fn from(wish: RecordOutput) -> Self {
        match wish {
            RecordOutput::None => Self::None,
            RecordOutput::Tail => Self::Tail,
            RecordOutput::Full => Self::Full,
        }
    }
}

impl Run {
    pub(crate) fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        rules::check(self)?;
        pipeline::run(self, ui)
    }
}
