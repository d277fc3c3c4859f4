//! Releases: which one is meant, and how one is shown.

use backplane_client::{ClientError, Object, Selection};
use cli_shell::{CliError, ErrorKind, Ui, layout, visible};

use crate::name::{At, PluginName, STABLE, lone_release_hint};
use crate::registry::Registry;
use crate::wire;

/// Returns the release that a name means. One that was asked for as a release may be yanked: locked
/// installations go on working.
pub(crate) fn resolve(registry: &Registry, name: &PluginName) -> Result<Object, CliError> {
    let plugin = &name.plugin;
    let selection = Selection::plugin(plugin);
    let (selection, what) = match &name.at {
        None => (
            selection.with_channel(STABLE),
            format!("plugin `{plugin}` in channel `{STABLE}`"),
        ),
        Some(At::Channel(channel)) => (
            selection.with_channel(channel),
            format!("plugin `{plugin}` in channel `{channel}`"),
        ),
        Some(At::Release(release)) => (
            selection.with_release(release.as_str()),
            format!("release `{release}` of plugin `{plugin}`"),
        ),
    };
    let release =
        found(registry, &selection, &what).map_err(|error| match name.lone_release() {
            Some(id) if error.kind() == ErrorKind::No => error.hint(lone_release_hint(id)),
            _ => error,
        })?;
    let of = wire::text(&release, "plugin_id")?;
    if of != plugin {
        let of = visible(of);
        let message = format!("the registry answered with plugin `{of}` when asked for `{plugin}`");
        return Err(CliError::operation(message));
    }
    Ok(release)
}

/// Returns the release of a selection; that there is none is said in the words of `what`.
pub(crate) fn found(
    registry: &Registry,
    selection: &Selection,
    what: &str,
) -> Result<Object, CliError> {
    let call = registry.client().resolve_call(selection);
    registry.try_ask(call).map_err(|error| match error {
        ClientError::HttpStatus { status: 404 } => {
            let at = &registry.settings().registry;
            CliError::no(format!("`{at}` has no {what}"))
                .hint("`backplane catalog` lists plugins, `backplane releases NAME` their releases")
        }
        ClientError::HttpStatus { status: 410 } => CliError::no(format!("{what} is yanked"))
            .hint("`backplane releases NAME` shows others; `NAME@RELEASE` still gets a yanked one"),
        error => registry.explain(error),
    })
}

/// Warns of a release that is yanked.
pub(crate) fn warn_if_yanked(release: &Object, ui: &Ui) {
    if wire::shown(release, "status").as_deref() != Some("yanked") {
        return;
    }
    let id = wire::shown(release, "release_id").unwrap_or_default();
    match wire::shown(release, "yanked_reason") {
        Some(reason) => ui.warn(format!("release `{id}` is yanked: {reason}")),
        None => ui.warn(format!("release `{id}` is yanked")),
    }
}

/// Shows a release: as it came, or for people.
pub(crate) fn show(release: &Object, ui: &Ui) -> Result<(), CliError> {
    ui.record(release, lines)
}

/// No label is longer than 7 letters, so that a digest fits the line.
fn lines(release: &Object) -> String {
    let shown = |key| wire::shown(release, key);
    let channels = wire::texts(release, "channels");
    layout::pairs(&[
        ("plugin", shown("plugin_id")),
        ("version", shown("version")),
        ("release", shown("release_id")),
        ("digest", shown("artifact_digest")),
        (
            "channel",
            Some(channels.join(" ")).filter(|all| !all.is_empty()),
        ),
        ("status", shown("status")),
        ("reason", shown("yanked_reason")),
        ("bytes", shown("artifact_bytes")),
        ("files", shown("files")),
        ("date", shown("published_at")),
        ("by", shown("publisher")),
        ("about", shown("description")),
    ])
}
