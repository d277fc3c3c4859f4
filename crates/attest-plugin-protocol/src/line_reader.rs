//! Cuts a stream of bytes into lines: at line feeds, and nowhere else.
//!
//! A line leaves the reader as bytes, whole; whoever decodes it never sees half a character.

use crate::limits::MESSAGE_BYTES;
use crate::violation::{ProtocolError, Violation};

/// Collects bytes and hands out complete lines.
///
/// Besides the chunk that was pushed last it never holds more than one line.
#[derive(Debug, Default)]
pub(crate) struct LineReader {
    buffer: Vec<u8>,
    /// Start of the line that is being collected.
    start: usize,
    /// Up to where no line feed was found, so that single bytes cost single steps.
    scanned: usize,
}

impl LineReader {
    /// Adds bytes as they came.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Takes the next complete line without its line feed.
    pub(crate) fn next_line(&mut self) -> Result<Option<Vec<u8>>, ProtocolError> {
        let fresh = self.buffer.get(self.scanned..).unwrap_or_default();
        let line_feed = fresh.iter().position(|byte| *byte == b'\n');
        self.scanned = line_feed.map_or(self.buffer.len(), |at| self.scanned + at);
        let line = self
            .buffer
            .get(self.start..self.scanned)
            .unwrap_or_default();
        if line.len() > MESSAGE_BYTES {
            return Err(ProtocolError::in_line(Violation::TooLong, line));
        }
        if line_feed.is_none() {
            return Ok(None);
        }
        let line = line.to_vec();
        self.scanned += 1;
        self.start = self.scanned;
        Ok(Some(line))
    }

    /// Returns the bytes that were not handed out yet.
    pub(crate) fn rest(&self) -> &[u8] {
        self.buffer.get(self.start..).unwrap_or_default()
    }

    /// Checks at the end of the stream that no line is left without its line feed.
    pub(crate) fn finish(&self) -> Result<(), ProtocolError> {
        match self.rest() {
            [] => Ok(()),
            rest => Err(ProtocolError::in_line(Violation::Unterminated, rest)),
        }
    }
}
