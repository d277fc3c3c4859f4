//! From the strict tree of the file to [`WorkerConfig`]; every refusal names the field.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::time::Duration;

use bounded::{EnvName, GoDuration};
use forge_domain::ExecutionLimits;
use forge_plugin_protocol::Capability;
use strict_json::{Element, FieldError, Fields};
use tls_files::PlainPolicy;
use url::Url;

use super::paths::overlap;
use super::{
    DEFAULT_DRAIN_TIMEOUT, DEFAULT_MIN_FREE_BYTES, DEFAULT_PREPARED_WORKSPACES, GateAddress,
    HostPath, PluginEntry, TokenSource, WorkerConfig,
};

const MILLISECOND: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);
const MIB: u64 = 1 << 20;
const MOST_FREE_BYTES: u64 = 1 << 50;

/// Decodes the whole file.
pub(super) fn config(mut fields: Fields) -> Result<WorkerConfig, FieldError> {
    version(&mut fields)?;
    let config = WorkerConfig {
        gate: gate(&mut fields)?,
        id: fields.parse("id")?,
        token: token(&mut fields)?,
        heartbeat_interval: duration(
            &mut fields,
            "heartbeat_interval",
            Duration::from_nanos(1),
            HOUR,
        )?,
        concurrency: small_number(&mut fields, "concurrency", 1, 64)?,
        repository_roots: repository_roots(&mut fields)?,
        worktree_root: fields.parse("worktree_root")?,
        runtime_root: fields.parse("runtime_root")?,
        repositories: repositories(&mut fields)?,
        plugins: plugins(&mut fields)?,
        environment_allowlist: names(&mut fields, "environment_allowlist")?,
        check_environment_allowlist: names(&mut fields, "check_environment_allowlist")?,
        ceilings: ceilings(fields.object("ceilings")?)?,
        drain_timeout: optional_duration(&mut fields, "drain_timeout", DEFAULT_DRAIN_TIMEOUT)?,
        git_executable: fields.opt_parse("git_executable")?,
        prepared_workspaces: if fields.contains("prepared_workspaces") {
            small_number(&mut fields, "prepared_workspaces", 0, 16)?
        } else {
            DEFAULT_PREPARED_WORKSPACES
        },
        state_dir: fields.opt_parse("state_dir")?,
        min_free_bytes: if fields.contains("min_free_bytes") {
            number(&mut fields, "min_free_bytes", 0, MOST_FREE_BYTES)?
        } else {
            DEFAULT_MIN_FREE_BYTES
        },
    };
    fields.end()?;
    cross_references(&config)?;
    Ok(config)
}

fn version(fields: &mut Fields) -> Result<(), FieldError> {
    match fields.u64("version")? {
        1 => Ok(()),
        _ => Err(FieldError::invalid("version", "must be 1")),
    }
}

fn gate(fields: &mut Fields) -> Result<GateAddress, FieldError> {
    let text = fields.text("gate_url")?;
    let url = gate_url(&text).map_err(|reason| FieldError::invalid("gate_url", reason))?;
    let ca_file = fields.opt_parse("ca_file")?;
    if ca_file.is_some() && url.scheme() != "wss" {
        let reason = "is of no use with a `ws://` gate_url; use `wss://` or drop it";
        return Err(FieldError::invalid("ca_file", reason));
    }
    let policy = if fields.opt_bool("allow_plain")?.unwrap_or(false) {
        PlainPolicy::Anywhere
    } else {
        PlainPolicy::LoopbackOnly
    };
    let host = url.host_str().unwrap_or_default();
    let transport = policy.judge(url.scheme(), host).map_err(|_| {
        let reason = format!(
            "is unencrypted and `{host}` is not this machine; use `wss://`, or set `allow_plain` \
             to true if the network between them is trusted"
        );
        FieldError::invalid("gate_url", reason)
    })?;
    Ok(GateAddress {
        url,
        ca_file,
        transport,
    })
}

fn gate_url(text: &str) -> Result<Url, String> {
    if text.len() > 2048 {
        return Err("must be at most 2048 bytes".to_owned());
    }
    // The URL standard mends what is no URL here: it drops white space, and takes `x` for the host
    // of `ws:x` and `ws:///x`.
    let behind = text
        .split_once("://")
        .filter(|(scheme, _)| ["ws", "wss"].contains(&scheme.to_ascii_lowercase().as_str()))
        .map(|(_, behind)| behind)
        .ok_or_else(|| "must begin with `ws://` or `wss://`".to_owned())?;
    if behind.starts_with(['/', '\\']) || behind.is_empty() {
        return Err("must name a host".to_owned());
    }
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("must hold no white space".to_owned());
    }
    let url = Url::parse(text).map_err(|error| format!("is not a URL: {error}"))?;
    if url.host_str().is_none_or(str::is_empty) {
        return Err("must name a host".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not carry a user name or password".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("must not carry a query or fragment".to_owned());
    }
    Ok(url)
}

