//! Loads every package of the corpus; the name of a file starts with the rule it is about.
//!
//! In `accept` nothing is an error; in `reject` something is, and what else is valid still loads
//! unless the manifest is wrong. A file of a package is a text, the bytes of one, or a JSON value.

use std::path::Path;

use agent_plugin::{Diagnostic, Files, Options, Package, Severity, Transport, load};
use strict_json::{Element, Fields, Json, Layout, Limits, Object, parse_object, to_line};

const LIMITS: Limits = Limits {
    bytes: 1 << 20,
    depth: 64,
};

struct Case {
    files: Files,
    options: Options,
    rejected: bool,
    skills: Vec<String>,
    servers: Vec<String>,
    diagnostics: Vec<String>,
}

fn content(value: &Json) -> Vec<u8> {
    match value {
        Json::Text(text) => text.clone().into_bytes(),
        Json::Array(bytes) => bytes
            .iter()
            .filter_map(|byte| match byte {
                Json::Integer(byte) => u8::try_from(*byte).ok(),
                _ => None,
            })
            .collect(),
        other => to_line(other),
    }
}

fn texts(fields: &mut Fields, name: &str) -> Result<Vec<String>, strict_json::FieldError> {
    let items = fields.array(name)?;
    items.into_iter().map(Element::text).collect()
}

fn options(given: Option<Fields>) -> datatest_stable::Result<Options> {
    let mut options = Options::default();
    if let Some(mut given) = given {
        options.lenient = given.opt_bool("lenient")?.unwrap_or_default();
        if given.contains("transports") {
            options.transports = texts(&mut given, "transports")?
                .iter()
                .filter_map(|name| Transport::from_name(name))
                .collect();
        }
        given.end()?;
    }
    Ok(options)
}

fn case(path: &Path) -> datatest_stable::Result<Case> {
    let document = parse_object(&std::fs::read(path)?, &LIMITS, Layout::Spaced)?;
    let mut document = document.fields("");
    let Json::Object(files) = document.value("files")? else {
        return Err("files".into());
    };
    let mut expect = document.object("expect")?;
    let case = Case {
        files: paths(&files),
        options: options(document.opt_object("options")?)?,
        rejected: expect.bool("rejected")?,
        skills: texts(&mut expect, "skills")?,
        servers: texts(&mut expect, "servers")?,
        diagnostics: texts(&mut expect, "diagnostics")?,
    };
    expect.end()?;
    document.end()?;
    Ok(case)
}

fn paths(files: &Object) -> Files {
    files
        .iter()
        .map(|(path, value)| (path.to_owned(), content(value)))
        .collect()
}

fn lines(found: &[Diagnostic]) -> Vec<String> {
    let severity = |found: &Diagnostic| match found.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    found
        .iter()
        .map(|found| format!("{} {} {}", severity(found), found.code, found.path))
        .collect()
}

fn same<T: PartialEq + std::fmt::Debug>(found: &T, expected: &T) -> datatest_stable::Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(format!("found {found:#?}, expected {expected:#?}").into())
}

fn check(case: &Case, loaded: &Result<Package, Vec<Diagnostic>>) -> datatest_stable::Result<()> {
    match loaded {
        Err(found) => {
            same(&lines(found), &case.diagnostics)?;
            same(&true, &case.rejected)
        }
        Ok(package) => {
            same(&lines(&package.diagnostics), &case.diagnostics)?;
            same(&false, &case.rejected)?;
            let names = package.skills.iter().map(|skill| skill.name.clone());
            same(&names.collect(), &case.skills)?;
            same(
                &package.mcp_servers.keys().cloned().collect(),
                &case.servers,
            )?;
            same(&package.files, &case.files)
        }
    }
}

fn run(path: &Path, with_errors: bool) -> datatest_stable::Result<()> {
    let case = case(path)?;
    let is_error = |line: &String| line.starts_with("error ");
    same(&case.diagnostics.iter().any(is_error), &with_errors)?;
    check(&case, &load(case.files.clone(), &case.options))
}

fn accept(path: &Path) -> datatest_stable::Result<()> {
    run(path, false)
}

fn reject(path: &Path) -> datatest_stable::Result<()> {
    run(path, true)
}

datatest_stable::harness! {
    { test = accept, root = "tests/corpus/accept", pattern = r"\.json$" },
    { test = reject, root = "tests/corpus/reject", pattern = r"\.json$" },
}
