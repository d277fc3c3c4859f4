//! Errors as one sentence, with what caused them.

use std::error::Error;

/// Returns the error's words and those of each cause, joined by colons.
pub(crate) fn told(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text.push_str(": ");
        text.push_str(&next.to_string());
        cause = next.source();
    }
    text
}