fn token(fields: &mut Fields) -> Result<TokenSource, FieldError> {
    let env = fields.opt_parse("token_env")?.map(TokenSource::Env);
    let file = fields.opt_parse("token_file")?.map(TokenSource::File);
    match (env, file) {
        (Some(source), None) | (None, Some(source)) => Ok(source),
        (Some(_), Some(_)) => Err(FieldError::invalid(
            "token_file",
            "stands beside `token_env`; give exactly one of the two",
        )),
        (None, None) => Err(FieldError::invalid(
            "token_env",
            "is missing, and so is `token_file`; give exactly one of the two",
        )),
    }
}

fn repository_roots(fields: &mut Fields) -> Result<Vec<HostPath>, FieldError> {
    let mut roots: Vec<HostPath> = Vec::new();
    for element in counted(fields, "repository_roots", 1, 64)? {
        let path = element.path().to_owned();
        let root = element.parse()?;
        if roots.contains(&root) {
            return Err(FieldError::invalid(path, "names a root a second time"));
        }
        roots.push(root);
    }
    Ok(roots)
}

fn repositories(
    fields: &mut Fields,
) -> Result<BTreeMap<forge_domain::RepositoryId, HostPath>, FieldError> {
    let mut repositories = BTreeMap::new();
    for element in optional_counted(fields, "repositories", 1024)? {
        let path = element.path().to_owned();
        let mut entry = element.object()?;
        let id = entry.parse("id")?;
        let repository = entry.parse("path")?;
        entry.end()?;
        unique(&mut repositories, id, repository, &path)?;
    }
    Ok(repositories)
}

fn plugins(
    fields: &mut Fields,
) -> Result<BTreeMap<forge_domain::PluginId, PluginEntry>, FieldError> {
    let mut plugins = BTreeMap::new();
    for element in counted(fields, "plugins", 1, 128)? {
        let path = element.path().to_owned();
        let mut entry = element.object()?;
        let id = entry.parse("id")?;
        let plugin = PluginEntry {
            argv: argv(&mut entry)?,
            capabilities: capabilities(&mut entry)?,
        };
        entry.end()?;
        unique(&mut plugins, id, plugin, &path)?;
    }
    Ok(plugins)
}

fn argv(entry: &mut Fields) -> Result<Vec<String>, FieldError> {
    let mut argv: Vec<String> = Vec::new();
    for element in counted(entry, "argv", 1, 64)? {
        let path = element.path().to_owned();
        let argument = element.text()?;
        if argument.is_empty() || argument.len() > 4096 || argument.contains('\0') {
            return Err(FieldError::invalid(
                path,
                "must be 1 to 4096 bytes without NUL",
            ));
        }
        if argv.is_empty() && !argument.starts_with('/') {
            return Err(FieldError::invalid(path, "must be an absolute path"));
        }
        argv.push(argument);
    }
    Ok(argv)
}

fn capabilities(entry: &mut Fields) -> Result<Option<Vec<Capability>>, FieldError> {
    if !entry.contains("capabilities") {
        return Ok(None);
    }
    let mut capabilities: Vec<Capability> = Vec::new();
    for element in counted(entry, "capabilities", 1, 6)? {
        let path = element.path().to_owned();
        let capability = element.parse()?;
        if capabilities.contains(&capability) {
            return Err(FieldError::invalid(
                path,
                "names a capability a second time",
            ));
        }
        capabilities.push(capability);
    }
    let operation = [Capability::Text, Capability::WorkspaceEdit];
    if !operation.iter().any(|one| capabilities.contains(one)) {
        let reason = "must name `text` or `workspace_edit`, else the plugin can do nothing";
        return Err(FieldError::invalid(entry.path_of("capabilities"), reason));
    }
    Ok(Some(capabilities))
}

fn names(fields: &mut Fields, name: &str) -> Result<BTreeSet<EnvName>, FieldError> {
    let mut names = BTreeSet::new();
    for element in optional_counted(fields, name, 64)? {
        let path = element.path().to_owned();
        if !names.insert(element.parse()?) {
            return Err(FieldError::invalid(path, "names a variable a second time"));
        }
    }
    Ok(names)
}

fn ceilings(mut fields: Fields) -> Result<ExecutionLimits, FieldError> {
    let limits = ExecutionLimits {
        plugin_timeout: duration(&mut fields, "plugin_timeout", MILLISECOND, DAY)?,
        check_timeout: duration(&mut fields, "check_timeout", MILLISECOND, DAY)?,
        git_timeout: duration(&mut fields, "git_timeout", MILLISECOND, DAY)?,
        cleanup_timeout: duration(&mut fields, "cleanup_timeout", MILLISECOND, DAY)?,
        plugin_output_bytes: number(&mut fields, "plugin_output_bytes", 1, 64 * MIB)?,
        check_output_bytes: number(&mut fields, "check_output_bytes", 1, MIB)?,
        git_output_bytes: number(&mut fields, "git_output_bytes", 1, 64 * MIB)?,
    };
    fields.end()?;
    Ok(limits)
}

