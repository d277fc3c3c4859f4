//! Links that lead in circles or nowhere, and what is no file.

use test_case::test_case;

use crate::tree::{MANIFEST, Tree, lines, skill};

fn found(tree: &Tree) -> Vec<String> {
    lines(&tree.load().diagnostics)
}

#[test_case("self", "self"; "to itself")]
#[test_case("self", "."; "to the package")]
#[test_case("a/b/up", ".."; "to the directory above")]
#[test_case("a/b/up", "../../a"; "to an ancestor by its name")]
#[test_case("skills/x", "../skills"; "among the skills")]
fn a_link_that_leads_back_is_left_out_and_told(path: &str, target: &str) {
    let tree = Tree::package();
    tree.write("file", "x");
    tree.link(path, target);
    assert_eq!(found(&tree), [format!("Warning link_cycle {path}")]);
    assert_eq!(tree.load().files.len(), 2);
}

#[test]
fn links_in_a_ring_are_all_left_out() {
    let tree = Tree::package();
    tree.link("a", "b");
    tree.link("b", "c/../c");
    tree.link("c", "a");
    assert_eq!(
        found(&tree),
        [
            "Warning link_cycle a",
            "Warning link_cycle b",
            "Warning link_cycle c"
        ]
    );
}

#[test]
fn directories_that_link_to_each_other_are_entered_once_on_each_path() {
    let tree = Tree::package();
    tree.link("a/to-b", "../b");
    tree.link("b/to-a", "../a");
    tree.write("b/file", "x");
    assert_eq!(
        found(&tree),
        [
            "Warning link_cycle a/to-b/to-a",
            "Warning link_cycle b/to-a/to-b"
        ]
    );
    let files: Vec<_> = tree.load().files.into_keys().collect();
    assert_eq!(files, ["a/to-b/file", "b/file", "plugin.json"]);
}

#[test_case("skills"; "skills")]
#[test_case("mcp.json"; "mcp json")]
#[test_case("skills/x/SKILL.md"; "a document")]
fn a_component_that_leads_back_or_nowhere_is_an_error(path: &str) {
    let name = path.rsplit('/').next().unwrap();
    let tree = Tree::package();
    tree.link(path, name);
    assert_eq!(found(&tree), [format!("Error link_cycle {path}")]);
    let tree = Tree::package();
    tree.link(path, "nothing");
    assert_eq!(found(&tree), [format!("Error link_dangling {path}")]);
}

#[test_case("nothing"; "that does not exist")]
#[test_case("file/below"; "below a file")]
#[test_case("file/.."; "above a file")]
#[test_case("a/b/c/d"; "deep below nothing")]
#[test_case("../package/nothing"; "out and back")]
fn a_link_that_leads_nowhere_is_left_out_and_told(target: &str) {
    let tree = Tree::package();
    tree.write("file", "x");
    tree.link("gone", target);
    assert_eq!(found(&tree), ["Warning link_dangling gone"]);
    assert_eq!(tree.load().files.len(), 2);
}

#[test]
fn a_name_that_no_file_can_have_is_nowhere() {
    let tree = Tree::package();
    tree.link("gone", "x".repeat(300));
    assert_eq!(found(&tree), ["Warning link_dangling gone"]);
}

#[test]
fn a_link_of_very_many_components_is_not_followed_to_its_end() {
    let tree = Tree::package();
    tree.folder("d");
    tree.link("long", "d/../".repeat(600));
    assert_eq!(found(&tree), ["Warning link_cycle long"]);
}

#[test]
fn as_many_links_are_followed_as_the_system_follows() {
    let tree = Tree::package();
    tree.write("l40", "x");
    for number in 0..40 {
        tree.link(format!("l{number}"), format!("l{}", number + 1));
    }
    assert_eq!(found(&tree), [""; 0]);
    tree.link("more", "l0");
    assert_eq!(found(&tree), ["Warning link_cycle more"]);
}

#[test]
fn special_files_and_links_to_them_are_left_out_and_told() {
    let tree = Tree::package();
    tree.fifo("a/pipe");
    tree.link("b", "a/pipe");
    tree.socket("c");
    tree.write("skills/x/SKILL.md", skill("x"));
    tree.fifo("skills/x/pipe");
    tree.fifo("skills/y/SKILL.md");
    let package = tree.load();
    assert_eq!(
        lines(&package.diagnostics),
        [
            "Warning special_file a/pipe",
            "Warning special_file b",
            "Warning special_file c",
            "Warning special_file skills/x/pipe",
            "Error special_file skills/y/SKILL.md",
        ]
    );
    assert!(package.diagnostics[0].message.contains("a FIFO"));
    assert!(package.diagnostics[2].message.contains("a socket"));
    assert_eq!(package.skills.len(), 1);
    assert_eq!(package.files.len(), 2);
}

