//! `inspect`: what a package holds, and everything that was found in it.

mod view;

use std::path::PathBuf;
use std::process::ExitCode;

use agent_plugin::{Diagnostic, Inspection, Options, Severity, Transport};
use agent_plugin_dir::LoadError;
use clap::Args;
use cli_shell::{CliError, Ui, exit};
use plugin_archive::{Limits, Modes};

use crate::package::{self, Loaded};

const RULE: &str = "\
A directory is read along links that stay inside of it; links out of it disable
what they stand for. Nothing of the package is run, written or fetched.
With `--format json` the answer is {\"package\":…,\"diagnostics\":[…]}, where
`package` is null if the package is rejected.";

/// A package, and how it is judged.
#[derive(Debug, Clone, Args)]
#[command(after_help = RULE)]
pub struct Inspect {
    /// The directory of a package, or an archive
    #[arg(value_name = "DIR|FILE")]
    package: PathBuf,
    /// Exit with 1 on any error, also if the rest of the package loads
    #[arg(long)]
    strict: bool,
    /// Load skills with another name than their directory and metadata that is
    /// no text, with warnings
    #[arg(long)]
    lenient: bool,
    /// The transports that the host has: `stdio`, `streamable-http`, `sse`
    /// [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = transport)]
    transports: Vec<Transport>,
}

fn transport(name: &str) -> Result<Transport, String> {
    Transport::from_name(name)
        .ok_or_else(|| "a transport is `stdio`, `streamable-http` or `sse`".to_owned())
}

impl Inspect {
    pub(crate) fn run(&self, ui: &Ui) -> Result<ExitCode, CliError> {
        let (mut loaded, digest) = self.load()?;
        if let Ok(package) = &mut loaded.result {
            let same = agent_plugin::collisions(&package.files);
            package.diagnostics.extend(same);
        }
        let inspection = Inspection::from(&loaded.result);
        ui.record(&inspection, |_| view::text(&loaded, digest.as_deref(), ui))?;
        let wrong = |found: &Diagnostic| found.severity == Severity::Error;
        let accepted = match &loaded.result {
            Ok(package) => !self.strict || !package.diagnostics.iter().any(wrong),
            Err(_) => false,
        };
        Ok(if accepted { exit::ok() } else { exit::no() })
    }

    fn load(&self) -> Result<(Loaded, Option<String>), CliError> {
        let options = self.options();
        if !package::is_directory(&self.package)? {
            let archive = package::archive_bytes(&self.package)?;
            let snapshot = package::snapshot_of(&archive, &self.package)?;
            let loaded = Loaded {
                result: agent_plugin::load(snapshot.files, &options),
                modes: snapshot.modes,
            };
            let digest = plugin_archive::digest(&archive).to_string();
            return Ok((loaded, Some(digest)));
        }
        let limits = Limits::default();
        let read = agent_plugin_dir::load_directory_with_metadata(&self.package, &options, &limits);
        let loaded = match read {
            Ok((package, modes)) => Loaded {
                result: Ok(package),
                modes,
            },
            Err(LoadError::Rejected(found)) => Loaded {
                result: Err(found),
                modes: Modes::new(),
            },
            Err(LoadError::Read(error)) => return Err(package::unread(error, &self.package)),
            Err(other) => return Err(CliError::operation(other)),
        };
        Ok((loaded, None))
    }

    fn options(&self) -> Options {
        let mut options = Options {
            lenient: self.lenient,
            ..Options::default()
        };
        if !self.transports.is_empty() {
            options.transports = self.transports.iter().copied().collect();
        }
        options
    }
}
