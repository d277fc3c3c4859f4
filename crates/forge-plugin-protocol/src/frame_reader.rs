//! Cuts a stream of bytes into frames: at line feeds, and nowhere else.

use bounded::{LineTooLong, Lines};

use crate::limits::FRAME_BYTES;
use crate::violation::{ProtocolError, Violation};

/// Collects bytes and hands out complete frames, each as bytes and whole.
///
/// Besides the chunk that was pushed last it never holds more than one frame.
#[derive(Debug)]
pub struct FrameReader(Lines);

impl Default for FrameReader {
    fn default() -> Self {
        Self(Lines::new(FRAME_BYTES))
    }
}

impl FrameReader {
    /// Makes an empty reader.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes as they came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.push(bytes);
    }

    /// Takes the next complete frame without its line feed.
    pub fn next_frame(&mut self) -> Result<Option<Vec<u8>>, ProtocolError> {
        let frame = match self.0.next_line() {
            Ok(Some(frame)) => frame,
            Ok(None) => return Ok(None),
            Err(LineTooLong) => {
                return Err(ProtocolError::in_line(Violation::FrameTooLong, self.rest()));
            }
        };
        match frame.last() {
            None => Err(ProtocolError::silent(Violation::BlankLine)),
            Some(b'\r') => Err(ProtocolError::in_line(Violation::CarriageReturn, &frame)),
            Some(_) => Ok(Some(frame)),
        }
    }

    /// Returns the bytes that were not handed out yet.
    pub fn rest(&self) -> &[u8] {
        self.0.rest()
    }

    /// Checks at the end of the stream that no frame is left without its line feed.
    pub fn finish(&self) -> Result<(), ProtocolError> {
        match self.rest() {
            [] => Ok(()),
            rest => Err(ProtocolError::in_line(Violation::Unterminated, rest)),
        }
    }
}
