//! Logs on standard error: JSON lines under a service manager, plain lines in a terminal.
//!
//! A JSON line is `{"time","level","msg",...}` with the event's fields after it in the order in
//! which they were given, then those of the spans around it, innermost first. Field names may be
//! dotted. Where the journal of systemd reads, each line has its level in front, as `<4>`, which
//! the journal takes off. Nothing here knows of secrets: types that hold one cannot print.

mod journal;
mod json;

use std::io::{self, IsTerminal};

use clap::ValueEnum;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::{SubscriberBuilder, format as lines};

use crate::env;

/// The variable that overrides what is logged, in the syntax of `tracing`'s filters.
pub const FILTER_VARIABLE: &str = "FORGE_LOG";

/// The form of the log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum LogFormat {
    /// `human` on a terminal, `json` elsewhere
    #[default]
    Auto,
    /// Lines for people
    #[value(alias = "text")]
    Human,
    /// One JSON object per line
    Json,
}

/// How much is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Verbosity {
    /// Warnings and errors.
    Quiet,
    /// What a user wants to know.
    #[default]
    Normal,
    /// Details.
    Verbose,
    /// Everything.
    Everything,
}

impl Verbosity {
    /// Returns the most detailed level that is logged.
    #[must_use]
    pub fn level(self) -> LevelFilter {
        match self {
            Self::Quiet => LevelFilter::WARN,
            Self::Normal => LevelFilter::INFO,
            Self::Verbose => LevelFilter::DEBUG,
            Self::Everything => LevelFilter::TRACE,
        }
    }
}

/// Sends the process's log lines to standard error; a second call changes nothing.
pub fn init(format: LogFormat, verbosity: Verbosity) {
    let json = match format {
        LogFormat::Json => true,
        LogFormat::Human => false,
        LogFormat::Auto => !io::stderr().is_terminal(),
    };
    let journal = journal::receives_stderr();
    let builder = builder(verbosity).with_writer(io::stderr);
    // Only a second initialisation fails, and the first one is then in force.
    drop(match (json, journal) {
        (true, true) => builder
            .fmt_fields(json::FieldsOnly)
            .event_format(journal::Leveled(json::JsonLine))
            .try_init(),
        (true, false) => builder
            .fmt_fields(json::FieldsOnly)
            .event_format(json::JsonLine)
            .try_init(),
        // The journal has the time of its own.
        (false, true) => builder
            .event_format(journal::Leveled(
                lines()
                    .compact()
                    .with_target(false)
                    .without_time()
                    .with_ansi(false),
            ))
            .try_init(),
        (false, false) => builder
            .compact()
            .with_target(false)
            .with_ansi(io::stderr().is_terminal())
            .try_init(),
    });
}

fn builder(
    verbosity: Verbosity,
) -> SubscriberBuilder<
    tracing_subscriber::fmt::format::DefaultFields,
    tracing_subscriber::fmt::format::Format,
    EnvFilter,
> {
    let filter = EnvFilter::builder().with_default_directive(verbosity.level().into());
    let wish = env::var(FILTER_VARIABLE).ok().flatten().unwrap_or_default();
    tracing_subscriber::fmt()
        .with_env_filter(filter.parse_lossy(wish))
        // It would say so with `eprintln!`, which panics: a full disk or a reader that went away
        // costs the lines, never the program.
        .log_internal_errors(false)
}
