//! What to start, how to end it, and how it ended: plain values, no effects.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::StartError;

/// One program to start. Nothing is inherited from the host but what is named here.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The argument vector; the first element names the program.
    pub argv: Vec<OsString>,
    /// The whole environment of the program.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory; the host's own when absent.
    pub cwd: Option<PathBuf>,
    /// What the program reads on descriptor 0.
    pub stdin: Stdin,
    /// What it means when processes outlive the program.
    pub leftovers: Leftovers,
}

impl Spec {
    /// Makes a specification with an empty environment and `/dev/null` as stdin.
    ///
    /// A program without `/` is looked up in the `PATH` of [`Spec::env`], never in the host's.
    pub fn new<A>(argv: impl IntoIterator<Item = A>) -> Self
    where
        A: Into<OsString>,
    {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            cwd: None,
            stdin: Stdin::Null,
            leftovers: Leftovers::Fail,
        }
    }

    /// Adds variables to the environment; a later value replaces an earlier one.
    #[must_use]
    pub fn env<K, V>(mut self, variables: impl IntoIterator<Item = (K, V)>) -> Self
    where
        K: Into<OsString>,
        V: Into<OsString>,
    {
        self.env.extend(
            variables
                .into_iter()
                .map(|(name, value)| (name.into(), value.into())),
        );
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn cwd(mut self, directory: impl Into<PathBuf>) -> Self {
        self.cwd = Some(directory.into());
        self
    }

    /// Sets what the program reads on descriptor 0.
    #[must_use]
    pub fn stdin(mut self, stdin: Stdin) -> Self {
        self.stdin = stdin;
        self
    }

    /// Sets what it means when processes outlive the program.
    #[must_use]
    pub fn leftovers(mut self, leftovers: Leftovers) -> Self {
        self.leftovers = leftovers;
        self
    }

    /// Refuses what no system call could carry, before anything is opened or started.
    pub(crate) fn check(&self) -> Result<&OsStr, StartError> {
        let program = self.argv.first().ok_or(StartError::EmptyArgv)?;
        if program.is_empty() {
            return Err(StartError::EmptyArgv);
        }
        if let Some(index) = self.argv.iter().position(|a| a.as_bytes().contains(&0)) {
            return Err(StartError::NulInArgument { index });
        }
        for (name, value) in &self.env {
            let bytes = name.as_bytes();
            if bytes.is_empty()
                || bytes.contains(&b'=')
                || bytes.contains(&0)
                || value.as_bytes().contains(&0)
            {
                return Err(StartError::InvalidVariable {
                    name: name.to_string_lossy().into_owned(),
                });
            }
        }
        Ok(program)
    }

    pub(crate) fn variable(&self, wanted: &str) -> Option<&OsStr> {
        self.env
            .iter()
            .rev()
            .find(|(name, _)| name == wanted)
            .map(|(_, value)| value.as_os_str())
    }
}

/// What a program reads on descriptor 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdin {
    /// `/dev/null`.
    Null,
    /// A pipe whose writing end is [`Child::stdin`](crate::Child::stdin).
    Pipe,
    /// The host's own descriptor 0. Not for a terminal: the program's group is in its background
    /// and would be stopped when it reads.
    Inherit,
}

/// What it means when processes outlive the program. They are killed either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leftovers {
    /// Processes that still hold the program's output are reported as
    /// [`Outlived::HeldOutput`], which the caller treats as a failure.
    Fail,
    /// All are reported as [`Outlived::Killed`], whatever they hold.
    KillAndWarn,
}

/// How a running program is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ladder {
    /// The signal that asks the program's process group to end; none goes to the kill at once.
    pub ask: Option<Signal>,
    /// How long the program may take after the signal; cut to [`Ladder::MAX_GRACE`].
    pub grace: Duration,
}

impl Ladder {
    /// The longest wait between asking and killing, so that a whole cancel stays under a second.
    pub const MAX_GRACE: Duration = Duration::from_millis(250);

    /// Kills without asking.
    pub const KILL: Self = Self {
        ask: None,
        grace: Duration::ZERO,
    };

    /// Asks with `signal`, kills after [`Ladder::MAX_GRACE`].
    pub const fn ask(signal: Signal) -> Self {
        Self {
            ask: Some(signal),
            grace: Self::MAX_GRACE,
        }
    }

    pub(crate) fn bounded_grace(self) -> Duration {
        match self.ask {
            Some(_) => self.grace.min(Self::MAX_GRACE),
            None => Duration::ZERO,
        }
    }
}

/// A signal that asks a program to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// `SIGHUP`
    Hangup,
    /// `SIGINT`
    Interrupt,
    /// `SIGTERM`
    Terminate,
}

impl Signal {
    pub(crate) const fn to_nix(self) -> nix::sys::signal::Signal {
        match self {
            Self::Hangup => nix::sys::signal::Signal::SIGHUP,
            Self::Interrupt => nix::sys::signal::Signal::SIGINT,
            Self::Terminate => nix::sys::signal::Signal::SIGTERM,
        }
    }
}

/// How a program ended, said after everything of it was reaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// How the program itself ended.
    pub status: Status,
    /// What became of processes that outlived it.
    pub leftovers: Outlived,
}

impl Exit {
    /// Tells whether the program exited with 0; leftovers do not count.
    pub fn is_success(&self) -> bool {
        self.status == Status::Code(0)
    }
}

/// How the program itself ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It exited with this code, 0..=255.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
    /// Nobody knows, since the wrapper that watched it was killed.
    Lost,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => match nix::sys::signal::Signal::try_from(*signal) {
                Ok(name) => write!(f, "killed by {name}"),
                Err(_) => write!(f, "killed by signal {signal}"),
            },
            Self::Lost => f.write_str("lost with its wrapper"),
        }
    }
}

/// What became of the processes that outlived the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlived {
    /// There were none.
    None,
    /// So many were killed; none of them held the program's output, or the policy does not ask.
    Killed(u32),
    /// So many were killed, and at least one still held the program's stdout or stderr.
    HeldOutput(u32),
    /// So many could not be ended within the bound (another user's, or stuck in the kernel).
    Survived(u32),
}
