//! What a host does with a valid server before it starts or calls it. Pure: the host resolves
//! paths and gives its environment.

use std::collections::BTreeMap;

use strict_json::{Json, Object};
use url::Url;

use crate::address;
use crate::place::{self, Base};
use crate::server::RESERVED;
use crate::{McpServer, Package, Transport, fields};

/// What the host brings.
#[derive(Clone, Copy)]
pub struct Host<'a> {
    /// The package, absolute and with links resolved.
    pub root: &'a str,
    /// The data of this installed plugin, absolute and with links resolved.
    pub data: &'a str,
    /// The environment to start from.
    pub env: &'a BTreeMap<String, String>,
    /// Resolves every link of an absolute path.
    pub resolve: &'a dyn Fn(&str) -> Result<String, String>,
}

impl std::fmt::Debug for Host<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The environment may hold secrets.
        f.debug_struct("Host")
            .field("root", &self.root)
            .field("data", &self.data)
            .finish_non_exhaustive()
    }
}

/// A server that is ready to be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launch {
    /// Start a process.
    Process(Process),
    /// Call a URL.
    Remote(Remote),
}

/// A process to start.
#[derive(Clone, PartialEq, Eq)]
pub struct Process {
    /// A bare name for the search of the platform, or a resolved path inside the package.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its whole environment.
    pub env: BTreeMap<String, String>,
    /// Its resolved working directory.
    pub cwd: String,
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Arguments and the environment may hold secrets.
        f.debug_struct("Process")
            .field("command", &self.command)
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

/// A URL to call.
#[derive(Clone, PartialEq, Eq)]
pub struct Remote {
    /// The transport.
    pub transport: Transport,
    /// The URL as configured.
    pub url: String,
    headers: Vec<(String, String)>,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Headers and queries may hold secrets.
        f.debug_struct("Remote")
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}

/// Why one server cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// Not a server that the loader accepted.
    #[error("`{field}` is not valid")]
    Config {
        /// The field.
        field: &'static str,
    },
    /// A path that the host could not resolve.
    #[error("`{field}` cannot be resolved: {reason}")]
    Resolve {
        /// The field.
        field: &'static str,
        /// What the host said.
        reason: String,
    },
    /// A resolved path outside of where it must stay.
    #[error("`{field}` leads out of its directory")]
    Escapes {
        /// The field.
        field: &'static str,
    },
}

/// Prepares every server of a package; no failure affects another server.
pub fn prepare_all(
    package: &Package,
    host: &Host<'_>,
) -> BTreeMap<String, Result<Launch, LaunchError>> {
    let prepared = |(name, server): (&String, &McpServer)| (name.clone(), prepare(server, host));
    package.mcp_servers.iter().map(prepared).collect()
}

/// Prepares one server.
///
/// # Errors
/// A field that the loader would refuse, a path that does not resolve or that leads outside.
pub fn prepare(server: &McpServer, host: &Host<'_>) -> Result<Launch, LaunchError> {
    match server.transport {
        Transport::Stdio => process(&server.config, host).map(Launch::Process),
        Transport::StreamableHttp | Transport::Sse => remote(server).map(Launch::Remote),
    }
}

fn process(config: &Object, host: &Host<'_>) -> Result<Process, LaunchError> {
    let args = match config.get("args") {
        None => Vec::new(),
        Some(Json::Array(args)) => args
            .iter()
            .map(|arg| match arg {
                Json::Text(arg) => Ok(expand(arg, host)),
                _ => Err(LaunchError::Config { field: "args" }),
            })
            .collect::<Result<_, _>>()?,
        Some(_) => return Err(LaunchError::Config { field: "args" }),
    };
    let mut env = host.env.clone();
    for (name, value) in texts(config, "env")? {
        env.insert(name, expand(&value, host));
    }
    // Last, so that nothing configured or inherited stands in their place.
    for (name, value) in RESERVED.into_iter().zip([host.root, host.data]) {
        env.insert(name.to_owned(), value.to_owned());
    }
    Ok(Process {
        command: command(config, host)?,
        args,
        env,
        cwd: cwd(config, host)?,
    })
}

