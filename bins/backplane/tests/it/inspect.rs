//! `inspect`: what is shown of good, bad and hostile packages.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::bed::{Bed, MANIFEST, SKILL};

#[test]
fn a_package_for_people() {
    let bed = Bed::with_package();
    let ran = bed.line("inspect --strict notes").expect(0);
    assert_eq!(ran.err, "");
    insta::assert_snapshot!(ran.out, @r"
    name     acme-notes
    version  1.2.0
    about    Takes notes and finds them again
    files    5 files, 598 bytes, 1 executable

    1 skill
      take-note (and 1 resource)
        Writes a note down. Use it when somebody wants to remember something.

    2 servers
      notes (stdio)
        ./bin/notes (and 1 argument)
      search (streamable-http)
        https://search.example/mcp

    1 executable
      bin/notes

    no diagnostics
    ");
}

#[test]
fn an_archive_shows_the_same_and_its_digest() {
    let bed = Bed::with_package();
    bed.line("pack notes -o p.tar.gz").expect(0);
    let digest = bed.line("digest p.tar.gz").expect(0).out;
    let of_directory = bed.line("inspect notes").expect(0).out;
    let of_archive = bed.line("inspect p.tar.gz").expect(0).out;
    let line = format!("digest   {digest}");
    assert!(of_archive.contains(&line), "{of_archive}");
    assert_eq!(of_archive.replace(&line, ""), of_directory);
    let json = |path| {
        bed.backplane(&["inspect", path, "--format", "json"])
            .expect(0)
            .out
    };
    assert_eq!(json("notes"), json("p.tar.gz"));
}

#[test]
fn the_json_has_the_package_and_the_diagnostics() {
    let bed = Bed::with_package();
    let found = bed.line("inspect notes --format json").expect(0).json();
    let keys: Vec<&String> = found.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["diagnostics", "package"]);
    assert_eq!(found["diagnostics"], json!([]));
    let package = &found["package"];
    assert_eq!(package["name"], "acme-notes");
    assert_eq!(
        package["manifest"],
        serde_json::from_str::<Value>(MANIFEST).unwrap()
    );
    assert_eq!(package["skills"][0]["name"], "take-note");
    assert_eq!(package["skills"][0]["content"], SKILL);
    assert_eq!(
        package["mcp_servers"]["search"]["url"],
        "https://search.example/mcp"
    );
    assert_eq!(
        package["files"][0],
        json!({"path": "bin/notes", "bytes": 10})
    );
}

#[test]
fn values_of_an_environment_are_not_shown() {
    let bed = Bed::with_package();
    let ran = bed.line("inspect notes").expect(0);
    assert!(!ran.out.contains("canary-19"), "{}", ran.out);
}

