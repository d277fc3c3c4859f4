//! `init`: makes a folder a workspace of attest.

use std::path::Path;
use std::process::ExitCode;

use attest_engine::layout;
use clap::Args;
use cli_shell::{CliError, Format, Ui, exit};
use serde::Serialize;

/// Nothing to choose: it is the current folder.
#[derive(Debug, Clone, Args)]
pub struct Init {}

#[derive(Debug, Serialize)]
struct Record<'a> {
    created: &'a [String],
    already_present: &'a [String],
}

impl Init {
    pub(crate) fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let done = layout::init(Path::new(".")).map_err(|error| {
            CliError::operation(error).because("this folder cannot become a workspace of attest")
        })?;
        if ui.format() == Format::Json {
            ui.json(&Record {
                created: &done.created,
                already_present: &done.present,
            })?;
        } else {
            for line in done.lines() {
                ui.data(line)?;
            }
        }
        Ok(exit::ok())
    }
}
