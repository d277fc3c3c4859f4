//! Links out of the package, each denied where it disables the least.

use agent_plugin_dir::{Options, load_directory};
use plugin_archive::Limits;
use test_case::test_case;

use crate::tree::{MANIFEST, Tree, lines, skill, told, without_privileges};

const MCP: &str = r#"{"$schema":"https://agent-plugins.org/schemas/1.0.0/mcp.schema.json","mcpServers":{"bare":{"type":"stdio","command":"node"}}}"#;

/// A package with two skills and a server.
fn whole() -> Tree {
    let tree = Tree::package();
    tree.write("skills/one/SKILL.md", skill("one"));
    tree.write("skills/two/SKILL.md", skill("two"));
    tree.write("mcp.json", MCP);
    tree
}

fn parts(tree: &Tree) -> (Vec<String>, Vec<String>, Vec<String>) {
    let package = tree.load();
    (
        package
            .skills
            .iter()
            .map(|skill| skill.name.clone())
            .collect(),
        package.mcp_servers.keys().cloned().collect(),
        lines(&package.diagnostics),
    )
}

fn replace(tree: &Tree, path: &str, target: &str) {
    let found = tree.at(path);
    if found.is_dir() {
        fs_err::remove_dir_all(found).unwrap();
    } else {
        fs_err::remove_file(found).unwrap();
    }
    tree.link(path, target);
}

#[test]
fn a_manifest_that_escapes_rejects_the_package() {
    let tree = whole();
    tree.write("../outside.json", MANIFEST);
    replace(&tree, "plugin.json", "../outside.json");
    assert_eq!(tree.rejected(), ["Error manifest_escapes_root plugin.json"]);
}

#[test]
fn skills_that_escape_disable_skills_alone() {
    let tree = whole();
    replace(&tree, "skills", "..");
    let (skills, servers, found) = parts(&tree);
    assert_eq!(found, ["Error skills_escapes_root skills"]);
    assert_eq!((skills.len(), servers), (0, vec!["bare".to_owned()]));
}

#[test]
fn an_mcp_json_that_escapes_disables_mcp_alone() {
    let tree = whole();
    tree.write("../mcp.json", MCP);
    replace(&tree, "mcp.json", "../mcp.json");
    let (skills, servers, found) = parts(&tree);
    assert_eq!(found, ["Error mcp_escapes_root mcp.json"]);
    assert_eq!((skills.len(), servers.len()), (2, 0));
}

#[test_case("skills/one/SKILL.md", "../../../outside/SKILL.md"; "the document")]
#[test_case("skills/one", "../../outside"; "its directory")]
fn a_skill_that_escapes_is_skipped_alone(path: &str, target: &str) {
    let tree = whole();
    replace(&tree, path, target);
    let (skills, servers, found) = parts(&tree);
    assert_eq!(found, [format!("Error skill_escapes_root {path}")]);
    assert_eq!((skills, servers.len()), (vec!["two".to_owned()], 1));
    assert!(!tree.load().files.contains_key("skills/one/SKILL.md"));
}

#[test_case("skills/one/notes", "../../../outside.txt"; "a file of a skill")]
#[test_case("skills/one/more", "../../../outside"; "a directory of a skill")]
#[test_case("skills/three", "../../outside.txt"; "a file among the skills")]
#[test_case("docs", "/"; "the root of the system")]
#[test_case("docs/mcp.json", "../../outside.txt"; "a fixed name elsewhere")]
#[test_case("docs", "../nothing"; "nothing outside")]
#[test_case("docs", "../outside.txt/x"; "below a file outside")]
fn a_resource_that_escapes_is_left_out_and_told(path: &str, target: &str) {
    let tree = whole();
    tree.link(path, target);
    let (skills, servers, found) = parts(&tree);
    assert_eq!(found, [format!("Warning resource_escapes_root {path}")]);
    assert_eq!((skills.len(), servers.len()), (2, 1));
    assert_eq!(tree.load().files.len(), 4);
}

#[cfg(target_os = "linux")]
#[test]
fn a_link_through_what_each_process_sees_differently_escapes() {
    let tree = whole();
    let inside = tree.path().canonicalize().unwrap().join("plugin.json");
    let target = format!("/proc/self/root{}", inside.display());
    assert_eq!(fs_err::read_to_string(&target).unwrap(), MANIFEST);
    tree.link("alias", target);
    let (_, _, found) = parts(&tree);
    assert_eq!(found, ["Warning resource_escapes_root alias"]);
}

