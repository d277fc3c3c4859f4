//! The records of plugins (attest-plugin/1, section 7), read and judged.
//!
//! A record's own rules are part of the format: a receipt that breaks one is none, whatever its
//! signature says. Nothing here needs the plugin, its binary or its declaration.

use strict_json::{Element, FieldError, Fields, Json, Object};

use super::take::{one_of, open, u32};
use super::{Decision, PluginRecord};
use crate::text::{is_lower_hex_64, shown};

/// Longest annotation in bytes of its compact form.
const MAX_ANNOTATION: usize = 64 * 1024;

/// Deepest nesting of an annotation; the annotation itself is the first level.
const MAX_ANNOTATION_DEPTH: usize = 64;

/// Takes the records of a receipt.
pub(super) fn records(fields: &mut Fields) -> Result<Option<Vec<PluginRecord>>, FieldError> {
    let path = fields.path_of("plugins");
    let Some(elements) = fields.opt_array("plugins")? else {
        return Ok(None);
    };
    if elements.is_empty() {
        return Err(FieldError::invalid(
            path,
            "must be absent when no plugin was declared",
        ));
    }
    let records: Vec<PluginRecord> = elements.into_iter().map(record).collect::<Result<_, _>>()?;
    let out_of_order = records
        .iter()
        .zip(records.iter().skip(1))
        .find(|(one, next)| one.name >= next.name);
    match out_of_order {
        None => Ok(Some(records)),
        Some((one, next)) => Err(FieldError::invalid(
            path,
            if one.name == next.name {
                format!("names {} twice", one.name)
            } else {
                format!(
                    "must be sorted by name; {} stands before {}",
                    one.name, next.name
                )
            },
        )),
    }
}

fn record(element: Element) -> Result<PluginRecord, FieldError> {
    let known = [
        ("allow", Decision::Allow),
        ("warn", Decision::Warn),
        ("deny", Decision::Deny),
        ("error", Decision::Error),
        ("skipped", Decision::Skipped),
    ];
    let mut fields = open(element, &["reason", "annotation"])?;
    let record = PluginRecord {
        name: name(&mut fields)?,
        version: fields.text("version")?,
        protocol: u32(&mut fields, "protocol")?,
        digest: digest(&mut fields)?,
        decision: one_of(&mut fields, "decision", &known)?,
        deterministic: fields.bool("deterministic")?,
        reason: fields.opt_text("reason")?,
        annotation: annotation(&mut fields)?,
    };
    check_reason(&record, &fields)?;
    fields.end()?;
    Ok(record)
}

fn name(fields: &mut Fields) -> Result<String, FieldError> {
    let name = fields.text("name")?;
    let fits = (1..=32).contains(&name.len())
        && name
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    if fits {
        Ok(name)
    } else {
        Err(FieldError::invalid(
            fields.path_of("name"),
            "must be 1 to 32 of a-z, 0-9 and -",
        ))
    }
}

fn digest(fields: &mut Fields) -> Result<String, FieldError> {
    let digest = fields.text("digest")?;
    if digest.strip_prefix("blake3:").is_some_and(is_lower_hex_64) {
        Ok(digest)
    } else {
        Err(FieldError::invalid(
            fields.path_of("digest"),
            "must be blake3: and 64 lowercase hexadecimal digits",
        ))
    }
}

/// A failure and a plugin that was never asked say why; a decision stands for itself.
fn check_reason(record: &PluginRecord, fields: &Fields) -> Result<(), FieldError> {
    let needed = matches!(record.decision, Decision::Error | Decision::Skipped);
    let given = record.reason.as_ref().is_some_and(|text| !text.is_empty());
    let path = || fields.path_of("reason");
    match (needed, given) {
        (true, false) => Err(FieldError::invalid(
            path(),
            "must say why, with the decisions error and skipped",
        )),
        (false, _) if record.reason.is_some() => Err(FieldError::invalid(
            path(),
            "stands only with the decisions error and skipped",
        )),
        _ => Ok(()),
    }
}

fn annotation(fields: &mut Fields) -> Result<Option<Json>, FieldError> {
    let path = fields.path_of("annotation");
    let value = match fields.opt_value("annotation")? {
        None => return Ok(None),
        Some(Json::Object(object)) => Json::Object(object),
        Some(other) => {
            return Err(FieldError::WrongType {
                path,
                expected: "an object",
                found: other.kind(),
            });
        }
    };
    if depth(&value) > MAX_ANNOTATION_DEPTH {
        let reason = format!("must not be nested deeper than {MAX_ANNOTATION_DEPTH} levels");
        return Err(FieldError::invalid(path, reason));
    }
    let value = sorted(value).map_err(|key| FieldError::invalid(&path, stands_twice(&key)))?;
    if strict_json::to_line(&value).len() > MAX_ANNOTATION {
        let reason = format!("must not be longer than {MAX_ANNOTATION} bytes");
        return Err(FieldError::invalid(path, reason));
    }
    Ok(Some(value))
}

fn stands_twice(key: &str) -> String {
    format!("has the key '{}' twice", shown(key))
}

/// Counts the levels of arrays and objects. The document's own limit bounds the recursion.
fn depth(value: &Json) -> usize {
    match value {
        Json::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Json::Object(object) => {
            1 + object
                .iter()
                .map(|(_, value)| depth(value))
                .max()
                .unwrap_or(0)
        }
        _ => 0,
    }
}

/// Sorts the keys at every depth, so that the signed bytes do not depend on the file's order.
fn sorted(value: Json) -> Result<Json, String> {
    Ok(match value {
        Json::Array(items) => Json::Array(items.into_iter().map(sorted).collect::<Result<_, _>>()?),
        Json::Object(object) => {
            let mut members = Vec::with_capacity(object.len());
            for (key, value) in object {
                members.push((key, sorted(value)?));
            }
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            Json::Object(Object::from_members(members)?)
        }
        other => other,
    })
}
