//! Why declarations are refused: where, and which rule they break.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::{FILE, MAX_BYTES};

/// Why the declarations are refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeclareError {
    /// The system does not give the file.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file or the folder that it lies in.
        path: PathBuf,
        /// The answer of the system.
        #[source]
        source: io::Error,
    },
    /// Something else stands in the place of the file or of its folder.
    #[error("`{}` is {found}; it must be {wanted} of its own", path.display())]
    InTheWay {
        /// What was looked at.
        path: PathBuf,
        /// What it is.
        found: &'static str,
        /// What it should be.
        wanted: &'static str,
    },
    /// More bytes than allowed.
    #[error("{FILE} has more than {MAX_BYTES} bytes")]
    TooLong,
    /// It is no text.
    #[error("{FILE} line {line}: not UTF-8")]
    NotUtf8 {
        /// The line, from 1.
        line: usize,
    },
    /// It is no TOML.
    #[error("{FILE} line {line}: {reason}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// Why.
        reason: String,
    },
    /// It breaks a rule of the format.
    #[error("{FILE} line {line}: {place}{rule}")]
    Rule {
        /// The line, from 1.
        line: usize,
        /// The plugin and the key.
        place: Place,
        /// The rule, as a phrase that goes on from the key.
        rule: String,
    },
}

/// Which part of the declarations breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// The plugin by its name, as far as it has one that can be shown.
    pub plugin: Option<String>,
    /// The key, with those above it.
    pub key: Option<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(plugin) = &self.plugin {
            write!(f, "plugin `{plugin}`: ")?;
        }
        match &self.key {
            Some(key) => write!(f, "`{key}` "),
            None => Ok(()),
        }
    }
}
