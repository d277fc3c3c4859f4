//! How numbers and findings are said to people.

use agent_plugin::{Diagnostic, Severity};
use cli_shell::{CliError, Ui, layout, visible};

/// More findings than this are not listed beside other work; `inspect` lists them all.
const LISTED: usize = 20;

/// `1 file`, `3 files`.
pub(crate) fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

/// `1 byte`, `3 bytes`.
pub(crate) fn bytes(number: u64) -> String {
    match number {
        1 => "1 byte".to_owned(),
        _ => format!("{number} bytes"),
    }
}

pub(crate) fn severity(found: &Diagnostic) -> &'static str {
    match found.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

/// Where it was found; the package as a whole has no path.
pub(crate) fn place(found: &Diagnostic) -> String {
    match found.path.as_str() {
        "" => "(package)".to_owned(),
        path => visible(path),
    }
}

/// A finding on lines of its own for standard output.
pub(crate) fn finding(found: &Diagnostic) -> String {
    let head = format!("{}  {}", found.code.as_str(), place(found));
    let mut text = layout::wrap_words(&head, &format!("  {:<9}", severity(found)), "    ");
    text.push_str(&layout::wrap(&visible(&found.message), "    ", "    "));
    text
}

/// Says what was found beside other work.
pub(crate) fn say(found: &[Diagnostic], ui: &Ui) {
    for one in found.iter().take(LISTED) {
        let line = format!(
            "{}: {} ({})",
            place(one),
            visible(&one.message),
            one.code.as_str()
        );
        match one.severity {
            Severity::Error => ui.error(&CliError::no(line)),
            Severity::Warning => ui.warn(line),
        }
    }
    if let Some(more) = found.len().checked_sub(LISTED).filter(|more| *more > 0) {
        ui.warn(format!("and {more} more, which `backplane inspect` lists"));
    }
}

/// The same error where 1 would be another answer: that two packages differ.
pub(crate) fn as_failure(error: &CliError) -> CliError {
    let messages = error.messages();
    let mut messages = messages.into_iter().rev();
    let first = CliError::operation(messages.next().unwrap_or_default());
    let whole = messages.fold(first, CliError::because);
    error
        .hints()
        .iter()
        .fold(whole, |whole, hint| whole.hint(hint))
}
