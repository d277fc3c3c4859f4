//! `digest`: SHA-256 over the exact bytes of an archive.

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use cli_shell::{CliError, Ui, exit};
use plugin_archive::Limits;

/// The archive.
#[derive(Debug, Clone, Args)]
pub struct Digest {
    /// The archive
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl Digest {
    pub(crate) fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let limit = Limits::default().archive_bytes;
        let file = fs_err::File::open(&self.file).map_err(CliError::operation)?;
        let mut bytes = Vec::new();
        file.take(limit + 1)
            .read_to_end(&mut bytes)
            .map_err(CliError::operation)?;
        if bytes.len() as u64 > limit {
            return Err(CliError::operation(format!(
                "`{}` is no plugin archive: it has more than {limit} bytes",
                self.file.display()
            )));
        }
        ui.data(plugin_archive::digest(&bytes))?;
        Ok(exit::ok())
    }
}
