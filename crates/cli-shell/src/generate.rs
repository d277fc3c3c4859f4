//! Texts made from the definition of the arguments: completions, man page, reference.
//!
//! `--generate KIND` is hidden and must come first (after the names of subcommands, for a man
//! page of one of them). None of the texts depends on the terminal or the environment.

mod man;
mod markdown;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Command;
use clap_complete::Shell;

pub use markdown::markdown;

use crate::error::{CliError, ErrorKind};
use crate::{exit, run};

/// The kinds that `--generate` takes.
pub const KINDS: [&str; 5] = [
    "completion-bash",
    "completion-zsh",
    "completion-fish",
    "man",
    "markdown",
];

/// Answers `--generate KIND`, if that is what the arguments ask for.
pub fn maybe(command: &Command, args: &[OsString]) -> Option<ExitCode> {
    let (command, kind) = asked(command, args)?;
    Some(run(|| {
        let text = text(command, &kind)?;
        io::stdout()
            .lock()
            .write_all(&text)
            .map_err(CliError::output)?;
        Ok(exit::ok())
    }))
}

/// Returns the text of a kind.
///
/// # Errors
/// There is no such kind.
pub fn text(command: &Command, kind: &str) -> Result<Vec<u8>, CliError> {
    let mut command = command.clone();
    let name = command.get_name().to_owned();
    let mut text = Vec::new();
    let mut complete = |shell| clap_complete::generate(shell, &mut command, &name, &mut text);
    match kind {
        "completion-bash" => complete(Shell::Bash),
        "completion-zsh" => complete(Shell::Zsh),
        "completion-fish" => complete(Shell::Fish),
        "man" => {
            text =
                man::man(&command).map_err(|error| CliError::new(ErrorKind::Operation, error))?;
        }
        "markdown" => text = markdown(&command).into_bytes(),
        other => {
            return Err(CliError::usage(format!("cannot generate `{other}`"))
                .hint(format!("one of {}", KINDS.join(", "))));
        }
    }
    Ok(text)
}

/// Finds `[SUBCOMMAND…] --generate KIND` at the start of the arguments.
fn asked<'a>(mut command: &'a Command, args: &[OsString]) -> Option<(&'a Command, String)> {
    let mut args = args.iter().skip(1);
    loop {
        let arg = args.next()?.to_str()?;
        if let Some(kind) = arg.strip_prefix("--generate=") {
            return Some((command, kind.to_owned()));
        }
        if arg == "--generate" {
            let kind = args
                .next()
                .and_then(|kind| kind.to_str())
                .unwrap_or_default();
            return Some((command, kind.to_owned()));
        }
        command = command.find_subcommand(arg)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;

    fn command() -> Command {
        Command::new("tool")
            .about("Does things")
            .version("dev unknown")
            .arg(
                Arg::new("url")
                    .long("url")
                    .value_name("URL")
                    .env("TOOL_URL")
                    .default_value("http://127.0.0.1:1")
                    .help("Where it is"),
            )
            .arg(Arg::new("secret").long("secret").hide(true))
            .subcommand(
                Command::new("run").about("Runs it").arg(
                    Arg::new("file")
                        .value_name("FILE")
                        .required(true)
                        .help("What to run"),
                ),
            )
    }

    fn args(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn every_kind_gives_text() {
        for kind in KINDS {
            let text = text(&command(), kind).unwrap();
            let text = String::from_utf8(text).unwrap();
            assert!(text.contains("tool"), "{kind}: {text}");
        }
        assert_eq!(
            text(&command(), "html").unwrap_err().kind(),
            ErrorKind::Usage
        );
    }

    #[test]
    fn the_page_has_every_subcommand_with_its_options_and_names_no_other_page() {
        let nested = Command::new("deep").about("Goes down").arg(
            Arg::new("how-far")
                .long("how-far")
                .value_name("N")
                .help(".SH of it"),
        );
        let more = Command::new("more").about("Does more").subcommand(nested);
        let hidden = Command::new("unseen").about("Nobody's").hide(true);
        let global = Arg::new("loud").long("loud").global(true).help("Say more");
        let command = command().arg(global).subcommands([more, hidden]);
        let command = command.after_help("To copy:\n\n  a = [1, 2]");
        let page = String::from_utf8(text(&command, "man").unwrap()).unwrap();
        let at = |text: &str| {
            let found = page.find(text);
            assert!(found.is_some(), "{text} in\n{page}");
            found.unwrap_or_default()
        };
        let places = [
            ".TH tool 1 ",
            ".SH NAME\ntool \\- Does things\n",
            ".SH SYNOPSIS\n",
            ".SH OPTIONS\n",
            "Say more\n",
            ".SH \"TOOL RUN\"\nRuns it\n.SS SYNOPSIS\n\\fBtool run\\fR <\\fIFILE\\fR> \n.SS OPTIONS\n",
            "What to run\n",
            ".SH \"TOOL MORE\"\nDoes more\n.SS SYNOPSIS\n",
            ".SH \"TOOL MORE DEEP\"\nGoes down\n.SS SYNOPSIS\n\\fBtool more deep\\fR [\\fB\\-\\-how\\-far\\fR]",
            "\\&.SH of it\n",
            ".SH EXTRA\n.na\n.nh\nTo copy:\n",
            "  a = [1, 2]\n.ad\n.hy\n",
            ".SH VERSION\n",
        ]
        .map(at);
        assert!(places.is_sorted(), "{places:?}");
        for absent in ["(1)", "TOOL HELP", "UNSEEN", "Nobody", "\n.SH of"] {
            assert!(!page.contains(absent), "{absent} in\n{page}");
        }
        assert_eq!(page.matches("Say more").count(), 1);
        assert_eq!(page.matches(".ie ").count(), 1);
    }

    #[test]
    fn it_is_asked_for_first_or_after_a_subcommand() {
        let command = command();
        let (found, kind) = asked(&command, &args("tool --generate man")).unwrap();
        assert_eq!((found.get_name(), kind.as_str()), ("tool", "man"));
        let (found, kind) = asked(&command, &args("tool run --generate=man")).unwrap();
        assert_eq!((found.get_name(), kind.as_str()), ("run", "man"));
        assert!(asked(&command, &args("tool run x --generate man")).is_none());
        assert!(asked(&command, &args("tool -- --generate man")).is_none());
        let (_, kind) = asked(&command, &args("tool --generate")).unwrap();
        assert_eq!(kind, "");
    }

    #[test]
    fn the_reference_lists_everything_that_is_not_hidden() {
        let text = markdown(&command());
        assert_eq!(
            text,
            "## `tool`\n\n\
             Does things.\n\n\
             ```text\nUsage: tool [OPTIONS] [COMMAND]\n```\n\n\
             | option | meaning | default | variable |\n\
             |---|---|---|---|\n\
             | `--url <URL>` | Where it is | `http://127.0.0.1:1` | `TOOL_URL` |\n\
             | `-h`, `--help` | Print help | | |\n\
             | `-V`, `--version` | Print version | | |\n\n\
             | exit code | meaning |\n\
             |---|---|\n\
             | 0 | success, or the answer is yes |\n\
             | 1 | the work was done and the answer is no |\n\
             | 2 | usage, configuration or the operation failed |\n\n\
             ### `tool run`\n\n\
             Runs it.\n\n\
             ```text\nUsage: tool run <FILE>\n```\n\n\
             | option | meaning | default | variable |\n\
             |---|---|---|---|\n\
             | `<FILE>` | What to run | | |\n\
             | `-h`, `--help` | Print help | | |\n"
        );
    }
}
