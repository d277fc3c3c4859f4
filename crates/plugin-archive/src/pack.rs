//! Makes archives.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use miniz_oxide::deflate::core::{
    CompressorOxide, TDEFLFlush, compress_to_output, create_comp_flags_from_zip_params,
};

use crate::budget::{Budget, within};
use crate::error::{ArchiveError, LimitName, Rule};
use crate::header::{self, BLOCK};
use crate::path::check_path;
use crate::reader::has_below;
use crate::{DEFAULT_MODE, Files, Limits, Modes, gzip};

/// Compressed by itself, so that it does not matter who compresses it; part of the format of the
/// bytes: another size makes other archives.
const PIECE: usize = 256 * 1024;

/// Likewise part of the bytes.
const LEVEL: i32 = 4;

/// Makes an archive of files; the same files and modes make the same bytes everywhere.
///
/// # Errors
///
/// A path that no archive may hold or that does not fit, a mode for a path that is no file, and
/// whatever exceeds the limits.
pub fn pack(files: &Files, modes: &Modes, limits: &Limits) -> Result<Vec<u8>, ArchiveError> {
    let threads = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    pack_with_threads(files, modes, limits, threads)
}

/// As [`pack`], on at most so many threads; their number has no influence on the bytes.
///
/// # Errors
///
/// As [`pack`].
pub fn pack_with_threads(
    files: &Files,
    modes: &Modes,
    limits: &Limits,
    threads: NonZeroUsize,
) -> Result<Vec<u8>, ArchiveError> {
    if let Some(path) = modes.keys().find(|path| !files.contains_key(*path)) {
        return Err(ArchiveError::at(0, path.as_bytes(), Rule::ModeWithoutFile));
    }
    let tar = tar(files, modes, limits)?;
    let archive = compress(&tar, threads);
    within(
        LimitName::ArchiveBytes,
        archive.len() as u64,
        limits.archive_bytes,
    )
    .map_err(ArchiveError::whole)?;
    Ok(archive)
}

fn tar(files: &Files, modes: &Modes, limits: &Limits) -> Result<Vec<u8>, ArchiveError> {
    let mut budget = Budget::new(limits);
    // everything is judged before anything is copied
    let mut size = 2 * BLOCK as u64;
    for (path, contents) in files {
        let length = contents.len() as u64;
        check(files, path).map_err(|rule| ArchiveError::at(0, path.as_bytes(), rule))?;
        budget.entry(path)?;
        budget.file(path, length)?;
        size += BLOCK as u64 + length.next_multiple_of(BLOCK as u64);
        within(
            LimitName::UncompressedBytes,
            size,
            limits.uncompressed_bytes,
        )
        .map_err(|rule| ArchiveError::at(0, path.as_bytes(), rule))?;
    }
    within(
        LimitName::UncompressedBytes,
        size,
        limits.uncompressed_bytes,
    )
    .map_err(ArchiveError::whole)?;
    let mut tar = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    for (path, contents) in files {
        let mode = modes.get(path).copied().unwrap_or(DEFAULT_MODE);
        let header = header::write(path, mode, contents.len() as u64)
            .map_err(|rule| ArchiveError::at(0, path.as_bytes(), rule))?;
        tar.extend_from_slice(&header);
        tar.extend_from_slice(contents);
        tar.resize(tar.len().next_multiple_of(BLOCK), 0);
    }
    tar.resize(tar.len() + 2 * BLOCK, 0);
    Ok(tar)
}

fn check(files: &Files, path: &str) -> Result<(), Rule> {
    check_path(path)?;
    if has_below(files, path) {
        Err(Rule::Conflict)
    } else {
        Ok(())
    }
}

struct Piece {
    number: usize,
    bytes: Vec<u8>,
    crc: crc32fast::Hasher,
}

pub(crate) fn compress(tar: &[u8], threads: NonZeroUsize) -> Vec<u8> {
    let pieces: Vec<&[u8]> = tar.chunks(PIECE).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(piece) = pieces.get(number) else {
                return done;
            };
            done.push(compress_piece(number, piece, number + 1 == pieces.len()));
        }
    };
    let mut done = thread::scope(|scope| {
        let others = threads.get().min(pieces.len()).saturating_sub(1);
        // where no further thread can be had, those that there are do all the work
        let others: Vec<_> = (0..others)
            .map_while(|_| thread::Builder::new().spawn_scoped(scope, work).ok())
            .collect();
        let mut done = work();
        for other in others {
            match other.join() {
                Ok(pieces) => done.extend(pieces),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_by_key(|piece| piece.number);

    let mut crc = crc32fast::Hasher::new();
    let mut archive = gzip::HEADER.to_vec();
    for piece in done {
        archive.extend_from_slice(&piece.bytes);
        crc.combine(&piece.crc);
    }
    archive.extend_from_slice(&gzip::trailer(crc.finalize(), tar.len() as u64));
    archive
}

/// A piece ends on a whole byte, so that the next one can follow whoever made it.
fn compress_piece(number: usize, piece: &[u8], last: bool) -> Piece {
    let mut crc = crc32fast::Hasher::new();
    crc.update(piece);
    let mut bytes = Vec::with_capacity(piece.len() / 2);
    // window bits of 0 mean no header of zlib; strategy 0 is the usual one
    let mut compressor = Box::new(CompressorOxide::new(create_comp_flags_from_zip_params(
        LEVEL, 0, 0,
    )));
    let flush = if last {
        TDEFLFlush::Finish
    } else {
        TDEFLFlush::Sync
    };
    compress_to_output(&mut compressor, piece, flush, |part| {
        bytes.extend_from_slice(part);
        true
    });
    Piece { number, bytes, crc }
}
