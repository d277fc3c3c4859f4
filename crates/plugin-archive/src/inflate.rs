//! Takes one gzip member apart, a window at a time.

use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

use crate::Limits;
use crate::budget::within;
use crate::error::{ArchiveError, LimitName, Rule};
use crate::gzip;

/// The contents are handed on from a ring of this size: a power of two, and no less than the
/// 32 KiB that compressed data may refer back to.
const WINDOW: usize = 64 * 1024;

/// Hands the contents of an archive to `take` as they come; nothing that exceeds the limits is
/// handed on.
pub(crate) fn inflate(
    archive: &[u8],
    limits: &Limits,
    mut take: impl FnMut(&[u8]) -> Result<(), ArchiveError>,
) -> Result<(), ArchiveError> {
    within(
        LimitName::ArchiveBytes,
        archive.len() as u64,
        limits.archive_bytes,
    )
    .map_err(ArchiveError::whole)?;
    let mut input = gzip::skip_header(archive).map_err(ArchiveError::whole)?;
    let mut state = Box::new(DecompressorOxide::new());
    let mut window = vec![0; WINDOW];
    let (mut at, mut size, mut crc) = (0, 0_u64, crc32fast::Hasher::new());
    loop {
        let (status, read, written) = decompress(&mut state, input, &mut window, at, 0);
        input = input.get(read..).unwrap_or_default();
        let bytes = window.get(at..at + written).unwrap_or_default();
        size += written as u64;
        within(
            LimitName::UncompressedBytes,
            size,
            limits.uncompressed_bytes,
        )
        .map_err(ArchiveError::whole)?;
        crc.update(bytes);
        take(bytes)?;
        at = (at + written) % WINDOW;
        match status {
            TINFLStatus::Done => break,
            TINFLStatus::HasMoreOutput => {}
            TINFLStatus::NeedsMoreInput | TINFLStatus::FailedCannotMakeProgress => {
                return Err(ArchiveError::whole(Rule::GzipTruncated));
            }
            _ => return Err(ArchiveError::whole(Rule::GzipData)),
        }
    }
    gzip::check_trailer(input, crc.finalize(), size).map_err(ArchiveError::whole)
}
