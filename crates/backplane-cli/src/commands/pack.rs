//! `pack`: the archive of a package, the same bytes on every machine.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agent_plugin::{Diagnostic, Options, Package};
use agent_plugin_dir::LoadError;
use clap::Args;
use cli_shell::{CliError, Format, Ui, exit, layout, visible};
use plugin_archive::{Limits, Modes};
use serde::Serialize;

use crate::{package, words};

const MODE: u32 = 0o644;

const RULE: &str = "\
The same files and modes make the same bytes on every machine. A link, a device
or a pipe in the directory is refused, hidden files are packed, and a package
whose manifest is rejected is not packed. FILE is written whole or not at all;
a file of that name is replaced.";

/// A package, and where its archive goes.
#[derive(Debug, Clone, Args)]
#[command(after_help = RULE)]
pub struct Pack {
    /// The directory of the package
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// The archive to write, outside of DIR; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    packing: Packing,
}

/// How a directory becomes an archive, for `pack` and `publish` alike.
#[derive(Debug, Clone, Args)]
pub(crate) struct Packing {
    /// Pack what links inside of DIR lead to, under the names of the links
    #[arg(long)]
    follow_links: bool,
    /// Write 0755 for what anybody may run and 0644 for the rest
    #[arg(long)]
    normalize_modes: bool,
}

/// What `--format json` prints, one record.
#[derive(Serialize)]
struct Record {
    file: String,
    name: String,
    version: Option<String>,
    artifact_digest: String,
    artifact_bytes: u64,
    unpacked_bytes: u64,
    files: usize,
}

impl Pack {
    pub(crate) fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        self.check_output(ui)?;
        let (archive, package) = self.packing.pack(&self.directory, ui)?;
        if self.to_stdout() {
            ui.raw(&archive)?;
            return Ok(exit::ok());
        }
        safe_fs::write_target(&self.output, &archive, MODE).map_err(unwritable)?;
        let record = Record {
            file: self.output.display().to_string(),
            name: package.name().to_owned(),
            version: package.version().map(str::to_owned),
            artifact_digest: plugin_archive::digest(&archive).to_string(),
            artifact_bytes: archive.len() as u64,
            unpacked_bytes: package.files.values().map(|file| file.len() as u64).sum(),
            files: package.files.len(),
        };
        ui.record(&record, text)?;
        Ok(exit::ok())
    }

    fn to_stdout(&self) -> bool {
        self.output == Path::new("-")
    }

    /// Finds out before the work that the archive could not be written.
    fn check_output(&self, ui: &Ui) -> Result<(), CliError> {
        package::need_directory(&self.directory)?;
        if self.to_stdout() {
            return self.check_stdout(ui);
        }
        let target = safe_fs::writable_target(&self.output).map_err(unwritable)?;
        let directory = fs_err::canonicalize(&self.directory).map_err(CliError::operation)?;
        if target.starts_with(&directory) {
            return Err(CliError::usage(format!(
                "`{}` lies in the directory that is packed, and would be packed next time",
                self.output.display()
            ))
            .hint("name a file outside of it"));
        }
        Ok(())
    }

    fn check_stdout(&self, ui: &Ui) -> Result<(), CliError> {
        if ui.format() == Format::Json {
            return Err(CliError::usage(
                "`--format json` needs a file as `--output`: standard output gets the archive",
            )
            .hint("name a file, or leave out `--format json`"));
        }
        if ui.writes_to_terminal() {
            return Err(CliError::usage("an archive is not written to a terminal")
                .hint("name a file as `--output`, or pipe into another program"));
        }
        Ok(())
    }
}

impl Packing {
    /// Whether anything is asked for that an archive which is there already cannot get.
    pub(crate) fn changes_something(&self) -> bool {
        self.follow_links || self.normalize_modes
    }

    /// Reads, loads and packs a directory; findings that do not reject the package are said.
    pub(crate) fn pack(&self, directory: &Path, ui: &Ui) -> Result<(Vec<u8>, Package), CliError> {
        let (package, mut modes) = self.load(directory, ui)?;
        words::say(&package.diagnostics, ui);
        if self.normalize_modes {
            package::normalize(&mut modes);
        }
        let archive = plugin_archive::pack(&package.files, &modes, &Limits::default());
        let archive = archive.map_err(|error| {
            let what = format!("`{}` is refused", directory.display());
            CliError::no(error).because(what)
        })?;
        Ok((archive, package))
    }

    fn load(&self, directory: &Path, ui: &Ui) -> Result<(Package, Modes), CliError> {
        let options = Options::default();
        if !self.follow_links {
            let snapshot = package::read(directory, false)?;
            return agent_plugin::load(snapshot.files, &options)
                .map(|package| (package, snapshot.modes))
                .map_err(|found| rejected(directory, &found, ui));
        }
        let limits = Limits::default();
        match agent_plugin_dir::load_directory_with_metadata(directory, &options, &limits) {
            Ok(loaded) => Ok(loaded),
            Err(LoadError::Rejected(found)) => Err(rejected(directory, &found, ui)),
            Err(LoadError::Read(error)) => Err(package::unread(error, directory)),
            Err(other) => Err(CliError::operation(other)),
        }
    }
}

fn rejected(directory: &Path, found: &[Diagnostic], ui: &Ui) -> CliError {
    words::say(found, ui);
    let word = safe_fs::shell_word(directory);
    CliError::no(format!(
        "`{}` is rejected, and not packed",
        directory.display()
    ))
    .hint(format!("`backplane inspect {word}` shows the package"))
}

fn unwritable(error: safe_fs::SafeFsError) -> CliError {
    CliError::operation(error)
        .because("the archive cannot be written")
        .hint("name a file in a directory that is there and that you may write to")
}

fn text(record: &Record) -> String {
    let files = words::count(record.files, "file");
    layout::pairs(&[
        ("name", Some(visible(&record.name))),
        ("version", record.version.as_deref().map(visible)),
        ("archive", Some(visible(&record.file))),
        ("digest", Some(record.artifact_digest.clone())),
        ("size", Some(words::bytes(record.artifact_bytes))),
        (
            "holds",
            Some(format!("{files}, {}", words::bytes(record.unpacked_bytes))),
        ),
    ])
}
