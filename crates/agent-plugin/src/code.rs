//! The closed list of codes.

use serde::{Serialize, Serializer};

macro_rules! codes {
    ($($variant:ident, $name:literal, $meaning:literal;)+) => {
        /// What a diagnostic is about. The list is closed and ours; `docs/reference/plugin-package.md` shows it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $meaning] $variant,)+
        }

        impl Code {
            /// Every code, in the order of the reference page.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the name, in snake case.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Returns what the code means, in one line.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => $meaning,)+
                }
            }
        }
    };
}

codes! {
    PathInvalid, "path_invalid", "a path of the file map is absolute, empty, holds NUL, or has an empty, `.` or `..` part; the package is rejected";
    ManifestMissing, "manifest_missing", "no regular file `plugin.json` at the root; the package is rejected";
    ManifestEscapesRoot, "manifest_escapes_root", "`plugin.json` is a link out of the package; the package is rejected";
    ManifestInvalidJson, "manifest_invalid_json", "`plugin.json` is not strict JSON; the package is rejected";
    ManifestNotObject, "manifest_not_object", "`plugin.json` is JSON but no object; the package is rejected";
    SchemaMissing, "schema_missing", "`plugin.json` has no `$schema`; the package is rejected";
    SchemaUnsupported, "schema_unsupported", "`$schema` of `plugin.json` names another version or format; the package is rejected";
    NameMissing, "name_missing", "`plugin.json` has no `name`; the package is rejected";
    NameInvalid, "name_invalid", "`name` breaks the rules of names; the package is rejected";
    FieldType, "field_type", "a known field of `plugin.json` has another JSON type than it must; the package is rejected";
    AuthorInvalid, "author_invalid", "`author` is no object of the texts `name`, `email` and `url`; the package is rejected";
    UnknownField, "unknown_field", "a top-level field of `plugin.json` has no meaning and is ignored";
    ExtensionsNotObject, "extensions_not_object", "`extensions` is no object and is ignored";
    SkillsWrongKind, "skills_wrong_kind", "`skills` is no directory; no skill is loaded";
    SkillsEscapesRoot, "skills_escapes_root", "`skills` is a link out of the package; no skill is loaded";
    SkillEscapesRoot, "skill_escapes_root", "a `SKILL.md` lies behind a link out of the package; the skill is skipped";
    SkillNotUtf8, "skill_not_utf8", "a `SKILL.md` is not UTF-8; the skill is skipped";
    SkillFrontmatterMissing, "skill_frontmatter_missing", "a `SKILL.md` does not start with a mapping between `---` lines; the skill is skipped";
    SkillYamlInvalid, "skill_yaml_invalid", "the frontmatter is not YAML as it is read here; the skill is skipped";
    SkillNameInvalid, "skill_name_invalid", "`name` of a skill is missing, no text, or breaks the rules of names; the skill is skipped";
    SkillNameMismatch, "skill_name_mismatch", "`name` of a skill is not that of its directory; the skill is skipped, or loaded where lenient";
    SkillDescriptionInvalid, "skill_description_invalid", "`description` of a skill is missing, no text, blank or too long; the skill is skipped";
    SkillFieldInvalid, "skill_field_invalid", "an optional field of a skill has a wrong type or length; the skill is skipped, or loaded where lenient and in `metadata`";
    SkillUnknownField, "skill_unknown_field", "a key of the frontmatter has no meaning and is kept";
    McpWrongKind, "mcp_wrong_kind", "`mcp.json` is no regular file; MCP is disabled";
    McpEscapesRoot, "mcp_escapes_root", "`mcp.json` is a link out of the package; MCP is disabled";
    McpInvalidJson, "mcp_invalid_json", "`mcp.json` is no strict JSON object; MCP is disabled";
    McpSchemaMissing, "mcp_schema_missing", "`mcp.json` has no `$schema`; MCP is disabled";
    McpSchemaUnsupported, "mcp_schema_unsupported", "`$schema` of `mcp.json` is no identifier of the format; MCP is disabled";
    McpVersionMismatch, "mcp_version_mismatch", "`$schema` of `mcp.json` is of another version than that of `plugin.json`; MCP is disabled";
    McpUnknownField, "mcp_unknown_field", "`mcp.json` has a third top-level field; MCP is disabled";
    McpServersInvalid, "mcp_servers_invalid", "`mcpServers` is missing or no object; MCP is disabled";
    ServerNotObject, "server_not_object", "a server is no object; it is skipped";
    ServerTypeMissing, "server_type_missing", "a server has no `type`; it is skipped";
    ServerTypeUnknown, "server_type_unknown", "`type` is not `stdio`, `streamable-http` or `sse`; the server is skipped";
    ServerUnknownField, "server_unknown_field", "a field that the server's type does not have; the server is skipped";
    ServerCommandInvalid, "server_command_invalid", "`command` is no bare name and no path that starts with `./`; the server is skipped";
    ServerCommandEscapes, "server_command_escapes", "`command` leaves the package; the server is skipped";
    ServerArgsInvalid, "server_args_invalid", "`args` is no list of texts; the server is skipped";
    ServerEnvInvalid, "server_env_invalid", "`env` is no object of texts, or a name cannot be one; the server is skipped";
    ServerEnvReserved, "server_env_reserved", "`env` sets `PLUGIN_ROOT` or `PLUGIN_DATA`; the server is skipped";
    ServerCwdInvalid, "server_cwd_invalid", "`cwd` has none of the allowed forms; the server is skipped";
    ServerCwdEscapes, "server_cwd_escapes", "`cwd` leaves the directory that it starts from; the server is skipped";
    ServerUrlInvalid, "server_url_invalid", "`url` is no absolute HTTP URL, or has user information or a fragment; the server is skipped";
    ServerUrlInsecure, "server_url_insecure", "`url` is plain HTTP to a host that is no loopback; the server is skipped";
    ServerHeadersInvalid, "server_headers_invalid", "`headers` is no object of valid HTTP fields, or names one twice; the server is skipped";
    TransportUnsupported, "transport_unsupported", "a valid server whose transport was not asked for; it is skipped";
    ResourceEscapesRoot, "resource_escapes_root", "a link out of the package; what it names is left out";
    LinkCycle, "link_cycle", "a link or directory that leads back to itself; it is left out";
    LinkDangling, "link_dangling", "a link that leads nowhere; it is left out";
    SpecialFile, "special_file", "a FIFO, a socket or a device; it is left out";
    PathCollision, "path_collision", "a name that differs from another one only by case or normalisation; both are kept";
    LimitExceeded, "limit_exceeded", "a document, or the list of diagnostics, is beyond its limit";
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
