//! `run`: a pipeline or one wrapped command, its receipt and what to say about it.

mod asked;
mod collisions;
mod live;
mod log;
mod pipeline;
mod rules;
mod until_done;
mod wrap;

use std::cell::OnceCell;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use attest_engine::output::Record;
use clap::{Args, ValueEnum};
use cli_shell::{CliError, Ui};

use crate::stamping::Wish;
use crate::words::hidden;

pub(crate) use pipeline::{version, wrapper};
pub(crate) use until_done::block_on;

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
    #[command(flatten)]
    wish: Wish,
    /// Build twice, in two copies of the workspace, and compare what was made
    #[arg(long)]
    check_reproducibility: bool,
    /// Known so that it can be refused: steps are ordinary processes, or run in capsules
    #[arg(long, hide = true)]
    verify: bool,
    /// How many steps may run at once [default: 1]
    #[arg(long, value_name = "N", value_parser = count)]
    jobs: Option<NonZeroUsize>,
    /// Write the receipt to this file instead of a new one in the state folder; with `--wrap`, a
    /// declared output of the command (repeatable)
    #[arg(long = "output", value_name = "PATH")]
    outputs: Vec<String>,
    /// Write the receipt to this file, also with `--wrap`
    #[arg(long, value_name = "FILE")]
    receipt: Option<PathBuf>,
    /// Also write to this file, which is replaced, what the plugins say
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,
    /// Known so that it can be said where they belong
    #[arg(hide = true)]
    misplaced: Vec<String>,
    #[command(flatten)]
    keeping: Keeping,
    #[command(flatten)]
    wrapped: Wrapped,
}

/// What is wrapped, if anything is.
#[derive(Debug, Clone, Args)]
pub(crate) struct Wrapped {
    /// Run the command after `--` as it is and attest it; ends with its exit code
    #[arg(long, help_heading = "Wrapping a command")]
    wrap: bool,
    /// The name of the step that the receipt records
    #[arg(long, value_name = "STEP", help_heading = "Wrapping a command")]
    name: Option<String>,
    /// A declared input: a file or a folder, taken literally (repeatable)
    #[arg(
        long = "input",
        value_name = "PATH",
        help_heading = "Wrapping a command"
    )]
    inputs: Vec<String>,
    /// A variable whose value appears in no receipt (repeatable)
    #[arg(
        long = "secret",
        value_name = "NAME",
        help_heading = "Wrapping a command"
    )]
    secrets: Vec<String>,
    /// Where the command runs, and what declared paths are relative to [default: the current
    /// folder]
    #[arg(long, value_name = "DIR", help_heading = "Wrapping a command")]
    workspace: Option<PathBuf>,
    /// Write to this file what became of the command and of its receipt, as JSON
    #[arg(long, value_name = "FILE", help_heading = "Wrapping a command")]
    report: Option<PathBuf>,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
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

fn count(text: &str) -> Result<NonZeroUsize, String> {
    text.parse()
        .map_err(|_| "a whole number from 1 is asked for".to_owned())
}

impl Run {
    pub(crate) fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        rules::check(self, ui)?;
        if self.wrapped.wrap {
            let secrets = wrap::secrets(self);
            return wrap::run(self, ui, &secrets).map_err(|error| hidden(error, &secrets));
        }
        let known = OnceCell::new();
        pipeline::run(self, ui, &known).map_err(|error| {
            let secrets = known.get_or_init(|| pipeline::secrets(self));
            hidden(error, secrets)
        })
    }
}
