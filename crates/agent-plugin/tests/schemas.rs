//! The bundled schemas against the loader, over the corpus. The checker knows the keywords that
//! the schemas use and fails on any other.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking"
)]

use agent_plugin::{Code, Files, Options, load, schemas};
use regex::Regex;
use strict_json::{Json, Layout, Limits, Object, parse_value, to_line};

const LIMITS: Limits = Limits {
    bytes: 2 << 20,
    depth: 300,
};

/// What is beyond any schema.
const BEYOND: [Code; 6] = [
    Code::ServerCommandEscapes,
    Code::ServerCwdEscapes,
    Code::ServerUrlInsecure,
    Code::TransportUnsupported,
    Code::SkillNameMismatch,
    Code::LimitExceeded,
];

fn parse(text: &str) -> Option<Json> {
    parse_value(text.as_bytes(), &LIMITS, Layout::Spaced).ok()
}

fn object(value: &Json) -> &Object {
    match value {
        Json::Object(object) => object,
        other => panic!("an object: {other:?}"),
    }
}

fn items(value: &Json) -> &[Json] {
    match value {
        Json::Array(items) => items,
        other => panic!("an array: {other:?}"),
    }
}

fn text(value: &Json) -> &str {
    match value {
        Json::Text(text) => text,
        other => panic!("a text: {other:?}"),
    }
}

fn length(value: &Json) -> usize {
    match value {
        Json::Integer(length) => usize::try_from(*length).unwrap(),
        other => panic!("a length: {other:?}"),
    }
}

fn allows(schema: &Json, value: &Json) -> bool {
    if let Json::Bool(answer) = schema {
        return *answer;
    }
    let schema = object(schema);
    schema
        .iter()
        .all(|(keyword, rule)| allows_keyword(schema, keyword, rule, value))
}

fn allows_keyword(schema: &Object, keyword: &str, rule: &Json, value: &Json) -> bool {
    match (keyword, value) {
        ("$schema" | "$comment" | "title", _) => true,
        ("type", value) => match text(rule) {
            "string" => matches!(value, Json::Text(_)),
            "object" => matches!(value, Json::Object(_)),
            "array" => matches!(value, Json::Array(_)),
            other => panic!("type {other}"),
        },
        ("const", value) => value == rule,
        ("enum", value) => items(rule).contains(value),
        ("not", value) => !allows(rule, value),
        ("oneOf", value) => items(rule).iter().filter(|one| allows(one, value)).count() == 1,
        ("minLength", Json::Text(it)) => it.chars().count() >= length(rule),
        ("maxLength", Json::Text(it)) => it.chars().count() <= length(rule),
        ("pattern", Json::Text(it)) => Regex::new(text(rule)).unwrap().is_match(it),
        ("items", Json::Array(list)) => list.iter().all(|item| allows(rule, item)),
        ("required", Json::Object(it)) => items(rule).iter().all(|key| it.get(text(key)).is_some()),
        ("properties", Json::Object(it)) => object(rule)
            .iter()
            .all(|(key, rule)| it.get(key).is_none_or(|value| allows(rule, value))),
        ("propertyNames", Json::Object(it)) => it
            .iter()
            .all(|(key, _)| allows(rule, &Json::Text(key.to_owned()))),
        ("additionalProperties", Json::Object(it)) => {
            let known = schema.get("properties").map(object);
            it.iter()
                .filter(|(key, _)| known.is_none_or(|known| known.get(key).is_none()))
                .all(|(_, value)| allows(rule, value))
        }
        (
            "minLength"
            | "maxLength"
            | "pattern"
            | "items"
            | "required"
            | "properties"
            | "propertyNames"
            | "additionalProperties",
            _,
        ) => true,
        (other, _) => panic!("the checker does not know `{other}`"),
    }
}

/// The packages of the corpus that hold texts and JSON only.
fn corpus() -> Vec<(String, Files)> {
    let mut found = Vec::new();
    for kind in ["accept", "reject"] {
        let folder = format!("{}/tests/corpus/{kind}", env!("CARGO_MANIFEST_DIR"));
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let case = parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let files = object(object(&case).get("files").unwrap())
                .iter()
                .map(|(path, value)| {
                    let bytes = match value {
                        Json::Text(text) => text.clone().into_bytes(),
                        other => to_line(other),
                    };
                    (path.to_owned(), bytes)
                })
                .collect();
            found.push((path.display().to_string(), files));
        }
    }
    found
}

/// Returns the codes of the errors in a file, or of a member of it.
fn errors(files: &Files, prefix: &str) -> Vec<Code> {
    let found = match load(files.clone(), &Options::default()) {
        Ok(package) => package.diagnostics,
        Err(found) => found,
    };
    found
        .iter()
        .filter(|found| found.severity == agent_plugin::Severity::Error)
        .filter(|found| {
            found.path == prefix
                || found.path.starts_with(&format!("{prefix}/"))
                || found.path.starts_with(&format!("{prefix}#"))
        })
        .map(|found| found.code)
        .collect()
}

