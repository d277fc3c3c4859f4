//! The one error type at the edge of a program: what kind, what happened, what to do about it.
//!
//! Libraries keep their own enums; a program converts them here, once, and adds hints. The kind
//! alone decides the exit code.

use std::error::Error;
use std::fmt;
use std::io;

use crate::exit;

/// Why a program ends without success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The arguments make no sense.
    Usage,
    /// A configuration file, variable or credential is missing or wrong.
    Config,
    /// The operation could not be carried out.
    Operation,
    /// The operation was carried out and the honest answer is no.
    No,
    /// Whoever read our output stopped reading; nothing is worth saying.
    BrokenPipe,
}

impl ErrorKind {
    /// Returns the exit code of this kind.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Usage | Self::Config | Self::Operation => exit::FAILED_CODE,
            Self::No => exit::NO_CODE,
            Self::BrokenPipe => exit::OK_CODE,
        }
    }
}

/// An error on its way to the terminal, with hints that say what to do.
#[derive(Debug)]
pub struct CliError {
    kind: ErrorKind,
    error: Box<dyn Error + Send + Sync>,
    hints: Vec<String>,
}

impl CliError {
    /// Wraps an error (or a message) of the given kind.
    pub fn new(kind: ErrorKind, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            kind,
            error: error.into(),
            hints: Vec::new(),
        }
    }

    /// Wraps an error in the arguments; exit code 2.
    pub fn usage(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(ErrorKind::Usage, error)
    }

    /// Wraps an error in a configuration file, variable or credential; exit code 2.
    pub fn config(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(ErrorKind::Config, error)
    }

    /// Wraps a failed operation; exit code 2.
    pub fn operation(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(ErrorKind::Operation, error)
    }

    /// Wraps an honest "no"; exit code 1.
    pub fn no(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(ErrorKind::No, error)
    }

    /// Wraps a failed write to standard output: a broken pipe is quiet, the rest is not.
    #[must_use]
    pub fn output(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::new(ErrorKind::BrokenPipe, error)
        } else {
            Self::operation(error).because("cannot write to standard output")
        }
    }

    /// Puts a message before the error, which becomes its cause.
    #[must_use]
    pub fn because(self, message: impl Into<String>) -> Self {
        Self {
            kind: self.kind,
            error: Box::new(WithContext {
                message: message.into(),
                source: self.error,
            }),
            hints: self.hints,
        }
    }

    /// Adds a hint, printed after the error.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the hints in the order in which they were added.
    #[must_use]
    pub fn hints(&self) -> &[String] {
        &self.hints
    }

    /// Returns the message and then each cause, outermost first.
    #[must_use]
    pub fn messages(&self) -> Vec<String> {
        let mut messages = vec![self.error.to_string()];
        let mut cause = self.error.source();
        while let Some(error) = cause {
            let message = error.to_string();
            // Some libraries repeat their cause in their own message.
            if messages.last().is_some_and(|last| !last.contains(&message)) {
                messages.push(message);
            }
            cause = error.source();
        }
        messages
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.error)
    }
}

impl Error for CliError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

/// A message in front of an error that is its cause.
#[derive(Debug)]
struct WithContext {
    message: String,
    source: Box<dyn Error + Send + Sync>,
}

impl fmt::Display for WithContext {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl Error for WithContext {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_map_to_the_exit_table() {
        assert_eq!(CliError::usage("x").kind().exit_code(), 2);
        assert_eq!(CliError::config("x").kind().exit_code(), 2);
        assert_eq!(CliError::operation("x").kind().exit_code(), 2);
        assert_eq!(CliError::no("x").kind().exit_code(), 1);
        let broken = io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(CliError::output(broken).kind(), ErrorKind::BrokenPipe);
        assert_eq!(ErrorKind::BrokenPipe.exit_code(), 0);
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(CliError::output(full).kind(), ErrorKind::Operation);
    }

    #[test]
    fn context_comes_first_and_the_cause_is_kept_once() {
        let error = CliError::operation(io::Error::other("disk on fire"))
            .because("cannot save `a.json`")
            .hint("move it elsewhere");
        assert_eq!(error.messages(), ["cannot save `a.json`", "disk on fire"]);
        assert_eq!(error.hints(), ["move it elsewhere"]);
        assert_eq!(error.to_string(), "cannot save `a.json`");
    }
}
