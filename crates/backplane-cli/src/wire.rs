//! What commands read of a registry's objects. The objects themselves are handed on as they came.

use backplane_client::{Json, Object};
use cli_shell::{CliError, visible};

/// Returns a text that must be there.
pub(crate) fn text<'a>(object: &'a Object, key: &str) -> Result<&'a str, CliError> {
    match object.get(key) {
        Some(Json::Text(text)) => Ok(text),
        _ => Err(unusable(key, "a text")),
    }
}

/// Returns a text as it may be shown, or nothing where there is none.
pub(crate) fn shown(object: &Object, key: &str) -> Option<String> {
    match object.get(key) {
        Some(Json::Text(text)) => Some(visible(text)),
        Some(Json::Integer(number)) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns the objects of a list.
pub(crate) fn objects<'a>(object: &'a Object, key: &str) -> Result<Vec<&'a Object>, CliError> {
    let Some(Json::Array(items)) = object.get(key) else {
        return Err(unusable(key, "a list"));
    };
    let one = |item: &'a Json| match item {
        Json::Object(object) => Ok(object),
        _ => Err(unusable(key, "a list of objects")),
    };
    items.iter().map(one).collect()
}

/// Returns the texts of a list as they may be shown.
pub(crate) fn texts(object: &Object, key: &str) -> Vec<String> {
    let Some(Json::Array(items)) = object.get(key) else {
        return Vec::new();
    };
    let texts = items.iter().filter_map(|item| match item {
        Json::Text(text) => Some(visible(text)),
        _ => None,
    });
    texts.collect()
}

/// Returns an object below another one.
pub(crate) fn below<'a>(object: &'a Object, key: &str) -> Option<&'a Object> {
    match object.get(key) {
        Some(Json::Object(object)) => Some(object),
        _ => None,
    }
}

fn unusable(key: &str, expected: &str) -> CliError {
    CliError::operation(format!(
        "the registry's answer has no `{key}` that is {expected}"
    ))
    .hint("is it a registry of plugins, and not older or newer than this program?")
}
