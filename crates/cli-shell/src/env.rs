//! The only place that reads environment variables.
//!
//! Everything below gets its values as arguments, and children get an explicit environment.

use std::ffi::OsString;

use thiserror::Error;

/// Why a variable cannot be used.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum EnvError {
    /// It is set, but not to UTF-8 text.
    #[error("environment variable `{name}` is not UTF-8 text")]
    NotText {
        /// The variable's name.
        name: String,
    },
    /// It is not set, or set to nothing, and it is needed.
    #[error("environment variable `{name}` is not set, or empty")]
    Missing {
        /// The variable's name.
        name: String,
    },
}

/// Returns a variable's text; unset and empty are both `None`.
///
/// # Errors
/// The value is not UTF-8.
pub fn var(name: &str) -> Result<Option<String>, EnvError> {
    match var_os(name) {
        None => Ok(None),
        Some(value) if value.is_empty() => Ok(None),
        Some(value) => value
            .into_string()
            .map(Some)
            .map_err(|_| EnvError::NotText {
                name: name.to_owned(),
            }),
    }
}

/// Returns a variable's text, which must be there.
///
/// # Errors
/// The variable is unset, empty or not UTF-8.
pub fn required(name: &str) -> Result<String, EnvError> {
    var(name)?.ok_or_else(|| EnvError::Missing {
        name: name.to_owned(),
    })
}

/// Returns a variable's bytes as they are, also when empty.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the environment"
)]
pub fn var_os(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Returns every variable, for children that inherit the whole environment because their user
/// asked for that.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the environment"
)]
pub fn all() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

/// Returns the named variables that are set, in the order asked for, for a child's environment.
#[must_use]
pub fn pick<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<(OsString, OsString)> {
    names
        .into_iter()
        .filter_map(|name| var_os(name).map(|value| (OsString::from(name), value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_variable_is_named() {
        assert_eq!(var("FORGE_SURELY_UNSET_1"), Ok(None));
        let error = required("FORGE_SURELY_UNSET_1").unwrap_err();
        assert_eq!(
            error.to_string(),
            "environment variable `FORGE_SURELY_UNSET_1` is not set, or empty"
        );
    }

    #[test]
    fn pick_keeps_order_and_skips_what_is_unset() {
        let picked = pick(["PATH", "FORGE_SURELY_UNSET_1"]);
        assert_eq!(picked.len(), 1);
        assert_eq!(picked[0].0, "PATH");
        assert_eq!(required("PATH").unwrap().as_str(), picked[0].1);
    }
}
