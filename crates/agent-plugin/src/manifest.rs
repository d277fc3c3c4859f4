//! `plugin.json`: what rejects a package, and what is only reported.

use strict_json::{Json, JsonError, Layout, Limits, Object, parse_object};

use crate::diagnostic::{Report, member, shown};
use crate::load::has_below;
use crate::{Code, Files};

/// Where the manifest is.
pub const MANIFEST: &str = "plugin.json";

/// The identifier of the one version that is understood.
pub const PLUGIN_SCHEMA: &str = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json";

/// Limits of `plugin.json` and `mcp.json`.
pub(crate) const JSON_LIMITS: Limits = Limits {
    bytes: 1 << 20,
    depth: 128,
};

const TEXTS: [&str; 5] = [
    "version",
    "description",
    "homepage",
    "repository",
    "license",
];
const AUTHOR: [&str; 3] = ["name", "email", "url"];

/// Reads the manifest; what is wrong is in the report.
pub(crate) fn read(files: &Files, report: &mut Report) -> Option<Object> {
    let Some(bytes) = files.get(MANIFEST) else {
        let message = if has_below(files, MANIFEST) {
            "`plugin.json` is a directory, not a file"
        } else {
            "there is no `plugin.json` at the root"
        };
        report.error(Code::ManifestMissing, MANIFEST, message);
        return None;
    };
    match parse_object(bytes, &JSON_LIMITS, Layout::Spaced) {
        Ok(manifest) => {
            check(&manifest, report);
            Some(manifest)
        }
        Err(error) => {
            let code = match error {
                JsonError::NotAnObject { .. } => Code::ManifestNotObject,
                JsonError::TooLong { .. } | JsonError::TooDeep { .. } => Code::LimitExceeded,
                _ => Code::ManifestInvalidJson,
            };
            report.error(code, MANIFEST, error.to_string());
            None
        }
    }
}

fn check(manifest: &Object, report: &mut Report) {
    if manifest.get("$schema").is_none() {
        let message = "the required field `$schema` is missing";
        report.error(Code::SchemaMissing, MANIFEST, message);
    }
    if manifest.get("name").is_none() {
        let message = "the required field `name` is missing";
        report.error(Code::NameMissing, MANIFEST, message);
    }
    for (key, value) in manifest.iter() {
        let path = member(MANIFEST, key);
        match key {
            "$schema" => schema(value, &path, report),
            "name" => name(value, &path, report),
            "author" => author(value, &path, report),
            "keywords" => keywords(value, &path, report),
            "extensions" if matches!(value, Json::Object(_)) => {}
            "extensions" => {
                let message = format!("must be an object, not {}; it is ignored", value.kind());
                report.warning(Code::ExtensionsNotObject, &path, message);
            }
            key if TEXTS.contains(&key) => {
                text(value, Code::FieldType, &path, report);
            }
            key => {
                let message = format!("`{}` has no meaning here and is ignored", shown(key));
                report.warning(Code::UnknownField, &path, message);
            }
        }
    }
}

fn text<'a>(value: &'a Json, code: Code, path: &str, report: &mut Report) -> Option<&'a str> {
    if let Json::Text(text) = value {
        return Some(text);
    }
    report.error(
        code,
        path,
        format!("must be a string, not {}", value.kind()),
    );
    None
}

fn schema(value: &Json, path: &str, report: &mut Report) {
    let Some(id) = text(value, Code::FieldType, path, report) else {
        return;
    };
    if id != PLUGIN_SCHEMA {
        let message = match version_of(id, "plugin.schema.json") {
            Some(version) => format!("version {} is not supported; 1.0.0 is", shown(version)),
            None => format!("`{}` is not supported; `{PLUGIN_SCHEMA}` is", shown(id)),
        };
        report.error(Code::SchemaUnsupported, path, message);
    }
}

/// Returns the version in an identifier of the format.
pub(crate) fn version_of<'a>(id: &'a str, file: &str) -> Option<&'a str> {
    let rest = id.strip_prefix("https://agent-plugins.org/schemas/")?;
    let version = rest.strip_suffix(file)?.strip_suffix('/')?;
    (!version.is_empty() && !version.contains('/')).then_some(version)
}

fn name(value: &Json, path: &str, report: &mut Report) {
    let Some(name) = text(value, Code::FieldType, path, report) else {
        return;
    };
    if !is_name(name) {
        let message = format!(
            "`{}` is no name: 1 to 64 of a-z, 0-9, `-` and `.`, a letter or digit at both ends, no `--` and no `..`",
            shown(name)
        );
        report.error(Code::NameInvalid, path, message);
    }
}

fn is_name(name: &str) -> bool {
    let is_edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    bytes.len() <= 64
        && bytes.first().is_some_and(is_edge)
        && bytes.last().is_some_and(is_edge)
        && bytes
            .iter()
            .all(|byte| is_edge(byte) || b"-.".contains(byte))
        && !name.contains("--")
        && !name.contains("..")
}

fn author(value: &Json, path: &str, report: &mut Report) {
    let Json::Object(author) = value else {
        let message = format!("must be an object, not {}", value.kind());
        report.error(Code::AuthorInvalid, path, message);
        return;
    };
    for (key, value) in author.iter() {
        let path = member(path, key);
        if AUTHOR.contains(&key) {
            text(value, Code::AuthorInvalid, &path, report);
        } else {
            let message = format!("`{}` is no field of an author", shown(key));
            report.error(Code::AuthorInvalid, &path, message);
        }
    }
}

fn keywords(value: &Json, path: &str, report: &mut Report) {
    let Json::Array(keywords) = value else {
        let message = format!("must be an array, not {}", value.kind());
        report.error(Code::FieldType, path, message);
        return;
    };
    for (index, value) in keywords.iter().enumerate() {
        let path = member(path, &index.to_string());
        text(value, Code::FieldType, &path, report);
    }
}
