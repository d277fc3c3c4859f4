//! The JSON document of an inspection, byte for byte.

use agent_plugin::{Files, Inspection, MCP_SCHEMA, Options, PLUGIN_SCHEMA, load};
use strict_json::to_line;

fn files(manifest: &str) -> Files {
    let skill = "---\nname: x\ndescription: what it is for\n---\nBody\n";
    let server = r#"{"type":"stdio","command":"run","args":["${PLUGIN_ROOT}"]}"#;
    let mcp = format!(r#"{{"$schema":"{MCP_SCHEMA}","mcpServers":{{"b":{server},"a":1}}}}"#);
    [
        ("plugin.json", manifest),
        ("skills/x/SKILL.md", skill),
        ("skills/x/data", "12345"),
        ("mcp.json", &mcp),
    ]
    .map(|(path, content)| (path.to_owned(), content.as_bytes().to_vec()))
    .into()
}

fn document(manifest: &str) -> String {
    let loaded = load(files(manifest), &Options::default());
    String::from_utf8_lossy(&to_line(&Inspection::from(&loaded))).into_owned()
}

#[test]
fn a_package_and_its_diagnostics_are_one_document() {
    let manifest = format!(r#"{{"$schema":"{PLUGIN_SCHEMA}","name":"example","version":"1"}}"#);
    let expected = format!(
        concat!(
            r#"{{"package":{{"name":"example","version":"1","manifest":{manifest},"skills":["#,
            r#"{{"path":"skills/x/SKILL.md","root":"skills/x","name":"x","description":"what it is for","#,
            r#""content":"---\nname: x\ndescription: what it is for\n---\nBody\n","body":"Body\n","#,
            r#""metadata":{{"name":"x","description":"what it is for"}},"files":["skills/x/data"]}}],"#,
            r#""mcp_servers":{{"b":{{"type":"stdio","command":"run","args":["${{PLUGIN_ROOT}}"]}}}},"#,
            r#""files":[{{"path":"mcp.json","bytes":{mcp}}},{{"path":"plugin.json","bytes":{length}}},"#,
            r#"{{"path":"skills/x/SKILL.md","bytes":49}},{{"path":"skills/x/data","bytes":5}}]}},"#,
            r#""diagnostics":[{{"severity":"error","code":"server_not_object","path":"mcp.json#/mcpServers/a","#,
            r#""message":"must be an object, not an integer"}}]}}"#,
        ),
        manifest = manifest,
        mcp = files(&manifest).get("mcp.json").map_or(0, Vec::len),
        length = manifest.len(),
    );
    assert_eq!(document(&manifest), expected);
}

#[test]
fn a_rejected_package_is_null_and_says_why() {
    let found = document(&format!(r#"{{"$schema":"{PLUGIN_SCHEMA}"}}"#));
    assert!(
        found.starts_with(
            r#"{"package":null,"diagnostics":[{"severity":"error","code":"name_missing","path":"plugin.json","#
        ),
        "{found}"
    );
}
