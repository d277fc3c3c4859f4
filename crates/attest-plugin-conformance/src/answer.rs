//! The two answers of a plugin, judged by their form and by their limits.

use strict_json::{Fields, Json};

use crate::limits::{
    ANNOTATION_BYTES, ANNOTATION_DEPTH, FINDING_MESSAGE_BYTES, FINDINGS, MESSAGE_BYTES, NAME_BYTES,
    VERSION_BYTES,
};
use crate::message::Message;
use crate::shown;
use crate::stage::{Finding, Judged};

const SEVERITIES: [&str; 5] = ["info", "low", "medium", "high", "critical"];

/// Says what is wrong with a `hello_ok`, its id apart; `name` is the declared one if one is known.
pub(crate) fn hello_ok(message: &Message, name: Option<&str>) -> Judged {
    let mut fields = head(message, "hello_ok")?;
    let told = fields
        .text("name")
        .map_err(|error| shown::explain(&error))?;
    if !is_name(&told) {
        return Err(format!(
            "expected a `name` of 1 to 32 characters a-z, 0-9 and `-`, got `{}`",
            shown::text(&told)
        ));
    }
    if let Some(name) = name.filter(|name| *name != told) {
        return Err(format!("expected the declared name `{name}`, got `{told}`"));
    }
    let version = fields
        .text("version")
        .map_err(|error| shown::explain(&error))?;
    at_most("bytes of `version`", version.len(), VERSION_BYTES)?;
    let protocol = fields
        .u64("protocol")
        .map_err(|error| shown::explain(&error))?;
    if protocol != 1 {
        return Err(format!(
            "expected `protocol` 1, which was offered, got {protocol}"
        ));
    }
    for hook in fields
        .array("hooks")
        .map_err(|error| shown::explain(&error))?
    {
        hook.text().map_err(|error| shown::explain(&error))?;
    }
    fields
        .bool("deterministic")
        .map_err(|error| shown::explain(&error))?;
    if version.is_empty() {
        return Ok(Finding::Advice(
            "an empty `version` reads in a receipt as if it had never begun".to_owned(),
        ));
    }
    Ok(Finding::Kept)
}

/// Says what is wrong with the form of a verdict, its id and its limits apart.
pub(crate) fn verdict(message: &Message) -> Result<(), String> {
    let mut fields = head(message, "verdict")?;
    let decision = fields
        .text("decision")
        .map_err(|error| shown::explain(&error))?;
    if !matches!(decision.as_str(), "allow" | "warn" | "deny") {
        return Err(format!(
            "expected `allow`, `warn` or `deny`, got the decision `{}`",
            shown::text(&decision)
        ));
    }
    for finding in fields
        .opt_array("findings")
        .map_err(|error| shown::explain(&error))?
        .unwrap_or_default()
    {
        let mut finding = finding.object().map_err(|error| shown::explain(&error))?;
        finding
            .text("rule")
            .map_err(|error| shown::explain(&error))?;
        finding
            .text("message")
            .map_err(|error| shown::explain(&error))?;
        finding
            .opt_text("resource")
            .map_err(|error| shown::explain(&error))?;
        let severity = finding
            .text("severity")
            .map_err(|error| shown::explain(&error))?;
        if !SEVERITIES.contains(&severity.as_str()) {
            return Err(format!(
                "expected one of the five severities, got `{}`",
                shown::text(&severity)
            ));
        }
    }
    fields
        .opt_object("annotation")
        .map_err(|error| shown::explain(&error))?;
    Ok(())
}

/// Says which limit a verdict passes, whatever else may be wrong with it.
pub(crate) fn limits(message: &Message) -> Result<(), String> {
    at_most("bytes of a message", message.raw.len(), MESSAGE_BYTES)?;
    let Ok(object) = &message.strict else {
        return Ok(());
    };
    if let Some(Json::Array(findings)) = object.get("findings") {
        at_most("findings", findings.len(), FINDINGS)?;
        for (at, finding) in findings.iter().enumerate() {
            let Json::Object(finding) = finding else {
                continue;
            };
            for (name, limit) in [
                ("rule", NAME_BYTES),
                ("resource", NAME_BYTES),
                ("message", FINDING_MESSAGE_BYTES),
            ] {
                if let Some(Json::Text(text)) = finding.get(name) {
                    let what = format!("bytes of `findings[{at}].{name}`");
                    at_most(&what, text.len(), limit)?;
                }
            }
        }
    }
    if let Some(annotation @ Json::Object(_)) = object.get("annotation") {
        at_most(
            "levels of an annotation",
            depth(annotation),
            ANNOTATION_DEPTH,
        )?;
        let written = strict_json::to_line(annotation).len();
        at_most("bytes of an annotation", written, ANNOTATION_BYTES)?;
    }
    Ok(())
}

/// Whether a text is a name that a plugin can be declared under.
pub(crate) fn is_name(text: &str) -> bool {
    (1..=32).contains(&text.len())
        && text
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

/// Opens a message of this kind.
fn head(message: &Message, kind: &str) -> Result<Fields, String> {
    let object = message
        .strict
        .clone()
        .map_err(|reason| format!("{reason} in {}", message.quoted()))?;
    let mut fields = object.fields("");
    let version = fields.u64("v").map_err(|error| shown::explain(&error))?;
    if version != 1 {
        return Err(format!("expected `v` 1, got {version}"));
    }
    let told = fields
        .text("kind")
        .map_err(|error| shown::explain(&error))?;
    if told != kind {
        return Err(format!(
            "expected the kind `{kind}`, got `{}`",
            shown::text(&told)
        ));
    }
    Ok(fields)
}

fn at_most(what: &str, count: usize, limit: usize) -> Result<(), String> {
    if count <= limit {
        return Ok(());
    }
    Err(format!("expected at most {limit} {what}, got {count}"))
}

/// Counts levels, the outermost included.
fn depth(value: &Json) -> usize {
    match value {
        Json::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Json::Object(object) => {
            1 + object
                .iter()
                .map(|(_, value)| depth(value))
                .max()
                .unwrap_or_default()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
