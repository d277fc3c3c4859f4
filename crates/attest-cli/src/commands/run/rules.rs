//! Which options of `run` need which others.

use cli_shell::CliError;

use super::Run;
use crate::prerequisite::{self, Rule};

/// Refuses options that could not take effect.
pub(super) fn check(run: &Run) -> Result<(), CliError> {
    prerequisite::check(&[
        Rule {
            option: "--key",
            given: run.key.is_some(),
            requires: "--sign",
            met: run.sign,
            why: "a key was named but nothing would be signed",
        },
        Rule {
            option: "a second --output",
            given: run.output.len() > 1,
            requires: "--wrap",
            met: false,
            why: "a pipeline run has one receipt, and declares outputs in the pipeline file",
        },
    ])
}
