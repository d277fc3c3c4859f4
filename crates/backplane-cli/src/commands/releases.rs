//! `backplane releases`: what was ever published of a plugin, newest first.

use std::process::ExitCode;

use backplane_client::{ClientError, Object, ReleasesPage};
use clap::Args;
use cli_shell::{CliError, Format, Ui, exit};

use crate::name::{self, PluginName};
use crate::pages::{self, HowMany};
use crate::registry::Registry;
use crate::settings::RemoteArgs;
use crate::wire;

/// Arguments of `backplane releases`.
#[derive(Debug, Clone, Args)]
pub struct ReleasesArgs {
    /// The plugin
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    how_many: HowMany,
    #[command(flatten)]
    remote: RemoteArgs,
}

pub(crate) fn run(args: &ReleasesArgs, ui: &Ui) -> Result<ExitCode, CliError> {
    let text = &args.name;
    let name: PluginName = text.parse().map_err(|error| name::refused(text, error))?;
    if name.at.is_some() {
        let error = CliError::usage(format!("`{text}` is more than a plugin's name"));
        return Err(error.hint(format!("`backplane resolve {text}` shows that one release")));
    }
    let registry = Registry::open(&args.remote, ui)?;
    let page = |cursor, count| {
        let limit = Some(count);
        let page = ReleasesPage { cursor, limit };
        registry.client().releases_call(&name.plugin, &page)
    };
    let explain = |error| {
        let ClientError::HttpStatus { status: 404 } = error else {
            return registry.explain(error);
        };
        let at = &registry.settings().registry;
        CliError::no(format!("`{at}` has no plugin `{}`", name.plugin))
            .hint("`backplane catalog` lists the plugins")
    };
    let show = |entry: &Object| show(entry, ui);
    let shown = pages::each(&registry, args.how_many, page, show, explain)?;
    if shown.more {
        ui.hint("there are more: `--all` shows them, `--limit N` some");
    }
    Ok(exit::ok())
}

fn show(release: &Object, ui: &Ui) -> Result<(), CliError> {
    if ui.format() == Format::Json {
        return ui.json(release);
    }
    let shown = |key| wire::shown(release, key).unwrap_or_else(|| "-".to_owned());
    let channels = wire::texts(release, "channels").join(" ");
    let line = format!(
        "{}  {:<10}  {:<9}  {}  {channels}",
        shown("release_id"),
        shown("version"),
        shown("status"),
        shown("published_at"),
    );
    ui.data(line.trim_end())
}