fn command(config: &Object, host: &Host<'_>) -> Result<String, LaunchError> {
    let field = "command";
    let invalid = LaunchError::Config { field };
    let Some(Json::Text(command)) = config.get(field) else {
        return Err(invalid);
    };
    match place::command(command).map_err(|_| invalid)? {
        None => Ok(command.clone()),
        Some(path) => resolved(host, host.root, &format!("{}/{path}", host.root), field),
    }
}

fn cwd(config: &Object, host: &Host<'_>) -> Result<String, LaunchError> {
    let field = "cwd";
    let text = match config.get(field) {
        None => return resolved(host, host.root, host.root, field),
        Some(Json::Text(text)) => text,
        Some(_) => return Err(LaunchError::Config { field }),
    };
    let (base, _) = place::cwd(text).ok_or(LaunchError::Config { field })?;
    let expanded = expand(text, host);
    let path = match expanded.strip_prefix("./") {
        Some(rest) => format!("{}/{rest}", host.root),
        None => expanded,
    };
    let root = match base {
        Base::Root => host.root,
        Base::Data => host.data,
    };
    resolved(host, root, &path, field)
}

fn resolved(
    host: &Host<'_>,
    root: &str,
    path: &str,
    field: &'static str,
) -> Result<String, LaunchError> {
    let resolved = (host.resolve)(path).map_err(|reason| LaunchError::Resolve { field, reason })?;
    let below = resolved.strip_prefix(root.trim_end_matches('/'));
    match below {
        Some(rest) if (rest.is_empty() || rest.starts_with('/')) && !has_parents(rest) => {
            Ok(resolved)
        }
        _ => Err(LaunchError::Escapes { field }),
    }
}

fn has_parents(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

/// Replaces both placeholders in one pass; what they stand for is not looked at again.
fn expand(text: &str, host: &Host<'_>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${PLUGIN_") {
        let (before, found) = rest.split_at(start);
        out.push_str(before);
        let known = [("${PLUGIN_ROOT}", host.root), ("${PLUGIN_DATA}", host.data)];
        let taken = known
            .into_iter()
            .find_map(|(name, value)| Some((value, found.strip_prefix(name)?)));
        match taken {
            Some((value, after)) => {
                out.push_str(value);
                rest = after;
            }
            None => {
                out.push_str("${");
                rest = found.strip_prefix("${").unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
    out
}

fn texts(config: &Object, field: &'static str) -> Result<Vec<(String, String)>, LaunchError> {
    match config.get(field) {
        None => Ok(Vec::new()),
        Some(Json::Object(object)) => object
            .iter()
            .map(|(name, value)| match value {
                Json::Text(value) => Ok((name.to_owned(), value.clone())),
                _ => Err(LaunchError::Config { field }),
            })
            .collect(),
        Some(_) => Err(LaunchError::Config { field }),
    }
}

fn remote(server: &McpServer) -> Result<Remote, LaunchError> {
    let Some(Json::Text(url)) = server.config.get("url") else {
        return Err(LaunchError::Config { field: "url" });
    };
    address::check(url).map_err(|_| LaunchError::Config { field: "url" })?;
    let headers = texts(&server.config, "headers")?;
    if !headers
        .iter()
        .all(|(name, value)| fields::is_name(name) && fields::is_value(value))
    {
        return Err(LaunchError::Config { field: "headers" });
    }
    Ok(Remote {
        transport: server.transport,
        url: url.clone(),
        headers,
    })
}

impl Remote {
    /// Returns the headers of a request to a URL: what the client generated wins over what is
    /// configured, and what is configured goes to the configured origin alone. So it is called
    /// again for each redirect and for each endpoint that a stream names.
    pub fn headers_for(&self, url: &str, generated: &[(String, String)]) -> Vec<(String, String)> {
        let is_generated = |name: &str| {
            generated
                .iter()
                .any(|(other, _)| other.eq_ignore_ascii_case(name))
        };
        let configured = self
            .headers
            .iter()
            .filter(|(name, _)| !is_generated(name))
            .filter(|_| self.is_same_origin(url));
        configured.chain(generated).cloned().collect()
    }

    /// Tells whether a URL has the scheme, host and port of the configured one.
    pub fn is_same_origin(&self, url: &str) -> bool {
        match (Url::parse(&self.url), Url::parse(url)) {
            (Ok(ours), Ok(theirs)) => ours.origin().is_tuple() && ours.origin() == theirs.origin(),
            _ => false,
        }
    }
}
