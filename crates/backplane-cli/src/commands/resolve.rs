//! `backplane resolve`: the release that a name means.

use std::process::ExitCode;

use backplane_client::{Object, Selection};
use clap::Args;
use cli_shell::{CliError, Ui, exit};

use crate::name::{self, NameError, PluginName, ReleaseId};
use crate::registry::Registry;
use crate::release;
use crate::settings::RemoteArgs;

/// Arguments of `backplane resolve`.
#[derive(Debug, Clone, Args)]
pub struct ResolveArgs {
    /// A plugin, at the channel `stable`, or at another channel or a release
    #[arg(
        value_name = "NAME[@CHANNEL|@RELEASE]",
        required_unless_present = "release"
    )]
    name: Option<String>,
    /// A release, whatever its plugin
    #[arg(long, value_name = "RELEASE", conflicts_with = "name")]
    release: Option<String>,
    #[command(flatten)]
    remote: RemoteArgs,
}

pub(crate) fn run(args: &ResolveArgs, ui: &Ui) -> Result<ExitCode, CliError> {
    let found = match (&args.name, &args.release) {
        (Some(text), _) => {
            let name: PluginName = text.parse().map_err(|error| name::refused(text, error))?;
            release::resolve(&Registry::open(&args.remote, ui)?, &name)?
        }
        (None, release) => by_id(release.as_deref().unwrap_or_default(), args, ui)?,
    };
    release::show(&found, ui)?;
    Ok(exit::ok())
}

fn by_id(text: &str, args: &ResolveArgs, ui: &Ui) -> Result<Object, CliError> {
    let id: ReleaseId = text
        .parse()
        .map_err(|error: NameError| name::refused(text, error))?;
    let registry = Registry::open(&args.remote, ui)?;
    let selection = Selection::release(id.as_str());
    release::found(&registry, &selection, &format!("release `{id}`"))
}
