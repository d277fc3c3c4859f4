//! What a plain scalar is where a document is typed.

use strict_json::{Json, Object};

use super::{Node, Value, YamlError};

/// Makes the strict tree of a node. The recursion is as deep as the reader allowed.
pub(super) fn node(node: Node) -> Result<Json, YamlError> {
    let Node { value, line } = node;
    match value {
        Value::Scalar { text, plain: false } => Ok(Json::Text(text)),
        Value::Scalar { text, plain: true } => plain(text, line),
        Value::Sequence(items) => items
            .into_iter()
            .map(self::node)
            .collect::<Result<_, _>>()
            .map(Json::Array),
        Value::Mapping(members) => {
            let members = members
                .into_iter()
                .map(|(key, value)| Ok((key, self::node(value)?)))
                .collect::<Result<Vec<_>, _>>()?;
            Object::from_members(members)
                .map(Json::Object)
                .map_err(|key| YamlError::refused(line, strict_yaml::duplicate(&key)))
        }
    }
}

fn plain(text: String, line: usize) -> Result<Json, YamlError> {
    match text.as_str() {
        "null" => return Ok(Json::Null),
        "true" => return Ok(Json::Bool(true)),
        "false" => return Ok(Json::Bool(false)),
        "" => return Err(YamlError::refused(line, "a value is missing; write `null`")),
        _ => {}
    }
    if let Some(number) = number(&text) {
        return Ok(number);
    }
    if is_resolved_elsewhere(&text) {
        let reason = format!(
            "`{}` is no plain value; write a JSON literal or quote the text",
            strict_yaml::shown(&text)
        );
        return Err(YamlError::refused(line, reason));
    }
    Ok(Json::Text(text))
}

/// Reads a number of JSON's grammar; one beyond the range of a double is none, as the writers of
/// receipts leave a hash like `1e99…` unquoted.
fn number(text: &str) -> Option<Json> {
    if !is_json_number(text) {
        return None;
    }
    // `-0` is no plain integer: as one it would lose its sign.
    if text != "-0" {
        if let Ok(value) = text.parse() {
            return Some(Json::Integer(value));
        }
        if let Ok(value) = text.parse() {
            return Some(Json::Unsigned(value));
        }
    }
    let value = text.parse::<f64>().ok()?;
    value.is_finite().then_some(Json::Number(value))
}

fn is_json_number(text: &str) -> bool {
    let rest = text.strip_prefix('-').unwrap_or(text);
    let Some((whole, rest)) = digits(rest) else {
        return false;
    };
    if whole.len() > 1 && whole.starts_with('0') {
        return false;
    }
    let rest = match rest.strip_prefix('.') {
        None => rest,
        Some(fraction) => match digits(fraction) {
            None => return false,
            Some((_, rest)) => rest,
        },
    };
    match rest.strip_prefix(['e', 'E']) {
        None => rest.is_empty(),
        Some(exponent) => {
            let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            matches!(digits(exponent), Some((_, "")))
        }
    }
}

/// Splits the digits, one at least, off the front.
fn digits(text: &str) -> Option<(&str, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at_checked(end)
        .filter(|(digits, _)| !digits.is_empty())
}

/// Tells whether the original's reader takes a text, which is neither a JSON literal nor a JSON
/// number, for something other than text.
fn is_resolved_elsewhere(text: &str) -> bool {
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    match unsigned {
        "~" | "Null" | "NULL" | "True" | "TRUE" | "False" | "FALSE" => return unsigned == text,
        ".inf" | ".Inf" | ".INF" => return true,
        "-.inf" | "-.Inf" | "-.INF" | ".nan" | ".NaN" | ".NAN" => return unsigned == text,
        _ => {}
    }
    if unsigned != text && unsigned.starts_with(['+', '-']) {
        return false;
    }
    is_radix_number(unsigned) || (!has_idle_zeros(unsigned) && is_finite(unsigned))
}

fn is_finite(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// `007` and `-01` are text to every writer and reader of receipts.
fn has_idle_zeros(text: &str) -> bool {
    let rest = text.strip_prefix('-').unwrap_or(text);
    rest.len() > 1 && rest.starts_with('0') && rest.bytes().all(|byte| byte.is_ascii_digit())
}

/// Tells whether a text is a number in base 16, 8 or 2 of at most 128 bits.
fn is_radix_number(text: &str) -> bool {
    let (negative, magnitude) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    [("0x", 16), ("0o", 8), ("0b", 2)]
        .iter()
        .filter_map(|(prefix, radix)| Some((magnitude.strip_prefix(prefix)?, *radix)))
        .any(|(digits, radix)| {
            !digits.starts_with(['+', '-'])
                && if negative {
                    i128::from_str_radix(&format!("-{digits}"), radix).is_ok()
                } else {
                    u128::from_str_radix(digits, radix).is_ok()
                }
        })
}
