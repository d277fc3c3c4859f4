//! One zstd frame, decompressed as far as it is asked for.

use std::fmt;
use std::io::Read;

use ruzstd::decoding::errors::FrameDecoderError;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

use super::error::{ArchiveError, Limit};

/// The window that the format's own writers need is 2 MiB; every decoder has to support 8 MiB.
const MAX_WINDOW: u64 = 8 * 1024 * 1024;

/// The bytes in a frame, of which no more come out than the limit.
pub(super) struct Frame<'a> {
    decoder: StreamingDecoder<&'a [u8], FrameDecoder>,
    left: u64,
    limit: u64,
}

impl<'a> Frame<'a> {
    pub(super) fn new(bytes: &'a [u8], limit: u64) -> Result<Self, ArchiveError> {
        let decoder = StreamingDecoder::new_with_max_window_size(bytes, MAX_WINDOW);
        let decoder = decoder.map_err(|error| match error {
            FrameDecoderError::WindowSizeTooBig { .. } => ArchiveError::TooMuch {
                limit: Limit::Window,
                bound: MAX_WINDOW,
                what: "the archive".to_owned(),
            },
            FrameDecoderError::ReadFrameHeaderError(_) => {
                ArchiveError::Frame("it is no zstd frame".to_owned())
            }
            other => damaged(&other),
        })?;
        Ok(Self {
            decoder,
            left: limit,
            limit,
        })
    }

    /// Fills the buffer as far as there are bytes; returns how many there were.
    pub(super) fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, ArchiveError> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.decoder.read(rest).map_err(|error| damaged(&error))? {
                0 => break,
                read => filled += read,
            }
        }
        let taken = u64::try_from(filled).unwrap_or(u64::MAX);
        self.left = self.left.checked_sub(taken).ok_or(ArchiveError::TooMuch {
            limit: Limit::Unpacked,
            bound: self.limit,
            what: "the archive".to_owned(),
        })?;
        Ok(filled)
    }

    /// Returns how many bytes may still come.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Makes sure that the frame is whole, and that it is all there is.
    pub(super) fn finish(self) -> Result<(), ArchiveError> {
        let (rest, decoder) = self.decoder.into_parts();
        if let Some(stored) = decoder.get_checksum_from_data()
            && decoder.get_calculated_checksum() != Some(stored)
        {
            return Err(ArchiveError::Frame("its checksum is wrong".to_owned()));
        }
        if rest.is_empty() {
            Ok(())
        } else {
            Err(ArchiveError::Trailing)
        }
    }
}

fn damaged(error: &dyn fmt::Display) -> ArchiveError {
    ArchiveError::Frame(error.to_string())
}
