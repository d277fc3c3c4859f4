//! `backplane catalog`: the plugins that a registry has.

use std::process::ExitCode;

use backplane_client::{CatalogPage, Object};
use clap::Args;
use cli_shell::{CliError, Format, Ui, exit, layout};

use crate::pages::{self, HowMany};
use crate::registry::Registry;
use crate::settings::RemoteArgs;
use crate::wire;

/// The longest text to search for, in characters.
const LONGEST: usize = 200;

/// Arguments of `backplane catalog`.
#[derive(Debug, Clone, Args)]
pub struct CatalogArgs {
    /// A part of the name or the description
    #[arg(value_name = "QUERY")]
    query: Option<String>,
    #[command(flatten)]
    how_many: HowMany,
    #[command(flatten)]
    remote: RemoteArgs,
}

pub(crate) fn run(args: &CatalogArgs, ui: &Ui) -> Result<ExitCode, CliError> {
    args.query.as_deref().map_or(Ok(()), check)?;
    let registry = Registry::open(&args.remote, ui)?;
    let page = |cursor, count| {
        registry.client().catalog_call(&CatalogPage {
            cursor,
            limit: Some(count),
            search: args.query.clone(),
        })
    };
    let show = |entry: &Object| show(entry, ui);
    let explain = |error| registry.explain(error);
    let shown = pages::each(&registry, args.how_many, page, show, explain)?;
    if shown.entries == 0 {
        let of = &registry.settings().registry;
        return Err(match &args.query {
            Some(query) => CliError::no(format!(
                "`{of}` has no plugin with `{query}` in its name or description"
            )),
            None => CliError::no(format!("`{of}` has no plugins")),
        });
    }
    if shown.more {
        ui.hint("there are more: `--all` shows them, `--limit N` some");
    }
    Ok(exit::ok())
}

/// Refuses what a registry would, whose reasons for a request that only reads are not heard.
fn check(query: &str) -> Result<(), CliError> {
    let fits = (1..=LONGEST).contains(&query.chars().count());
    if fits && !query.chars().any(char::is_control) {
        return Ok(());
    }
    Err(CliError::usage(format!(
        "what is searched for must be 1 to {LONGEST} characters, none of them a control character"
    ))
    .hint("without it all plugins are listed"))
}

fn show(entry: &Object, ui: &Ui) -> Result<(), CliError> {
    if ui.format() == Format::Json {
        return ui.json(entry);
    }
    let stable = wire::below(entry, "channels").and_then(|all| wire::below(all, "stable"));
    let version = stable.map_or("-".to_owned(), |release| {
        wire::shown(release, "version").unwrap_or_else(|| "no version".to_owned())
    });
    let name = wire::shown(entry, "plugin_id").unwrap_or_default();
    let head = format!("{name:<24}  {version:<10}");
    let room = layout::WIDTH
        .saturating_sub(head.chars().count() + 2)
        .max(16);
    let description = wire::shown(entry, "description").unwrap_or_default();
    let line = format!("{head}  {}", layout::cell(&description, room));
    ui.data(line.trim_end())
}
