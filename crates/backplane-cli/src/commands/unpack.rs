//! `unpack`: the files of an archive in a new directory, all of them or none.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use cli_shell::{CliError, Ui, exit, layout, visible};
use digest_text::Sha256Text;
use serde::Serialize;

use crate::staged::Target;
use crate::{package, words};

const RULE: &str = "\
The archive is checked whole before anything is written. The files are written
into a directory beside DIR, `.backplane-unpack-…`, which becomes DIR in one
step; one that was left by a killed run is removed by the next one. DIR must
not be there, or be empty. Modes are those of the archive.";

/// An archive, and where its files go.
#[derive(Debug, Clone, Args)]
#[command(after_help = RULE)]
pub struct Unpack {
    /// The archive
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The directory to make
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Unpack only what has this digest: `sha256:` and 64 hex digits
    #[arg(long, value_name = "DIGEST")]
    digest: Option<Sha256Text>,
}

/// What `--format json` prints, one record.
#[derive(Serialize)]
struct Record {
    directory: String,
    artifact_digest: String,
    unpacked_bytes: u64,
    files: usize,
}

impl Unpack {
    pub(crate) fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let target = Target::find(&self.output)?;
        let archive = package::archive_bytes(&self.file)?;
        let digest = plugin_archive::digest(&archive);
        if let Some(wanted) = self.digest.filter(|wanted| *wanted != digest) {
            return Err(CliError::no(format!(
                "`{}` is another archive: its digest is {digest}, not {wanted}",
                self.file.display()
            ))
            .hint("nothing was unpacked; fetch the archive again, or correct the digest"));
        }
        let snapshot = package::snapshot_of(&archive, &self.file)?;
        target.write(&snapshot)?;
        let record = Record {
            directory: self.output.display().to_string(),
            artifact_digest: digest.to_string(),
            unpacked_bytes: package::total(&snapshot),
            files: snapshot.files.len(),
        };
        ui.record(&record, text)?;
        Ok(exit::ok())
    }
}

fn text(record: &Record) -> String {
    let files = words::count(record.files, "file");
    layout::pairs(&[
        ("into", Some(visible(&record.directory))),
        ("digest", Some(record.artifact_digest.clone())),
        (
            "holds",
            Some(format!("{files}, {}", words::bytes(record.unpacked_bytes))),
        ),
    ])
}
