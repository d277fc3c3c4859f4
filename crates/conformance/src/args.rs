//! The command line. Options end at PLUGIN; what follows is the plugin's own.

use std::ffi::OsString;
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use bounded::GoDuration;
use clap::Parser;

use crate::{Operation, ReportFormat};

const AFTER_HELP: &str = "\
Each scenario runs in a fresh process with this program's environment, several at \
a time. A rejection passes if the plugin exits non-zero in time and its standard output is \
exactly what the protocol allows; whatever it started and left behind is killed. \
A scenario of --strict is skipped if it is about something that the plugin does \
not select or perform; a skipped scenario does not fail.

Exit codes:
  0  no scenario failed
  1  a scenario failed; a plugin that cannot be started fails every one
  2  the arguments are wrong, or the tool itself could not work

Examples:
  forge-plugin-conformance ./forge-plugin-v1.py
  forge-plugin-conformance --strict ./forge-plugin-v1.py
  forge-plugin-conformance --operation workspace_edit forge-exec-plugin -- ./agent.sh";

/// Tests a forge plugin executable against the plugin protocol v1
#[derive(Clone, Debug, Parser)]
#[command(
    name = "forge-plugin-conformance",
    version = cli_shell::version(),
    override_usage = "forge-plugin-conformance [OPTIONS] PLUGIN [ARG]...",
    after_help = AFTER_HELP
)]
pub struct Args {
    /// The operation that the plugin performs
    #[arg(long, value_enum, default_value_t, value_name = "OPERATION")]
    pub operation: Operation,
    /// Also run the scenarios beyond the usual 26: every form that lenient readers accept, and how
    /// the plugin behaves over whole sessions that offer it all six capabilities
    #[arg(long)]
    pub strict: bool,
    /// Print the names of the scenarios and exit
    #[arg(long)]
    pub list: bool,
    /// Run this scenario only (may be given more than once)
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// Run each scenario this many times; one failure fails it
    #[arg(long, value_name = "N", default_value = "1", value_parser = repetitions)]
    pub repeat: NonZeroU32,
    /// Run this many scenarios at once; one per processor, but at most 4, without this option
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<NonZeroUsize>,
    /// How the report is written to standard output
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: ReportFormat,
    /// How long the valid session may take, such as `12s`
    #[arg(long, value_name = "DURATION", default_value = "12s", value_parser = duration)]
    pub timeout: Duration,
    /// How long a refusal may take, from the start of the process to its exit
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    pub reject_timeout: Duration,
    /// Print no summary on standard error
    #[arg(short, long)]
    pub quiet: bool,
    /// The plugin's executable and its arguments
    #[arg(
        value_name = "PLUGIN",
        required_unless_present = "list",
        num_args = 1..,
        trailing_var_arg = true
    )]
    pub plugin: Vec<OsString>,
}

const REPETITIONS: u32 = 10_000;
const JOBS: usize = 64;
const LONGEST: Duration = Duration::from_secs(3_600);

fn repetitions(text: &str) -> Result<NonZeroU32, String> {
    text.parse()
        .ok()
        .filter(|count: &NonZeroU32| count.get() <= REPETITIONS)
        .ok_or_else(|| format!("expected a number from 1 to {REPETITIONS}"))
}

fn jobs(text: &str) -> Result<NonZeroUsize, String> {
    text.parse()
        .ok()
        .filter(|count: &NonZeroUsize| count.get() <= JOBS)
        .ok_or_else(|| format!("expected a number from 1 to {JOBS}"))
}

fn duration(text: &str) -> Result<Duration, String> {
    let duration: GoDuration = text.parse().map_err(|error| format!("{error}"))?;
    let duration = Duration::from(duration);
    if duration.is_zero() || duration > LONGEST {
        return Err("expected a duration above 0 and up to 1h".to_owned());
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> Result<Args, clap::Error> {
        let command = Args::command();
        let args = line.split(' ').map(OsString::from);
        Args::try_parse_from(cli_shell::normalize_args(&command, args))
    }

    #[test]
    fn verify_cli() {
        Args::command().debug_assert();
    }

    #[test]
    fn options_end_at_the_plugin() {
        for line in [
            "tool -operation workspace_edit p -operation x",
            "tool --operation=workspace_edit p -operation x",
        ] {
            let args = parse(line).unwrap();
            assert_eq!(args.operation, Operation::WorkspaceEdit);
            assert_eq!(args.plugin, ["p", "-operation", "x"]);
        }
        assert_eq!(
            parse("tool p --list --format json").unwrap().plugin,
            ["p", "--list", "--format", "json"]
        );
        assert_eq!(parse("tool p -- x").unwrap().plugin, ["p", "--", "x"]);
        assert_eq!(
            parse("tool -operation=text -- -odd").unwrap().plugin,
            ["-odd"]
        );
    }

    #[test]
    fn a_plugin_is_needed_unless_the_names_are_asked_for() {
        assert!(parse("tool").is_err());
        assert!(parse("tool --list").is_ok());
        assert!(parse("tool --bogus p").is_err());
        assert!(parse("tool --operation other p").is_err());
    }

    #[test]
    fn c12_limits_have_limits() {
        assert_eq!(parse("tool --repeat 10000 p").unwrap().repeat.get(), 10_000);
        assert!(parse("tool --repeat 10001 p").is_err());
        assert!(parse("tool --repeat 0 p").is_err());
        assert_eq!(
            parse("tool --jobs 64 p")
                .unwrap()
                .jobs
                .map(NonZeroUsize::get),
            Some(64)
        );
        assert!(parse("tool --jobs 65 p").is_err());
        assert!(parse("tool --jobs 0 p").is_err());
        assert_eq!(parse("tool --timeout 1h p").unwrap().timeout, LONGEST);
        assert!(parse("tool --timeout 1h1ms p").is_err());
        assert!(parse("tool --reject-timeout 0s p").is_err());
        assert_eq!(
            parse("tool p").unwrap().reject_timeout,
            Duration::from_secs(2)
        );
        assert_eq!(parse("tool p").unwrap().timeout, Duration::from_secs(12));
    }
}
