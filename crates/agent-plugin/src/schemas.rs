//! JSON Schemas of the rules, in our own words and for reference: the loader reads none of them.
//!
//! What no schema can say (containment, loopback hosts, headers that differ by case, the name of
//! a skill's directory) is the loader's alone.

/// Of `plugin.json`.
pub const PLUGIN: &str = include_str!("../schemas/plugin.schema.json");

/// Of `mcp.json` without its servers, each of which is judged for itself.
pub const MCP: &str = include_str!("../schemas/mcp.schema.json");

/// Of one server of `mcp.json`.
pub const MCP_SERVER: &str = include_str!("../schemas/mcp-server.schema.json");

/// Of the frontmatter of `SKILL.md`.
pub const SKILL: &str = include_str!("../schemas/skill.schema.json");