#[test]
fn a_rejected_package_is_null_and_says_why() {
    let bed = Bed::new();
    bed.write("bad/plugin.json", r#"{"name": "Bad Name", "version": 1}"#);
    let ran = bed.line("inspect bad").expect(1);
    insta::assert_snapshot!(ran.out, @r#"
    the package is rejected

    3 errors, 0 warnings
      error    schema_missing plugin.json
        the required field `$schema` is missing
      error    name_invalid plugin.json#/name
        `Bad Name` is no name: 1 to 64 of a-z, 0-9, `-` and `.`, a letter or digit
        at both ends, no `--` and no `..`
      error    field_type plugin.json#/version
        must be a string, not an integer
    "#);
    let found = bed.line("inspect bad --format json").expect(1).json();
    assert_eq!(found["package"], Value::Null);
    assert_eq!(found["diagnostics"].as_array().unwrap().len(), 3);
    bed.archive("bad.tar.gz", &[("plugin.json", "[]")]);
    let found = bed
        .line("inspect bad.tar.gz --format json")
        .expect(1)
        .json();
    assert_eq!(found["diagnostics"][0]["code"], "manifest_not_object");
}

#[test]
fn an_error_in_a_part_is_a_no_only_where_strict() {
    let bed = Bed::with_package();
    bed.write("notes/skills/other/SKILL.md", SKILL);
    let ran = bed.line("inspect notes").expect(0);
    assert!(ran.out.contains("1 error, 0 warnings"), "{}", ran.out);
    assert!(ran.out.contains("skill_name_mismatch"), "{}", ran.out);
    bed.line("inspect notes --strict").expect(1);
    let lenient = bed.line("inspect notes --strict --lenient").expect(0);
    assert!(
        lenient.out.contains("0 errors, 1 warning"),
        "{}",
        lenient.out
    );
}

#[test]
fn transports_that_the_host_lacks_are_skipped_and_told() {
    let bed = Bed::with_package();
    let found = bed
        .line("inspect notes --transports stdio,sse --format json")
        .expect(0)
        .json();
    assert_eq!(
        found["package"]["mcp_servers"].as_object().unwrap().len(),
        1
    );
    assert_eq!(found["diagnostics"][0]["code"], "transport_unsupported");
    assert_eq!(
        found["diagnostics"][0]["path"],
        "mcp.json#/mcpServers/search"
    );
}

#[test]
fn names_that_some_file_systems_take_for_one_another_are_told() {
    let bed = Bed::with_package();
    bed.write("notes/readme.md", "a");
    bed.write("notes/README.md", "b");
    let found = bed
        .line("inspect notes --strict --format json")
        .expect(0)
        .json();
    assert_eq!(found["diagnostics"][0]["code"], "path_collision");
    assert_eq!(found["diagnostics"][0]["severity"], "warning");
    bed.archive(
        "p.tar.gz",
        &[
            ("plugin.json", MANIFEST),
            ("\u{e9}t\u{e9}", ""),
            ("e\u{301}te\u{301}", ""),
        ],
    );
    let ran = bed.line("inspect p.tar.gz").expect(0);
    assert!(ran.out.contains("path_collision"), "{}", ran.out);
}

#[test]
fn text_that_a_terminal_would_obey_is_made_visible_and_lines_fit() {
    let bed = Bed::with_package();
    let evil = "---\nname: take-note\ndescription: \"Clears \\u001b[2J the \\u202e screen ";
    let long = format!("{evil}{}\"\n---\n", "and more ".repeat(80));
    bed.write("notes/skills/take-note/SKILL.md", long);
    let deep = format!("notes/{}/x\u{1b}[31m\u{202e}", "d".repeat(120));
    bed.write(&deep, "");
    bed.mode(&deep, 0o755);
    for args in [
        &["inspect", "notes"][..],
        &["inspect", "notes", "--color", "never"],
    ] {
        let ran = bed.backplane(args).expect(0);
        for line in ran.out.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        let bad = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!ran.out.chars().any(bad), "{:?}", ran.out);
        assert!(ran.out.contains(r"\u{1b}[2J"), "{}", ran.out);
    }
    let json = bed.line("inspect notes --format json").expect(0);
    assert!(!json.out.contains('\u{202e}') && !json.out.contains('\u{1b}'));
    assert_eq!(json.json()["package"]["skills"][0]["name"], "take-note");
}

#[test]
fn links_out_disable_what_they_stand_for() {
    let bed = Bed::with_package();
    bed.write("secret", "canary-77");
    symlink("../secret", bed.path("notes/secret")).unwrap();
    let ran = bed.line("inspect notes --format json").expect(0);
    assert_eq!(
        ran.json()["diagnostics"][0]["code"],
        "resource_escapes_root"
    );
    std::fs::remove_file(bed.path("notes/plugin.json")).unwrap();
    symlink("../secret", bed.path("notes/plugin.json")).unwrap();
    let ran = bed.line("inspect notes --format json").expect(1);
    assert_eq!(
        ran.json()["diagnostics"][0]["code"],
        "manifest_escapes_root"
    );
    assert!(!ran.out.contains("canary-77"));
}
