//! `digest`: SHA-256 over the exact bytes of an archive.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use cli_shell::{CliError, Ui, exit};
use serde::Serialize;

use crate::package;

/// The archive.
#[derive(Debug, Clone, Args)]
pub struct Digest {
    /// The archive; it is not unpacked, so any file has a digest
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Serialize)]
struct Record {
    file: String,
    artifact_digest: String,
    artifact_bytes: u64,
}

impl Digest {
    pub(crate) fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let bytes = package::archive_bytes(&self.file)?;
        let record = Record {
            file: self.file.display().to_string(),
            artifact_digest: plugin_archive::digest(&bytes).to_string(),
            artifact_bytes: bytes.len() as u64,
        };
        ui.record(&record, |record| record.artifact_digest.clone())?;
        Ok(exit::ok())
    }
}
