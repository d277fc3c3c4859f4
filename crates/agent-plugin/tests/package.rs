//! What a loaded package holds, and what hostile bytes cost.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::collections::BTreeSet;

use agent_plugin::{
    Code, Containment, Files, MAX_DIAGNOSTICS, MCP_SCHEMA, Options, PLUGIN_SCHEMA, Package,
    Severity, Transport, load, load_with,
};
use proptest::prelude::*;
use strict_json::Json;

const SKILL: &str = "---\r\nname: x\r\ndescription: what it is for\r\nextra: 1\r\n---\r\nBody\r\n";

fn files(more: &[(&str, &str)]) -> Files {
    let manifest = format!(r#"{{"$schema":"{PLUGIN_SCHEMA}","name":"example"}}"#);
    let mut files = Files::from([("plugin.json".to_owned(), manifest.into_bytes())]);
    for (path, content) in more {
        files.insert((*path).to_owned(), content.as_bytes().to_vec());
    }
    files
}

fn mcp(servers: &str) -> String {
    format!(r#"{{"$schema":"{MCP_SCHEMA}","mcpServers":{servers}}}"#)
}

fn loaded(more: &[(&str, &str)]) -> Package {
    load(files(more), &Options::default()).unwrap()
}

#[test]
fn a_skill_has_every_part_and_its_original_text() {
    let package = loaded(&[
        ("skills/x/SKILL.md", SKILL),
        ("skills/x/scripts/run.sh", "echo"),
        ("skills/x/sub/SKILL.md", "nested"),
        ("skills/xy/data", "not its own"),
    ]);
    let [skill] = package.skills.as_slice() else {
        panic!("one skill: {:?}", package.skills);
    };
    assert_eq!(skill.path, "skills/x/SKILL.md");
    assert_eq!(skill.root, "skills/x");
    assert_eq!(skill.name, "x");
    assert_eq!(skill.description, "what it is for");
    assert_eq!(skill.content, SKILL);
    assert_eq!(skill.body, "Body\r\n");
    assert_eq!(skill.metadata.get("extra"), Some(&Json::Integer(1)));
    let resources: Vec<_> = package.resources(skill).collect();
    assert_eq!(
        resources,
        [
            ("skills/x/scripts/run.sh", b"echo".as_slice()),
            ("skills/x/sub/SKILL.md", b"nested")
        ]
    );
}

#[test]
fn the_manifest_keeps_what_has_no_meaning() {
    let manifest = format!(
        r#"{{"later":[1],"name":"example","$schema":"{PLUGIN_SCHEMA}","extensions":{{"org.example":{{"a":1}}}}}}"#
    );
    let given = Files::from([("plugin.json".to_owned(), manifest.clone().into_bytes())]);
    let package = load(given.clone(), &Options::default()).unwrap();
    assert_eq!(
        strict_json::to_line(&Json::Object(package.manifest.clone())),
        manifest.as_bytes()
    );
    assert_eq!(package.files, given);
    assert_eq!(package.version(), None);
}

#[test]
fn servers_keep_their_configuration_unexpanded() {
    let config =
        r#"{"type":"stdio","command":"a","args":["${PLUGIN_ROOT}/${X}"],"cwd":"${PLUGIN_DATA}"}"#;
    let package = loaded(&[("mcp.json", &mcp(&format!(r#"{{"a":{config}}}"#)))]);
    let server = package.mcp_servers.get("a").unwrap();
    assert_eq!(server.transport, Transport::Stdio);
    let written = strict_json::to_line(&Json::Object(server.config.clone()));
    assert_eq!(written, config.as_bytes());
}

#[test]
fn a_diagnostic_is_written_with_its_four_parts() {
    let package = loaded(&[("mcp.json", &mcp(r#"{"a/b":{"type":"x"}}"#))]);
    let written: Vec<_> = package
        .diagnostics
        .iter()
        .map(|found| strict_json::to_line(&found))
        .collect();
    let expected = br#"[{"severity":"error","code":"server_type_unknown","path":"mcp.json#/mcpServers/a~1b/type","message":"`x` is not `stdio`, `streamable-http` or `sse`"}]"#;
    let joined = [b"[".as_slice(), &written.concat(), b"]"].concat();
    assert_eq!(
        joined.escape_ascii().to_string(),
        expected.escape_ascii().to_string()
    );
}

#[test]
fn a_restriction_of_transports_skips_the_others() {
    let servers = r#"{"a":{"type":"stdio","command":"a"},"b":{"type":"sse","url":"https://h/"}}"#;
    let options = Options {
        transports: BTreeSet::from([Transport::Stdio]),
        ..Options::default()
    };
    let package = load(files(&[("mcp.json", &mcp(servers))]), &options).unwrap();
    assert_eq!(package.mcp_servers.keys().collect::<Vec<_>>(), ["a"]);
    let [found] = package.diagnostics.as_slice() else {
        panic!("one diagnostic: {:?}", package.diagnostics);
    };
    assert_eq!(found.code, Code::TransportUnsupported);
    assert_eq!(found.severity, Severity::Warning);
    assert_eq!(found.path, "mcp.json#/mcpServers/b");
}

/// Every path with `link` in it leads outside.
struct Links;

impl Containment for Links {
    fn is_inside(&self, path: &str) -> bool {
        !path.split('/').any(|part| part == "link")
    }
}

#[test]
fn v05_v06_links_out_of_the_package_skip_their_server_alone() {
    let servers = r#"{"a":{"type":"stdio","command":"./link/x"},"b":{"type":"stdio","command":"b","cwd":"./link"},"c":{"type":"stdio","command":"c","cwd":"${PLUGIN_DATA}/link"}}"#;
    let files = files(&[("mcp.json", &mcp(servers))]);
    let package = load_with(files, &Options::default(), &Links).unwrap();
    let codes: Vec<_> = package.diagnostics.iter().map(|found| found.code).collect();
    assert_eq!(codes, [Code::ServerCommandEscapes, Code::ServerCwdEscapes]);
    assert_eq!(package.mcp_servers.keys().collect::<Vec<_>>(), ["c"]);
}

#[test]
fn a_frontmatter_beyond_its_limit_skips_the_skill() {
    let long = format!(
        "---\nname: x\ndescription: y\nlicense: {}\n---\n",
        "a".repeat(256 * 1024)
    );
    let package = loaded(&[("skills/x/SKILL.md", &long)]);
    assert_eq!(package.skills, []);
    assert_eq!(package.diagnostics[0].code, Code::LimitExceeded);
    // A body is not limited by it.
    let body = format!("---\nname: x\ndescription: y\n---\n{}", "a".repeat(1 << 20));
    assert_eq!(loaded(&[("skills/x/SKILL.md", &body)]).skills.len(), 1);
}

#[test]
fn documents_beyond_their_limit_are_not_read() {
    let long = " ".repeat((1 << 20) + 1);
    let package = loaded(&[("mcp.json", &long)]);
    assert_eq!(package.diagnostics[0].code, Code::LimitExceeded);
    let given = Files::from([("plugin.json".to_owned(), long.into_bytes())]);
    let found = load(given, &Options::default()).unwrap_err();
    assert_eq!(found[0].code, Code::LimitExceeded);
}

#[test]
fn the_list_of_diagnostics_is_bounded_and_keeps_its_weight() {
    use std::fmt::Write as _;
    let mut manifest = format!(r#"{{"$schema":"{PLUGIN_SCHEMA}","name":"example""#);
    for index in 0..2 * MAX_DIAGNOSTICS {
        write!(manifest, r#","x{index}":0"#).unwrap();
    }
    for (end, severity) in [
        ("}", Severity::Warning),
        (r#","version":1}"#, Severity::Error),
    ] {
        let bytes = format!("{manifest}{end}").into_bytes();
        let given = Files::from([("plugin.json".to_owned(), bytes)]);
        let found = match load(given, &Options::default()) {
            Ok(package) => package.diagnostics,
            Err(found) => found,
        };
        assert_eq!(found.len(), MAX_DIAGNOSTICS);
        let last = found.last().unwrap();
        assert_eq!((last.code, last.severity), (Code::LimitExceeded, severity));
    }
}

#[test]
fn each_path_that_is_none_rejects_the_package() {
    let bad = [
        "", "/a", "a/", "a//b", "./a", "a/.", "../a", "a/../b", "a\0b",
    ];
    for path in bad {
        let found = load(files(&[(path, "")]), &Options::default()).unwrap_err();
        let codes: Vec<_> = found.iter().map(|found| found.code).collect();
        assert_eq!(codes, [Code::PathInvalid], "{path:?}");
        assert!(!found[0].path.contains('\0'));
    }
    assert!(load(files(&[("..a/.b/c..", "")]), &Options::default()).is_ok());
}

#[test]
fn a_document_that_is_a_file_and_a_directory_is_no_skill() {
    let document = "skills/x/SKILL.md";
    let package = loaded(&[(document, SKILL), ("skills/x/SKILL.md/y", "")]);
    assert!(package.skills.is_empty() && package.diagnostics.is_empty());
}

#[test]
fn lengths_are_counted_in_characters_and_metadata_that_is_none_is_told_where_lenient() {
    let long = "\u{e9}".repeat(500);
    let head = format!("name: x\ndescription: d\ncompatibility: {long}\nmetadata: 1");
    let document = format!("---\n{head}\n---\n");
    let given = files(&[("skills/x/SKILL.md", &document)]);
    let mut options = Options::default();
    for (lenient, severity) in [(false, Severity::Error), (true, Severity::Warning)] {
        options.lenient = lenient;
        let package = load(given.clone(), &options).unwrap();
        let found = &package.diagnostics[0];
        assert_eq!(
            (found.code, found.severity),
            (Code::SkillFieldInvalid, severity)
        );
        assert!(found.path.ends_with("#/metadata"), "{}", found.path);
        assert_eq!(
            (package.skills.len(), package.diagnostics.len()),
            (usize::from(lenient), 1)
        );
    }
}

#[test]
fn plain_scalars_are_typed_by_the_core_schema_and_all_others_are_texts() {
    let integers = [
        ("7", 7),
        ("+7", 7),
        ("-7", -7),
        ("012", 12),
        ("0x1F", 31),
        ("0o17", 15),
    ];
    let largest = i64::MAX;
    let mut cases: Vec<(String, Json)> = integers
        .into_iter()
        .map(|(text, value)| (text.to_owned(), Json::Integer(value)))
        .collect();
    cases.push((largest.to_string(), Json::Integer(largest)));
    cases.push((u64::MAX.to_string(), Json::Unsigned(u64::MAX)));
    cases.push((format!("{:#x}", u64::MAX), Json::Unsigned(u64::MAX)));
    for (text, value) in [
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.", 1.0),
        ("-1e2", -100.0),
        ("1E-1", 0.1),
    ] {
        cases.push((text.to_owned(), Json::Number(value)));
    }
    for null in ["", "~", "null", "Null", "NULL"] {
        cases.push((null.to_owned(), Json::Null));
    }
    for (yes, no) in [("true", "false"), ("True", "False"), ("TRUE", "FALSE")] {
        cases.push((yes.to_owned(), Json::Bool(true)));
        cases.push((no.to_owned(), Json::Bool(false)));
    }
    for text in [
        "yes",
        "No",
        "on",
        "tRUE",
        "nULL",
        "2026-12-01",
        "12:30",
        "1_000",
        "0x",
        "0xg",
        "0x+1",
        "-0x1",
        "0o8",
        "0b1",
        "1e",
        "e1",
        ".",
        "+",
        "..5",
        "1.2.3",
        "inf",
        "NaN",
        "infinity",
        "+.e1",
    ] {
        cases.push((text.to_owned(), Json::Text(text.to_owned())));
    }
    for (text, value) in cases {
        let head = format!("name: x\ndescription: d\nextra: {text}\nquoted: \"{text}\"");
        let package = loaded(&[("skills/x/SKILL.md", &format!("---\n{head}\n---\n"))]);
        let metadata = &package.skills[0].metadata;
        assert_eq!(metadata.get("extra"), Some(&value), "{text}");
        assert_eq!(metadata.get("quoted"), Some(&Json::Text(text)));
    }
}

#[test]
fn v03_v04_v09_characters_of_no_command_name_or_url_skip_the_server() {
    let faults = [
        (Code::ServerCommandInvalid, r#""command":"a\u0007""#),
        (Code::ServerCommandInvalid, r#""command":"./a\\""#),
        (Code::ServerCommandInvalid, r#""command":"./a\\..""#),
        (
            Code::ServerEnvInvalid,
            r#""command":"a","env":{"A\u0000":"x"}"#,
        ),
        (
            Code::ServerUrlInvalid,
            r#""url":"https://h.example/\u0007""#,
        ),
        (
            Code::ServerUrlInvalid,
            r#""url":"https://h.example\u0085/""#,
        ),
    ];
    for (code, fields) in faults {
        let kind = if fields.contains("url") {
            "sse"
        } else {
            "stdio"
        };
        let server = format!(r#"{{"a":{{"type":"{kind}",{fields}}}}}"#);
        let package = loaded(&[("mcp.json", &mcp(&server))]);
        let found: Vec<_> = package.diagnostics.iter().map(|found| found.code).collect();
        assert_eq!(found, [code], "{fields}");
        assert!(package.mcp_servers.is_empty());
    }
}

#[test]
fn a_long_name_is_not_held_once_for_each_finding() {
    let name = "n/~".repeat(100_000);
    let faults = vec!["0"; 2_000].join(",");
    let server = format!(r#"{{"type":"stdio","command":"x","args":[{faults}],"{name}":0}}"#);
    let servers = format!(r#"{{"{name}":{server},"{}":0}}"#, "é".repeat(256));
    let package = loaded(&[("mcp.json", &mcp(&servers))]);
    assert_eq!(package.diagnostics.len(), MAX_DIAGNOSTICS);
    let longest = package
        .diagnostics
        .iter()
        .map(|found| found.path.len() + found.message.len());
    assert!(longest.max().unwrap() < 2_000);

    let whole = format!(r#"{{"{}":0,"{}":0}}"#, "a".repeat(256), "b".repeat(257));
    let package = loaded(&[("mcp.json", &mcp(&whole))]);
    let paths: Vec<_> = package
        .diagnostics
        .iter()
        .map(|found| &found.path)
        .collect();
    let expected = ["a".repeat(256), format!("{}…", "b".repeat(256))];
    assert_eq!(
        paths,
        expected
            .map(|name| format!("mcp.json#/mcpServers/{name}"))
            .each_ref()
    );
}

#[test]
fn a_fault_of_yaml_is_told_by_its_line_in_the_file() {
    let package = loaded(&[(
        "skills/x/SKILL.md",
        "---\nname: x\ndescription: a: b\n---\n",
    )]);
    let message = &package.diagnostics[0].message;
    assert!(message.starts_with("frontmatter: line 3: "), "{message}");
}

#[test]
fn the_page_has_every_code_and_no_other() {
    let page = include_str!("../../../docs/reference/plugin-package.md");
    let (_, codes) = page.split_once("\n## Codes\n").unwrap();
    let rows: Vec<_> = codes
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(str::to_owned)
        .collect();
    let expected: Vec<_> = Code::ALL
        .iter()
        .map(|code| format!("| `{code}` | {} |", code.meaning()))
        .collect();
    assert_eq!(rows, expected);
}

/// What the corpus cannot show: a map has no links, and a load is silent about collisions.
const NOT_OF_A_LOAD: [Code; 9] = [
    Code::PathCollision,
    Code::ManifestEscapesRoot,
    Code::SkillsEscapesRoot,
    Code::SkillEscapesRoot,
    Code::McpEscapesRoot,
    Code::ResourceEscapesRoot,
    Code::LinkCycle,
    Code::LinkDangling,
    Code::SpecialFile,
];

#[test]
fn the_corpus_shows_every_code_and_every_rule() {
    let mut seen: BTreeSet<Code> = BTreeSet::new();
    let mut rules = [BTreeSet::new(), BTreeSet::new()];
    for (kind, rules) in ["accept", "reject"].iter().zip(&mut rules) {
        let folder = format!("{}/tests/corpus/{kind}", env!("CARGO_MANIFEST_DIR"));
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            rules.insert(name.split('-').next().unwrap().to_owned());
            let text = std::fs::read_to_string(path).unwrap();
            seen.extend(Code::ALL.iter().filter(|code| {
                text.contains(&format!("\"error {code} "))
                    || text.contains(&format!("\"warning {code} "))
            }));
        }
    }
    let missing: Vec<_> = Code::ALL
        .iter()
        .filter(|code| !seen.contains(code) && !NOT_OF_A_LOAD.contains(code))
        .collect();
    assert_eq!(missing, [] as [&Code; 0]);
    let numbered = |letter: char, last: usize| (1..=last).map(move |n| format!("{letter}{n:02}"));
    let wanted: BTreeSet<_> = numbered('m', 14)
        .filter(|rule| rule != "m12")
        .chain(numbered('s', 8))
        .chain(numbered('j', 5))
        .chain(numbered('v', 11))
        .collect();
    let [accepted, rejected] = rules;
    assert_eq!(accepted, wanted);
    assert_eq!(rejected, wanted);
}

fn fragments() -> impl Strategy<Value = String> {
    let fragment = prop::sample::select(vec![
        "---\n",
        "---\r\n",
        "name: x\n",
        "description: y\n",
        "a: [",
        "{",
        "}",
        "\"",
        ":",
        "- ",
        "\n",
        "&a ",
        "*a",
        "!",
        "|\n",
        ">\n",
        "  ",
        "\u{feff}",
        "\u{2028}",
        "\t",
        "<<: ",
        "name",
        "${PLUGIN_ROOT}",
        "./",
        "..",
        "http://",
        "@",
        "#",
        "[::1]",
        "\\",
        "null",
        "1e9",
        ".inf",
        "0x",
        "+",
    ]);
    prop::collection::vec(fragment, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn any_document_loads_or_is_reported_and_bytes_stay(
        manifest in prop::option::of(fragments()), skill in fragments(), mcp_document in fragments(),
        other in prop::collection::vec(any::<u8>(), 0..64), path in "[a-zA-Z./]{1,16}", lenient: bool,
    ) {
        let mut given = files(&[("skills/x/SKILL.md", &format!("---\n{skill}")), ("mcp.json", &mcp_document)]);
        given.extend(manifest.map(|text| ("plugin.json".to_owned(), text.into_bytes())));
        given.entry(path).or_insert(other);
        let options = Options { lenient, ..Options::default() };
        match load(given.clone(), &options) {
            Ok(package) => prop_assert_eq!(package.files, given),
            Err(found) => prop_assert!(found.iter().any(|found| found.severity == Severity::Error)),
        }
    }

    #[test]
    fn any_text_of_a_server_is_judged(texts in prop::collection::vec(fragments(), 4)) {
        let quoted = |index: usize| String::from_utf8(strict_json::to_line(&texts[index])).unwrap();
        let servers = format!(
            r#"{{"a":{{"type":"stdio","command":{},"cwd":{}}},"b":{{"type":"sse","url":{},"headers":{{{}:"x"}}}}}}"#,
            quoted(0), quoted(1), quoted(2), quoted(3)
        );
        let package = loaded(&[("mcp.json", &mcp(&servers))]);
        for name in ["a", "b"] {
            let prefix = format!("mcp.json#/mcpServers/{name}");
            let is_reported = package.diagnostics.iter().any(|found| found.path.starts_with(&prefix));
            prop_assert_ne!(package.mcp_servers.contains_key(name), is_reported);
        }
    }
}
