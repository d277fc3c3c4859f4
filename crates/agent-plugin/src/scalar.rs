//! What a plain scalar of a frontmatter is, by the core schema of YAML 1.2.

use strict_json::{Json, Object};
use strict_yaml::{Node, Value, YamlError};

/// Makes the tree of a document. The recursion is as deep as the reader allowed.
pub(crate) fn json(node: Node) -> Result<Json, YamlError> {
    let Node { value, line } = node;
    match value {
        Value::Scalar { text, plain: false } => Ok(Json::Text(text)),
        Value::Scalar { text, plain: true } => plain(text, line),
        Value::Sequence(items) => items
            .into_iter()
            .map(json)
            .collect::<Result<_, _>>()
            .map(Json::Array),
        Value::Mapping(members) => {
            let members = members
                .into_iter()
                .map(|(key, value)| Ok((key, json(value)?)))
                .collect::<Result<Vec<_>, _>>()?;
            Object::from_members(members)
                .map(Json::Object)
                .map_err(|key| YamlError::refused(line, strict_yaml::duplicate(&key)))
        }
    }
}

fn plain(text: String, line: usize) -> Result<Json, YamlError> {
    match text.as_str() {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Json::Null),
        "true" | "True" | "TRUE" => return Ok(Json::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Json::Bool(false)),
        _ => {}
    }
    if is_no_finite_number(&text) {
        let reason = "a number that is not finite has no form here; quote the text";
        return Err(YamlError::refused(line, reason));
    }
    Ok(number(&text).unwrap_or(Json::Text(text)))
}

fn is_no_finite_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN")
}

fn number(text: &str) -> Option<Json> {
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text
            .strip_prefix(prefix)
            .filter(|d| !d.starts_with(['+', '-']))
        {
            return u64::from_str_radix(digits, radix).ok().map(whole);
        }
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let has_digit_first = unsigned
        .trim_start_matches('.')
        .starts_with(|c: char| c.is_ascii_digit());
    if !has_digit_first {
        return None;
    }
    if let Ok(value) = text.parse::<u64>() {
        return Some(whole(value));
    }
    if let Ok(value) = text.parse::<i64>() {
        return Some(Json::Integer(value));
    }
    // A hash like `1e9999` stays a text.
    let value = text.parse::<f64>().ok()?;
    value.is_finite().then_some(Json::Number(value))
}

fn whole(value: u64) -> Json {
    i64::try_from(value).map_or(Json::Unsigned(value), Json::Integer)
}
