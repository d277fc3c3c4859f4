//! `backplane promote`: a channel points at another release.

use std::process::ExitCode;

use backplane_client::{Json, Method, Object, RequestPath};
use clap::Args;
use cli_shell::{CliError, ErrorKind, Ui, exit};

use crate::name::{self, ChannelName, NameError, PluginName, ReleaseId};
use crate::registry::Registry;
use crate::release;
use crate::settings::RemoteArgs;

/// Arguments of `backplane promote`.
#[derive(Debug, Clone, Args)]
pub struct PromoteArgs {
    /// The plugin
    #[arg(value_name = "NAME")]
    name: String,
    /// The release that the channel is to point at
    #[arg(value_name = "RELEASE")]
    release: String,
    /// The channel
    #[arg(long, value_name = "CHANNEL")]
    channel: String,
    /// Do so only if it points at this release now
    #[arg(long, value_name = "RELEASE")]
    expect: Option<String>,
    #[command(flatten)]
    remote: RemoteArgs,
}

pub(crate) fn run(args: &PromoteArgs, ui: &Ui) -> Result<ExitCode, CliError> {
    let name: PluginName = args
        .name
        .parse()
        .map_err(|error| name::refused(&args.name, error))?;
    if name.at.is_some() {
        let error = CliError::usage(format!("`{name}` is more than a plugin's name"));
        return Err(error.hint("the release stands behind it: `promote NAME RELEASE --channel C`"));
    }
    let channel: ChannelName = args
        .channel
        .parse()
        .map_err(|error| name::refused(&args.channel, error))?;
    let mut members = vec![("release_id", release_id(&args.release)?)];
    if let Some(expected) = &args.expect {
        members.push(("expected_release_id", release_id(expected)?));
    }
    let members = members.into_iter();
    let members = members.map(|(key, id)| (key.to_owned(), Json::Text(id.as_str().to_owned())));
    let body = Object::from_members(members.collect()).map_err(CliError::operation)?;
    let registry = Registry::open(&args.remote, ui)?;
    let path = path(&name.plugin, channel.as_str()).map_err(CliError::usage)?;
    let client = registry.client();
    let call = client.request_call(Method::Put, &path, Some(&Json::Object(body)));
    let changed = registry
        .ask(call.map(backplane_client::Call::asking_why))
        .map_err(|error| match args.expect {
            Some(_) if error.kind() == ErrorKind::No => error.hint(format!(
                "`backplane resolve {}@{}` shows where it points",
                name.plugin,
                channel.as_str()
            )),
            None if error.kind() == ErrorKind::No => error.hint(format!(
                "`backplane releases {}` lists the releases of the plugin",
                name.plugin
            )),
            _ => error,
        })?;
    release::show(&changed, ui)?;
    Ok(exit::ok())
}

fn release_id(text: &str) -> Result<ReleaseId, CliError> {
    text.parse()
        .map_err(|error: NameError| name::refused(text, error))
}

fn path(plugin: &str, channel: &str) -> Result<String, backplane_client::PathError> {
    let (plugin, channel) = (
        RequestPath::segment(plugin)?,
        RequestPath::segment(channel)?,
    );
    Ok(format!("/plugins/{plugin}/channels/{channel}"))
}
