//! The options that every program takes, to be flattened into its own.

use clap::{ArgAction, Args, ValueEnum};

use crate::logging::{LogFormat, Verbosity};

/// How results are written to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// For people; may change between versions
    #[default]
    #[value(alias = "text")]
    Human,
    /// One JSON record per line, for programs
    Json,
}

/// Whether colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Options shared by all programs.
#[derive(Debug, Clone, Default, Args)]
pub struct GlobalOpts {
    /// How results are written: `human`, or `json` with one record per line
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        hide_possible_values = true,
        value_name = "FORMAT",
        help_heading = "Output"
    )]
    pub format: Format,
    /// When to use colours: `auto`, `always` or `never`
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        hide_possible_values = true,
        value_name = "WHEN",
        help_heading = "Output"
    )]
    pub color: Color,
    /// Say more on standard error (twice: everything)
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = "Output")]
    pub verbose: u8,
    /// Say less on standard error: warnings and errors only
    #[arg(
        short,
        long,
        global = true,
        conflicts_with = "verbose",
        help_heading = "Output"
    )]
    pub quiet: bool,
    /// Show no progress bars
    #[arg(long, global = true, help_heading = "Output")]
    pub no_progress: bool,
}

impl GlobalOpts {
    /// Returns how much is said, for the logs.
    #[must_use]
    pub fn verbosity(&self) -> Verbosity {
        verbosity(self.quiet, self.verbose)
    }
}

/// Options of the programs that serve: they print no results, they log.
#[derive(Debug, Clone, Default, Args)]
pub struct ServerOpts {
    /// The form of the log on standard error
    #[arg(long, value_enum, value_name = "FORM", help_heading = "Log")]
    pub log_format: Option<LogFormat>,
    /// Say more in the log (twice: everything)
    #[arg(short, long, action = ArgAction::Count, help_heading = "Log")]
    pub verbose: u8,
    /// Say less in the log: warnings and errors only
    #[arg(short, long, conflicts_with = "verbose", help_heading = "Log")]
    pub quiet: bool,
}

impl ServerOpts {
    /// Returns how much is said.
    #[must_use]
    pub fn verbosity(&self) -> Verbosity {
        verbosity(self.quiet, self.verbose)
    }

    /// The options of the little that such a program says to a terminal, as by `--check-config`.
    #[must_use]
    pub fn terminal(&self) -> GlobalOpts {
        GlobalOpts {
            verbose: self.verbose,
            quiet: self.quiet,
            ..GlobalOpts::default()
        }
    }
}

fn verbosity(quiet: bool, verbose: u8) -> Verbosity {
    match (quiet, verbose) {
        (true, _) => Verbosity::Quiet,
        (false, 0) => Verbosity::Normal,
        (false, 1) => Verbosity::Verbose,
        (false, _) => Verbosity::Everything,
    }
}
