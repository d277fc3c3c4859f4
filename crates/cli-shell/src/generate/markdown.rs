//! The reference of a program as Markdown, a section per subcommand.

use clap::{Arg, Command};

use crate::exit;

/// Renders the reference of a command and of its subcommands, hidden ones left out.
///
/// The text is the same on every machine. A command whose `after_help` names its own exit codes
/// keeps them; otherwise the shared table follows the top section.
#[must_use]
pub fn markdown(command: &Command) -> String {
    let mut command = command.clone().disable_help_subcommand(true);
    command.build();
    let mut text = String::new();
    section(&mut text, &command, command.get_name(), 2);
    text
}

fn section(text: &mut String, command: &Command, path: &str, level: usize) {
    let heading = "#".repeat(level.min(6));
    push(text, format_args!("{heading} `{path}`\n\n"));
    let about = command.get_long_about().or_else(|| command.get_about());
    if let Some(about) = about {
        push(text, format_args!("{}\n\n", sentence(&about.to_string())));
    }
    let usage = command.clone().render_usage().to_string();
    push(text, format_args!("```text\n{}\n```\n\n", usage.trim_end()));
    // Global options are described once, at the top.
    let top = level == 2;
    let rows: Vec<String> = command
        .get_positionals()
        .chain(command.get_arguments().filter(|arg| !arg.is_positional()))
        .filter(|arg| !arg.is_hide_set() && (top || !arg.is_global_set()))
        .map(row)
        .collect();
    if !rows.is_empty() {
        text.push_str("| option | meaning | default | variable |\n|---|---|---|---|\n");
        text.push_str(&rows.concat());
    }
    let after = command
        .get_after_long_help()
        .or_else(|| command.get_after_help());
    let after = after.map(ToString::to_string).unwrap_or_default();
    if !after.is_empty() {
        push(text, format_args!("\n```text\n{}\n```\n", after.trim_end()));
    }
    if top && !after.to_lowercase().contains("exit code") {
        text.push_str("\n| exit code | meaning |\n|---|---|\n");
        for (code, meaning) in exit::TABLE {
            push(text, format_args!("| {code} | {meaning} |\n"));
        }
    }
    for subcommand in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        text.push('\n');
        let path = format!("{path} {}", subcommand.get_name());
        section(text, subcommand, &path, level + 1);
    }
}

fn row(arg: &Arg) -> String {
    let help = arg.get_long_help().or_else(|| arg.get_help());
    let mut meaning = help.map(ToString::to_string).unwrap_or_default();
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set() && arg.get_action().takes_values())
        .filter(|_| !arg.is_hide_possible_values_set())
        .map(|value| match value.get_help() {
            Some(help) => format!("`{}` ({help})", value.get_name()),
            None => format!("`{}`", value.get_name()),
        })
        .collect();
    if !values.is_empty() {
        meaning.push_str(&format!(": {}", values.join(", ")));
    }
    let defaults: Vec<_> = arg
        .get_default_values()
        .iter()
        .filter(|_| arg.get_action().takes_values())
        .map(|value| format!("`{}`", value.to_string_lossy()))
        .collect();
    let variable = arg
        .get_env()
        .map(|name| format!("`{}`", name.to_string_lossy()))
        .unwrap_or_default();
    let cells = [names(arg), meaning, defaults.join(", "), variable];
    let mut row = String::from("|");
    for cell in cells {
        let cell = cell
            .replace('|', "\\|")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        if cell.is_empty() {
            row.push_str(" |");
        } else {
            row.push_str(&format!(" {cell} |"));
        }
    }
    row.push('\n');
    row
}

fn names(arg: &Arg) -> String {
    let value = if arg.get_action().takes_values() {
        let names = arg.get_value_names().unwrap_or_default();
        let many = arg
            .get_num_args()
            .is_some_and(|range| range.max_values() > 1);
        let dots = if many { "..." } else { "" };
        let names: Vec<String> = names.iter().map(|name| format!("<{name}>{dots}")).collect();
        names.join(" ")
    } else {
        String::new()
    };
    if arg.is_positional() {
        return format!("`{value}`");
    }
    let short = arg.get_short().map(|letter| format!("-{letter}"));
    let long = arg.get_long().map(|name| format!("--{name}"));
    let mut names: Vec<String> = short.into_iter().chain(long).collect();
    if let (Some(last), false) = (names.last_mut(), value.is_empty()) {
        last.push(' ');
        last.push_str(&value);
    }
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// Gives one-line descriptions their full stop, which help texts do not have.
fn sentence(text: &str) -> String {
    let text = text.trim();
    match text.chars().last() {
        Some(last) if last.is_alphanumeric() || last == ')' || last == '`' => format!("{text}."),
        _ => text.to_owned(),
    }
}

/// Appends; writing to a string cannot fail.
fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.push_str(&arguments.to_string());
}
