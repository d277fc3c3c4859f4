//! An answer that nobody reads to its end is still the answer: the code must not turn into success.

use cli_shell::{CliError, ErrorKind};

/// Makes nothing of a reader that went away, so that what was found decides the exit code.
pub(crate) fn also_unread(written: Result<(), CliError>) -> Result<(), CliError> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn only_a_reader_that_went_away_is_nothing() {
        let failed = |kind: io::ErrorKind| also_unread(Err(CliError::output(kind.into())));
        assert!(also_unread(Ok(())).is_ok());
        assert!(failed(io::ErrorKind::BrokenPipe).is_ok());
        assert!(failed(io::ErrorKind::StorageFull).is_err());
    }
}
