//! `mcp.json`: what disables it as a whole.

use std::collections::BTreeMap;

use strict_json::{Json, JsonError, Layout, Object, parse_object};

use crate::diagnostic::{Report, member, shown};
use crate::load::has_below;
use crate::manifest::{JSON_LIMITS, version_of};
use crate::server::Judge;
use crate::{Code, Containment, Files, McpServer, Options};

/// Where the servers are.
pub const MCP: &str = "mcp.json";

/// The identifier of the one version that is understood.
pub const MCP_SCHEMA: &str = "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json";

/// Finds the servers; what is wrong with the others is in the report.
pub(crate) fn read(
    files: &Files,
    options: &Options,
    containment: &dyn Containment,
    report: &mut Report,
) -> BTreeMap<String, McpServer> {
    let Some(servers) = servers(files, report) else {
        return BTreeMap::new();
    };
    let path = member(MCP, "mcpServers");
    servers
        .iter()
        .filter_map(|(name, value)| {
            let mut judge = Judge {
                path: member(&path, name),
                containment,
                report,
            };
            let server = judge.server(value)?;
            if options.transports.contains(&server.transport) {
                return Some((name.to_owned(), server));
            }
            let message = format!("`{}` was not asked for", server.transport.as_str());
            report.warning(Code::TransportUnsupported, &member(&path, name), message);
            None
        })
        .collect()
}

/// Returns `mcpServers` of a document without any fault.
fn servers(files: &Files, report: &mut Report) -> Option<Object> {
    if has_below(files, MCP) {
        let message = "`mcp.json` is a directory, not a file";
        report.error(Code::McpWrongKind, MCP, message);
        return None;
    }
    let document = match parse_object(files.get(MCP)?, &JSON_LIMITS, Layout::Spaced) {
        Ok(document) => document,
        Err(error) => {
            let code = match error {
                JsonError::TooLong { .. } | JsonError::TooDeep { .. } => Code::LimitExceeded,
                _ => Code::McpInvalidJson,
            };
            report.error(code, MCP, error.to_string());
            return None;
        }
    };
    let before = report.errors();
    schema(&document, report);
    for (key, _) in document.iter() {
        if !matches!(key, "$schema" | "mcpServers") {
            let message = format!("`{}` may not stand here", shown(key));
            report.error(Code::McpUnknownField, &member(MCP, key), message);
        }
    }
    let servers = match document.get("mcpServers") {
        Some(Json::Object(servers)) => Some(servers.clone()),
        Some(other) => {
            let message = format!("must be an object, not {}", other.kind());
            report.error(Code::McpServersInvalid, &member(MCP, "mcpServers"), message);
            None
        }
        None => {
            let message = "the required field `mcpServers` is missing";
            report.error(Code::McpServersInvalid, MCP, message);
            None
        }
    };
    servers.filter(|_| report.errors() == before)
}

fn schema(document: &Object, report: &mut Report) {
    let path = member(MCP, "$schema");
    let (code, message) = match document.get("$schema") {
        Some(Json::Text(id)) if id == MCP_SCHEMA => return,
        Some(Json::Text(id)) => match version_of(id, "mcp.schema.json") {
            Some(version) => {
                let message = format!(
                    "version {} is not that of `plugin.json`, 1.0.0",
                    shown(version)
                );
                (Code::McpVersionMismatch, message)
            }
            None => {
                let message = format!("`{}` is not supported; `{MCP_SCHEMA}` is", shown(id));
                (Code::McpSchemaUnsupported, message)
            }
        },
        Some(other) => {
            let message = format!("must be a string, not {}", other.kind());
            (Code::McpSchemaUnsupported, message)
        }
        None => {
            let message = "the required field `$schema` is missing";
            report.error(Code::McpSchemaMissing, MCP, message);
            return;
        }
    };
    report.error(code, &path, message);
}
