//! Lines of a session, with the protocol's limit and words.

use bounded::{LineTooLong, Lines};

use crate::limits::MESSAGE_BYTES;
use crate::violation::{ProtocolError, Violation};

/// Collects bytes and hands out complete lines.
#[derive(Debug)]
pub(crate) struct LineReader(Lines);

impl Default for LineReader {
    fn default() -> Self {
        Self(Lines::new(MESSAGE_BYTES))
    }
}

impl LineReader {
    /// Adds bytes as they came.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.0.push(bytes);
    }

    /// Takes the next complete line without its line feed.
    pub(crate) fn next_line(&mut self) -> Result<Option<Vec<u8>>, ProtocolError> {
        let line = self.0.next_line();
        line.map_err(|LineTooLong| ProtocolError::in_line(Violation::TooLong, self.rest()))
    }

    /// Returns the bytes that were not handed out yet.
    pub(crate) fn rest(&self) -> &[u8] {
        self.0.rest()
    }

    /// Checks at the end of the stream that no line is left without its line feed.
    pub(crate) fn finish(&self) -> Result<(), ProtocolError> {
        match self.rest() {
            [] => Ok(()),
            rest => Err(ProtocolError::in_line(Violation::Unterminated, rest)),
        }
    }
}