fn document(files: &Files, path: &str) -> Option<Json> {
    parse(std::str::from_utf8(files.get(path)?).ok()?)
}

#[test]
fn the_schema_of_the_manifest_says_what_the_loader_says() {
    let schema = parse(schemas::PLUGIN).unwrap();
    let mut judged = [0, 0];
    for (name, files) in corpus() {
        let Some(value) = document(&files, "plugin.json") else {
            continue;
        };
        let found = errors(&files, "plugin.json");
        if found.iter().any(|code| BEYOND.contains(code)) {
            continue;
        }
        let is_valid = allows(&schema, &value);
        assert_eq!(is_valid, found.is_empty(), "{name}: {found:?}");
        judged[usize::from(is_valid)] += 1;
    }
    assert!(judged.iter().all(|count| *count > 20), "{judged:?}");
}

#[test]
fn the_schemas_of_mcp_say_what_the_loader_says() {
    let schema = parse(schemas::MCP).unwrap();
    let server = parse(schemas::MCP_SERVER).unwrap();
    let mut judged = [0, 0];
    for (name, files) in corpus() {
        let Some(value) = document(&files, "mcp.json") else {
            continue;
        };
        let found = errors(&files, "mcp.json");
        let is_whole = |code: &Code| code.as_str().starts_with("mcp_");
        let is_disabled = found.iter().any(is_whole) || found.contains(&Code::LimitExceeded);
        if !found.contains(&Code::LimitExceeded) {
            assert_eq!(allows(&schema, &value), !is_disabled, "{name}: {found:?}");
        }
        if is_disabled {
            continue;
        }
        let Some(servers) = object(&value).get("mcpServers").map(object) else {
            continue;
        };
        for (key, value) in servers.iter() {
            let found = errors(&files, &format!("mcp.json#/mcpServers/{key}"));
            let is_valid = allows(&server, value);
            // A schema is never the stricter one.
            assert!(is_valid || !found.is_empty(), "{name}: {key}");
            let is_beyond = found.iter().all(|code| {
                BEYOND.contains(code)
                    || matches!(code, Code::ServerHeadersInvalid | Code::ServerUrlInvalid)
            });
            assert!(!is_valid || is_beyond, "{name}: {key}: {found:?}");
            judged[usize::from(is_valid)] += 1;
        }
    }
    assert!(judged.iter().all(|count| *count > 20), "{judged:?}");
}

#[test]
fn the_schema_of_skills_allows_each_that_loads_and_refuses_what_the_loader_refuses() {
    let schema = parse(schemas::SKILL).unwrap();
    let mut judged = [0, 0];
    for (name, files) in corpus() {
        if let Ok(package) = load(files.clone(), &Options::default()) {
            for skill in package.skills {
                assert!(allows(&schema, &Json::Object(skill.metadata)), "{name}");
                judged[1] += 1;
            }
        }
        // What is refused is read through the lenient eyes of a package that names its own keys.
        let Some(bytes) = files.get("skills/x/SKILL.md") else {
            continue;
        };
        let Some(head) = frontmatter(bytes) else {
            continue;
        };
        let found = errors(&files, "skills/x/SKILL.md");
        let is_beyond = found.iter().all(|code| BEYOND.contains(code));
        assert_eq!(allows(&schema, &head), is_beyond, "{name}: {found:?}");
        judged[usize::from(is_beyond)] += 1;
    }
    assert!(judged.iter().all(|count| *count > 10), "{judged:?}");
}

/// Returns a frontmatter of plain one-line members, by the loader's own reading: a document whose
/// member `metadata` it is, loaded leniently.
fn frontmatter(bytes: &[u8]) -> Option<Json> {
    let text = std::str::from_utf8(bytes).ok()?;
    let rest = text.strip_prefix("---\n")?;
    let end = rest.find("\n---")?;
    let nested: String = rest[..end]
        .lines()
        .map(|line| format!("  {line}\n"))
        .collect();
    let document = format!("---\nname: x\ndescription: y\nmetadata:\n{nested}---\n");
    let manifest = format!(
        r#"{{"$schema":"{}","name":"x"}}"#,
        agent_plugin::PLUGIN_SCHEMA
    );
    let files = Files::from([
        ("plugin.json".to_owned(), manifest.into_bytes()),
        ("skills/x/SKILL.md".to_owned(), document.into_bytes()),
    ]);
    let options = Options {
        lenient: true,
        ..Options::default()
    };
    let package = load(files, &options).ok()?;
    let metadata = package.skills.first()?.metadata.get("metadata")?;
    matches!(metadata, Json::Object(_)).then(|| metadata.clone())
}