#[test]
fn a_link_behind_a_door_that_is_closed_outside_escapes_and_inside_is_an_error() {
    let tree = whole();
    tree.write("../closed/file", "secret");
    tree.link("out", "../closed/file");
    for path in ["..", "."] {
        tree.mode(path, 0o755);
    }
    tree.mode("../closed", 0o000);
    let package = without_privileges(|| tree.load());
    assert_eq!(
        lines(&package.diagnostics),
        ["Warning resource_escapes_root out"]
    );

    tree.write("z/closed/file", "x");
    tree.link("in", "z/closed/file");
    tree.mode("z/closed", 0o000);
    let error = without_privileges(|| tree.try_load().unwrap_err());
    tree.mode("z/closed", 0o755);
    tree.mode("../closed", 0o755);
    let error = told(&error);
    assert!(
        error.starts_with("failed to follow `in`: Permission denied"),
        "{error}"
    );
}

#[test]
fn a_chain_that_leaves_at_its_second_link_escapes() {
    let tree = whole();
    tree.link("one", "inner/two");
    tree.link("inner/two", "../../outside.txt");
    let (_, _, found) = parts(&tree);
    assert_eq!(
        found,
        [
            "Warning resource_escapes_root inner/two",
            "Warning resource_escapes_root one"
        ]
    );
}

#[test]
fn nothing_of_the_outside_is_in_a_package() {
    let tree = whole();
    for (path, target) in [
        ("a", ".."),
        ("b", "../outside"),
        ("c/d", "../../outside.txt"),
    ] {
        tree.link(path, target);
    }
    let package = tree.load();
    assert!(package.files.values().all(|bytes| bytes != b"secret"));
    assert!(
        !package
            .files
            .values()
            .any(|bytes| bytes == skill("outside").as_bytes())
    );
}

fn server(fields: &str) -> Tree {
    let tree = Tree::package();
    tree.write("bin/run", "x");
    tree.write("../outside/run", "x");
    tree.link("out", "..");
    tree.link("chain", "chained");
    tree.link("chained", "../outside");
    tree.link("inner", "bin");
    tree.link("gone-out", "../nothing");
    tree.link("gone-in", "nothing");
    let mcp = format!(
        r#"{{"$schema":"https://agent-plugins.org/schemas/1.0.0/mcp.schema.json","mcpServers":{{
        "judged":{{"type":"stdio",{fields}}},"other":{{"type":"stdio","command":"node"}}}}}}"#
    );
    tree.write("mcp.json", mcp);
    tree
}

#[test_case(r#""command":"./inner/run""#; "a command along a link inside")]
#[test_case(r#""command":"./out/package/bin/run""#; "a command that leaves along a link and comes back")]
#[test_case(r#""command":"./not/built/yet""#; "a command that does not exist")]
#[test_case(r#""command":"./gone-in""#; "a command at a link to nothing inside")]
#[test_case(r#""command":"node","cwd":"./inner""#; "a directory along a link inside")]
#[test_case(r#""command":"node","cwd":"${PLUGIN_ROOT}""#; "the package")]
#[test_case(r#""command":"node","cwd":"${PLUGIN_DATA}/out""#; "the data, which is elsewhere")]
fn a_command_or_directory_inside_is_a_server(fields: &str) {
    let package = server(fields).load();
    assert!(package.mcp_servers.contains_key("judged"));
}

#[test_case(r#""command":"./out/outside/run""#, "server_command_escapes", "command"; "a command along a link out")]
#[test_case(r#""command":"./chain/run""#, "server_command_escapes", "command"; "a command along a chain")]
#[test_case(r#""command":"./inner/../../outside/run""#, "server_command_escapes", "command"; "a command by its text")]
#[test_case(r#""command":"./gone-out""#, "server_command_escapes", "command"; "a command at a link to nothing outside")]
#[test_case(r#""command":"./out/not/there""#, "server_command_escapes", "command"; "a command that does not exist outside")]
#[test_case(r#""command":"node","cwd":"./out""#, "server_cwd_escapes", "cwd"; "a directory")]
#[test_case(r#""command":"node","cwd":"${PLUGIN_ROOT}/chain""#, "server_cwd_escapes", "cwd"; "a directory along a chain")]
fn a_command_or_directory_that_escapes_skips_its_server_alone(
    fields: &str,
    code: &str,
    member: &str,
) {
    let package = server(fields).load();
    let names: Vec<_> = package.mcp_servers.keys().collect();
    assert_eq!(names, ["other"]);
    let wanted = format!("Error {code} mcp.json#/mcpServers/judged/{member}");
    assert!(lines(&package.diagnostics).contains(&wanted));
}

#[test]
fn a_package_behind_a_link_has_its_outside_where_it_really_lies() {
    let tree = whole();
    tree.link("sibling", "../outside.txt");
    tree.link("../elsewhere/alias", "../package");
    tree.write("../elsewhere/outside.txt", "x");
    let path = tree.path().with_file_name("elsewhere").join("alias");
    let package = load_directory(&path, &Options::default(), &Limits::default()).unwrap();
    assert_eq!(
        lines(&package.diagnostics),
        ["Warning resource_escapes_root sibling"]
    );
}
