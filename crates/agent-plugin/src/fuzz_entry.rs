//! The bodies of the fuzz targets, shared with the test that replays their corpora.

use strict_json::to_line;

use crate::{
    Diagnostic, Files, MANIFEST, MAX_DIAGNOSTICS, MCP, Options, PLUGIN_SCHEMA, Package, Severity,
    load,
};

/// Reads arbitrary bytes as a manifest; one that loads is the same when it is written and read.
pub fn manifest(bytes: &[u8]) {
    let files = Files::from([(MANIFEST.to_owned(), bytes.to_vec())]);
    let Some(package) = loaded(&files) else {
        return;
    };
    let written = to_line(&package.manifest);
    let again = loaded(&Files::from([(MANIFEST.to_owned(), written)]));
    assert!(
        again.is_some_and(|again| again.manifest == package.manifest),
        "what loads can be written and loads again"
    );
}

/// Reads arbitrary bytes as the document of a skill, strictly and leniently.
pub fn skill(bytes: &[u8]) {
    let files = with_manifest("skills/x/SKILL.md", bytes);
    let strict = loaded(&files);
    let options = Options {
        lenient: true,
        ..Options::default()
    };
    let lenient = judged(&files, &options);
    assert_eq!(
        (strict.is_some(), lenient.is_some()),
        (true, true),
        "a wrong skill rejects no package"
    );
    let (Some(strict), Some(lenient)) = (strict, lenient) else {
        return;
    };
    assert!(
        strict.skills.len() <= lenient.skills.len(),
        "whatever is strict is lenient"
    );
    for skill in &strict.skills {
        assert_eq!(skill.name, "x", "the name is that of the directory");
        assert_eq!(skill.content.as_bytes(), bytes, "the bytes stay");
        assert!(
            skill.content.ends_with(&skill.body),
            "the body is what is left"
        );
    }
}

/// Reads arbitrary bytes as `mcp.json`; each server that loads does so alone too.
pub fn mcp(bytes: &[u8]) {
    let package = loaded(&with_manifest(MCP, bytes));
    assert!(package.is_some(), "a wrong `mcp.json` rejects no package");
    let Some(package) = package else {
        return;
    };
    let written = to_line(&package.mcp_servers);
    let head = format!(r#"{{"$schema":"{}","mcpServers":"#, crate::MCP_SCHEMA);
    let alone = [head.as_bytes(), &written, b"}"].concat();
    let again = loaded(&with_manifest(MCP, &alone));
    assert!(
        again.is_some_and(|again| again.mcp_servers == package.mcp_servers),
        "the servers that load do so without the others"
    );
}

fn with_manifest(path: &str, bytes: &[u8]) -> Files {
    let manifest = format!(r#"{{"$schema":"{PLUGIN_SCHEMA}","name":"x"}}"#);
    Files::from([
        (MANIFEST.to_owned(), manifest.into_bytes()),
        (path.to_owned(), bytes.to_vec()),
    ])
}

fn loaded(files: &Files) -> Option<Package> {
    judged(files, &Options::default())
}

/// Loads, and checks what must hold for whatever was accepted or refused.
fn judged(files: &Files, options: &Options) -> Option<Package> {
    match load(files.clone(), options) {
        Ok(package) => {
            assert_eq!(&package.files, files, "the snapshot stays");
            check(&package.diagnostics);
            Some(package)
        }
        Err(found) => {
            assert!(
                found.iter().any(|found| found.severity == Severity::Error),
                "a refusal says why"
            );
            check(&found);
            None
        }
    }
}

fn check(found: &[Diagnostic]) {
    assert!(found.len() <= MAX_DIAGNOSTICS, "the list is bounded");
    for found in found {
        assert!(found.message.len() < 2_000, "a message is bounded");
        assert!(
            !found.message.contains(char::is_control),
            "a message has no control character"
        );
    }
}
