//! Cuts a stream of bytes into frames: at line feeds, and nowhere else.
//!
//! A frame leaves the reader as bytes, whole; whoever decodes it never sees half a character.

use crate::limits::FRAME_BYTES;
use crate::violation::{ProtocolError, Violation};

/// Collects bytes and hands out complete frames.
///
/// Besides the chunk that was pushed last it never holds more than one frame.
#[derive(Debug, Default)]
pub struct FrameReader {
    buffer: Vec<u8>,
    /// Start of the frame that is being collected.
    start: usize,
    /// Up to where no line feed was found, so that single bytes cost single steps.
    scanned: usize,
}

impl FrameReader {
    /// Makes an empty reader.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes as they came.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Takes the next complete frame without its line feed.
    pub fn next_frame(&mut self) -> Result<Option<Vec<u8>>, ProtocolError> {
        let fresh = self.buffer.get(self.scanned..).unwrap_or_default();
        let line_feed = fresh.iter().position(|byte| *byte == b'\n');
        self.scanned = line_feed.map_or(self.buffer.len(), |at| self.scanned + at);
        let frame = self
            .buffer
            .get(self.start..self.scanned)
            .unwrap_or_default();
        if frame.len() > FRAME_BYTES {
            return Err(ProtocolError::in_line(Violation::FrameTooLong, frame));
        }
        if line_feed.is_none() {
            return Ok(None);
        }
        let frame = frame.to_vec();
        self.scanned += 1;
        self.start = self.scanned;
        match frame.last() {
            None => Err(ProtocolError::silent(Violation::BlankLine)),
            Some(b'\r') => Err(ProtocolError::in_line(Violation::CarriageReturn, &frame)),
            Some(_) => Ok(Some(frame)),
        }
    }

    /// Returns the bytes that were not handed out yet.
    pub fn rest(&self) -> &[u8] {
        self.buffer.get(self.start..).unwrap_or_default()
    }

    /// Checks at the end of the stream that no frame is left without its line feed.
    pub fn finish(&self) -> Result<(), ProtocolError> {
        match self.rest() {
            [] => Ok(()),
            rest => Err(ProtocolError::in_line(Violation::Unterminated, rest)),
        }
    }
}
