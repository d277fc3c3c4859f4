//! `backplane yank`: a release that nobody should start to use, or may use again.

use std::process::ExitCode;

use backplane_client::{Call, Json, Method, Object};
use clap::Args;
use cli_shell::{CliError, Ui, exit};

use crate::name::{self, At, PluginName, lone_release_hint};
use crate::registry::Registry;
use crate::release;
use crate::settings::RemoteArgs;

/// Arguments of `backplane yank`.
#[derive(Debug, Clone, Args)]
pub struct YankArgs {
    /// The release, with its plugin
    #[arg(value_name = "NAME@RELEASE")]
    what: String,
    /// Why, for those who meet it
    #[arg(long, value_name = "TEXT", conflicts_with = "undo")]
    reason: Option<String>,
    /// Take it back
    #[arg(long)]
    undo: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

pub(crate) fn run(args: &YankArgs, ui: &Ui) -> Result<ExitCode, CliError> {
    let text = &args.what;
    let name: PluginName = text.parse().map_err(|error| name::refused(text, error))?;
    let Some(At::Release(id)) = &name.at else {
        let error = CliError::usage(format!("`{text}` does not name one release"));
        return Err(match name.lone_release() {
            Some(id) => error.hint(lone_release_hint(id)),
            None => error.hint(format!(
                "`backplane releases {}` lists them; then `NAME@r-…`",
                name.plugin
            )),
        });
    };
    let registry = Registry::open(&args.remote, ui)?;
    // The registry takes the release alone: that it is one of this plugin is found out first.
    release::resolve(&registry, &name)?;
    let reason = args.reason.iter();
    let members = reason.map(|reason| ("reason".to_owned(), Json::Text(reason.clone())));
    let body = Object::from_members(members.collect()).map_err(CliError::operation)?;
    let verb = if args.undo { "unyank" } else { "yank" };
    let path = format!("/releases/{id}/{verb}");
    let client = registry.client();
    let call = client.request_call(Method::Post, &path, Some(&Json::Object(body)));
    let changed = registry.ask(call.map(Call::asking_why))?;
    release::show(&changed, ui)?;
    Ok(exit::ok())
}
