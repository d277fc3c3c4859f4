//! What to run and how much of it: checked in full before anything starts.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use process_tree::{Leftovers, Spec, Stdin};

use crate::error::InvalidRequest;

/// Most elements of an argument vector.
pub(crate) const ARGUMENTS: usize = 64;
/// Most bytes of one element.
pub(crate) const ARGUMENT_BYTES: usize = 4_096;

/// The plugin's executable and what it is given.
#[derive(Debug, Clone)]
pub struct PluginCommand {
    /// 1 to 64 elements of 1 to 4 096 bytes each, without NUL; the first names the program.
    pub argv: Vec<String>,
    /// The whole environment; may be empty.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory; the host's own when absent.
    pub cwd: Option<PathBuf>,
}

/// How long and how much a plugin may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLimits {
    /// The time for the whole session, from the start of the process to its end.
    pub timeout: Duration,
    /// The bytes of stdout and stderr together; exactly so many are fine.
    pub output_bytes: u64,
}

impl PluginCommand {
    pub(crate) fn check(&self) -> Result<(), InvalidRequest> {
        if !(1..=ARGUMENTS).contains(&self.argv.len()) {
            return Err(InvalidRequest::ArgumentCount(self.argv.len()));
        }
        for (index, argument) in self.argv.iter().enumerate() {
            if !(1..=ARGUMENT_BYTES).contains(&argument.len()) {
                let bytes = argument.len();
                return Err(InvalidRequest::ArgumentLength { index, bytes });
            }
            if argument.contains('\0') {
                return Err(InvalidRequest::ArgumentNul { index });
            }
        }
        Ok(())
    }

    pub(crate) fn spec(&self) -> Spec {
        let mut spec = Spec::new(&self.argv)
            .env(self.env.iter().cloned())
            .stdin(Stdin::Pipe)
            .leftovers(Leftovers::Fail);
        spec.cwd.clone_from(&self.cwd);
        spec
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(argv: Vec<String>) -> Result<(), InvalidRequest> {
        PluginCommand {
            argv,
            env: Vec::new(),
            cwd: None,
        }
        .check()
    }

    #[test]
    fn the_argument_vector_has_1_to_64_elements() {
        assert!(command(Vec::new()).is_err());
        assert!(command(vec!["a".to_owned(); 64]).is_ok());
        assert!(command(vec!["a".to_owned(); 65]).is_err());
    }

    #[test]
    fn an_argument_has_1_to_4096_bytes_without_nul() {
        assert!(command(vec![String::new()]).is_err());
        assert!(command(vec!["a".repeat(4_096)]).is_ok());
        assert!(command(vec!["a".repeat(4_097)]).is_err());
        // Bytes, not characters.
        assert!(command(vec!["é".repeat(2_049)]).is_err());
        assert!(command(vec!["a".to_owned(), "a\0".to_owned()]).is_err());
    }
}