fn cross_references(config: &WorkerConfig) -> Result<(), FieldError> {
    for name in &config.check_environment_allowlist {
        if !config.environment_allowlist.contains(name) {
            let reason = format!("names `{name}`, which `environment_allowlist` lacks");
            return Err(FieldError::invalid("check_environment_allowlist", reason));
        }
    }
    if let TokenSource::Env(token) = &config.token
        && config.environment_allowlist.contains(token)
    {
        let reason = format!("names `{token}`, the variable with the Worker's own token");
        return Err(FieldError::invalid("environment_allowlist", reason));
    }
    let (worktrees, runtime) = (
        config.worktree_root.as_path(),
        config.runtime_root.as_path(),
    );
    if overlap(worktrees, runtime) {
        return Err(FieldError::invalid(
            "runtime_root",
            "overlaps `worktree_root`",
        ));
    }
    let state = config.state_dir.as_ref().map(HostPath::as_path);
    if let Some(state) = state
        && let Some(name) = [("worktree_root", worktrees), ("runtime_root", runtime)]
            .into_iter()
            .find_map(|(name, root)| root.starts_with(state).then_some(name))
    {
        let reason = format!("is or contains `{name}`");
        return Err(FieldError::invalid("state_dir", reason));
    }
    let repositories = config.repositories.values().chain(&config.repository_roots);
    let roots = [
        ("worktree_root", Some(worktrees)),
        ("runtime_root", Some(runtime)),
        ("state_dir", state),
    ];
    for (name, root) in roots
        .into_iter()
        .filter_map(|(name, root)| Some((name, root?)))
    {
        for path in repositories.clone() {
            if overlap(root, path.as_path()) {
                let reason = format!("overlaps the repository or root `{path}`");
                return Err(FieldError::invalid(name, reason));
            }
        }
    }
    Ok(())
}

fn unique<K: Ord + Display, V>(
    map: &mut BTreeMap<K, V>,
    id: K,
    value: V,
    path: &str,
) -> Result<(), FieldError> {
    if map.contains_key(&id) {
        let reason = format!("repeats the id `{id}`");
        return Err(FieldError::invalid(format!("{path}.id"), reason));
    }
    map.insert(id, value);
    Ok(())
}

fn counted(
    fields: &mut Fields,
    name: &str,
    least: usize,
    most: usize,
) -> Result<Vec<Element>, FieldError> {
    let elements = fields.array(name)?;
    if elements.len() < least || elements.len() > most {
        let reason = format!("must have {least} to {most} items, not {}", elements.len());
        return Err(FieldError::invalid(fields.path_of(name), reason));
    }
    Ok(elements)
}

fn optional_counted(
    fields: &mut Fields,
    name: &str,
    most: usize,
) -> Result<Vec<Element>, FieldError> {
    if fields.contains(name) {
        counted(fields, name, 0, most)
    } else {
        Ok(Vec::new())
    }
}

fn duration(
    fields: &mut Fields,
    name: &str,
    least: Duration,
    most: Duration,
) -> Result<Duration, FieldError> {
    let value: GoDuration = fields.parse(name)?;
    in_range(fields, name, value, least, most)
}

fn optional_duration(
    fields: &mut Fields,
    name: &str,
    default: Duration,
) -> Result<Duration, FieldError> {
    match fields.opt_parse::<GoDuration>(name)? {
        None => Ok(default),
        Some(value) => in_range(fields, name, value, MILLISECOND, DAY),
    }
}

fn in_range(
    fields: &Fields,
    name: &str,
    value: GoDuration,
    least: Duration,
    most: Duration,
) -> Result<Duration, FieldError> {
    let duration = Duration::from(value);
    if duration < least || duration > most {
        let reason = format!("must be from {} to {}", shown(least), shown(most));
        return Err(FieldError::invalid(fields.path_of(name), reason));
    }
    Ok(duration)
}

/// Spells a limit as the file would.
fn shown(limit: Duration) -> String {
    let seconds = limit.as_secs();
    if seconds > 0 && seconds.is_multiple_of(3600) {
        format!("{}h", seconds / 3600)
    } else {
        format!("{limit:?}")
    }
}

fn number(fields: &mut Fields, name: &str, least: u64, most: u64) -> Result<u64, FieldError> {
    let value = fields.u64(name)?;
    if value < least || value > most {
        let reason = format!("must be from {least} to {most}");
        return Err(FieldError::invalid(fields.path_of(name), reason));
    }
    Ok(value)
}

fn small_number(fields: &mut Fields, name: &str, least: u16, most: u16) -> Result<u16, FieldError> {
    let value = number(fields, name, least.into(), most.into())?;
    u16::try_from(value)
        .map_err(|error| FieldError::invalid(fields.path_of(name), error.to_string()))
}