#[test]
fn a_component_that_is_a_special_file_is_of_the_wrong_kind() {
    let tree = Tree::package();
    tree.fifo("mcp.json");
    tree.socket("skills");
    assert_eq!(
        found(&tree),
        [
            "Error mcp_wrong_kind mcp.json",
            "Error skills_wrong_kind skills"
        ]
    );
}

#[test]
fn a_link_of_the_wrong_kind_disables_its_component() {
    let tree = Tree::package();
    tree.folder("docs");
    tree.write("docs/x", "x");
    tree.link("mcp.json", "docs");
    tree.link("skills", "docs/x");
    assert_eq!(
        found(&tree),
        [
            "Error skills_wrong_kind skills",
            "Error mcp_wrong_kind mcp.json"
        ]
    );
}

#[test]
fn servers_in_an_empty_directory_are_of_the_wrong_kind() {
    let tree = Tree::package();
    tree.folder("mcp.json/a/b");
    assert_eq!(found(&tree), ["Error mcp_wrong_kind mcp.json"]);
    tree.write("mcp.json/a/b/c", "x");
    assert_eq!(found(&tree), ["Error mcp_wrong_kind mcp.json"]);

    let tree = Tree::package();
    tree.folder("docs");
    tree.link("mcp.json", "docs");
    tree.folder("a/mcp.json");
    tree.folder("skills");
    assert_eq!(found(&tree), ["Error mcp_wrong_kind mcp.json"]);
}

#[test]
fn a_command_behind_a_link_to_itself_is_not_inside() {
    let tree = Tree::package();
    tree.link("loop", "loop");
    let schema = agent_plugin::MCP_SCHEMA;
    let servers = r#"{"a":{"type":"stdio","command":"./loop/x"}}"#;
    tree.write(
        "mcp.json",
        format!(r#"{{"$schema":"{schema}","mcpServers":{servers}}}"#),
    );
    let expected = [
        "Warning link_cycle loop",
        "Error server_command_escapes mcp.json#/mcpServers/a/command",
    ];
    assert_eq!(found(&tree), expected);
}

#[test]
fn a_rejection_shows_foreign_names_visibly_and_always_a_reason() {
    let tree = Tree::empty();
    let start = MANIFEST.trim_end_matches('}');
    tree.write(
        "plugin.json",
        format!(r#"{start},"author":{{"\u001b[2J":"x"}}}}"#),
    );
    let error = tree.try_load().unwrap_err().to_string();
    assert!(!error.contains('\u{1b}'), "{error:?}");
    assert!(
        error.contains(r"`plugin.json#/author/\u{1b}[2J`: "),
        "{error}"
    );

    let unknown: String = (0..2_000).map(|at| format!(r#""x{at}":0,"#)).collect();
    tree.write(
        "plugin.json",
        format!("{{{unknown}{}", &MANIFEST[1..].replace("example", "-")),
    );
    let error = tree.try_load().unwrap_err().to_string();
    assert_eq!(
        error,
        "the package is rejected: more is wrong with `plugin.json` than is listed"
    );
}

#[test]
fn a_manifest_that_is_no_file_rejects_the_package_with_one_reason() {
    let tree = Tree::empty();
    tree.fifo("plugin.json");
    assert_eq!(tree.rejected(), ["Error manifest_missing plugin.json"]);

    let tree = Tree::empty();
    tree.link("plugin.json", "nothing");
    assert_eq!(tree.rejected(), ["Error link_dangling plugin.json"]);

    let tree = Tree::empty();
    tree.write("docs/x", "x");
    tree.link("plugin.json", "docs");
    assert_eq!(tree.rejected(), ["Error manifest_missing plugin.json"]);

    let tree = Tree::empty();
    tree.link("gone", "nothing");
    tree.link("mcp.json", "nothing");
    let error = tree.try_load().unwrap_err().to_string();
    assert_eq!(
        error,
        "the package is rejected: `plugin.json`: there is no `plugin.json` at the root"
    );
    assert_eq!(
        tree.rejected(),
        [
            "Warning link_dangling gone",
            "Error link_dangling mcp.json",
            "Error manifest_missing plugin.json"
        ]
    );
}
