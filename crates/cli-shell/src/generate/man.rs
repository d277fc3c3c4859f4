//! The man page of a program, a section per subcommand.
//!
//! There is one page for each program, so it has everything and refers to no other page.

use std::io;

use clap::{Arg, Command};
use clap_mangen::Man;

/// Renders the page of a command and of its subcommands, hidden ones left out.
///
/// # Errors
/// None that writing into memory has.
pub(super) fn man(command: &Command) -> io::Result<Vec<u8>> {
    let mut command = command.clone().disable_help_subcommand(true);
    command.build();
    let page = Man::new(command.clone());
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    text.extend(part(|out| page.render_name_section(out))?);
    text.extend(part(|out| page.render_synopsis_section(out))?);
    text.extend(part(|out| page.render_description_section(out))?);
    if has_arguments(&command) {
        text.extend(part(|out| page.render_options_section(out))?);
    }
    subcommands(&mut text, &command)?;
    if has_more(&command) {
        text.extend(ragged(&part(|out| page.render_extra_section(out))?));
    }
    if command.get_version().is_some() {
        text.extend(part(|out| page.render_version_section(out))?);
    }
    Ok(text)
}

fn subcommands(text: &mut Vec<u8>, command: &Command) -> io::Result<()> {
    for subcommand in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        section(text, subcommand)?;
        subcommands(text, subcommand)?;
    }
    Ok(())
}

/// One subcommand: a section of its full name, with what the page has at the top as subsections.
fn section(text: &mut Vec<u8>, command: &Command) -> io::Result<()> {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    // Global options are described once, at the top.
    let own = command.clone().mut_args(hide_global);
    let page = Man::new(own.clone());
    let heading = format!(".SH \"{}\"\n", name.to_uppercase().replace('-', "\\-"));
    text.extend_from_slice(heading.as_bytes());
    text.extend_from_slice(untitled(&part(|out| page.render_description_section(out))?));
    text.extend(lower(&part(|out| page.render_synopsis_section(out))?));
    if has_arguments(&own) {
        text.extend(lower(&part(|out| page.render_options_section(out))?));
    }
    if has_more(&own) {
        let extra = part(|out| page.render_extra_section(out))?;
        text.extend(ragged(&lower(&extra)));
    }
    Ok(())
}

fn hide_global(arg: Arg) -> Arg {
    let hide = arg.is_hide_set() || arg.is_global_set() || arg.get_id() == "help";
    arg.hide(hide)
}

fn has_arguments(command: &Command) -> bool {
    command.get_arguments().any(|arg| !arg.is_hide_set())
}

fn has_more(command: &Command) -> bool {
    command.get_after_help().is_some() || command.get_after_long_help().is_some()
}

/// A section without what every text of roff is given at its start.
fn part(render: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    render(&mut text)?;
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    Ok(lines
        .skip_while(|line| !line.starts_with(b".SH"))
        .collect::<Vec<_>>()
        .concat())
}

/// A section whose lines are neither stretched nor hyphenated: it has tables and lines to copy.
fn ragged(section: &[u8]) -> Vec<u8> {
    let heading = section.split_inclusive(|byte| *byte == b'\n').next();
    let (heading, rest) = section.split_at(heading.map_or(0, <[u8]>::len));
    [heading, b".na\n.nh\n", rest, b".ad\n.hy\n"].concat()
}

/// A section without its heading.
fn untitled(text: &[u8]) -> &[u8] {
    let heading = text.split_inclusive(|byte| *byte == b'\n').next();
    text.get(heading.map_or(0, <[u8]>::len)..)
        .unwrap_or_default()
}

/// Makes sections subsections. A line of text never starts with a dot: those are escaped.
fn lower(text: &[u8]) -> Vec<u8> {
    let mut lowered = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        match line.strip_prefix(b".SH ") {
            Some(heading) => {
                lowered.extend_from_slice(b".SS ");
                lowered.extend_from_slice(heading);
            }
            None => lowered.extend_from_slice(line),
        }
    }
    lowered
}
