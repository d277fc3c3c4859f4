//! Snapshots of plugin packages as archives: sorted, deterministic USTAR in one gzip member.
//!
//! Everything happens in memory. Nothing here opens, reads or writes a file, so an archive cannot
//! reach one. [`pack`] makes the same bytes from the same files on every machine; [`unpack`]
//! refuses whatever is not plainly a file or a folder, and keeps to its [`Limits`] while it reads.
//!
//! ```
//! use plugin_archive::{Files, Limits, Modes, digest, pack, unpack_with_metadata};
//!
//! let limits = Limits::default();
//! let files = Files::from([("plugin.json".to_owned(), b"{}".to_vec()), ("run".to_owned(), b"#!/bin/sh\n".to_vec())]);
//! let modes = Modes::from([("run".to_owned(), 0o755)]);
//! let archive = pack(&files, &modes, &limits)?;
//! assert!(digest(&archive).to_string().starts_with("sha256:"));
//!
//! let snapshot = unpack_with_metadata(&archive, &limits)?;
//! assert_eq!(snapshot.files, files);
//! assert_eq!(snapshot.modes["plugin.json"], 0o644);
//! assert_eq!(snapshot.modes["run"], 0o755);
//! # Ok::<(), plugin_archive::ArchiveError>(())
//! ```

use std::collections::BTreeMap;

use digest_text::Sha256Text;

mod budget;
mod error;
#[doc(hidden)]
pub mod fuzz_entry;
mod gzip;
mod header;
mod inflate;
mod pack;
mod path;
mod reader;

pub use budget::Budget;
pub use error::{ArchiveError, Entry, LimitName, Rule};
pub use pack::{pack, pack_with_threads};
pub use path::{check_path, visible};

/// Paths below the root of a package, with `/` between components, and the bytes of each file.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The low nine permission bits of files.
pub type Modes = BTreeMap<String, u32>;

/// The mode of a file that was given none.
pub const DEFAULT_MODE: u32 = 0o644;

/// What of a mode is kept: reading, writing and running, never setuid, setgid or sticky.
pub const MODE_MASK: u32 = 0o777;

/// How large an archive and what is in it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the archive as it is stored.
    pub archive_bytes: u64,
    /// Bytes of the tar stream inside the compression.
    pub uncompressed_bytes: u64,
    /// Bytes of all files together.
    pub total_bytes: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Files.
    pub files: u64,
    /// Files and folders that have an entry.
    pub entries: u64,
    /// Components of a path.
    pub depth: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            archive_bytes: 33_554_432,
            uncompressed_bytes: 80_000_000,
            total_bytes: 67_108_864,
            file_bytes: 16_777_216,
            files: 10_000,
            entries: 20_000,
            depth: 64,
        }
    }
}

/// Files and their modes; every file has a mode.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The bytes of each file.
    pub files: Files,
    /// The low nine permission bits of each file.
    pub modes: Modes,
}

/// Reads the files of an archive; their modes are lost, so publishers and installers want
/// [`unpack_with_metadata`].
///
/// # Errors
///
/// As [`unpack_with_metadata`].
pub fn unpack(archive: &[u8], limits: &Limits) -> Result<Files, ArchiveError> {
    Ok(unpack_with_metadata(archive, limits)?.files)
}

/// Reads the files of an archive and their modes.
///
/// # Errors
///
/// Refuses the first thing that is not as it must be, and then returns nothing of the archive.
pub fn unpack_with_metadata(archive: &[u8], limits: &Limits) -> Result<Snapshot, ArchiveError> {
    let mut reader = reader::Reader::new(limits);
    inflate::inflate(archive, limits, |bytes| reader.feed(bytes))?;
    reader.finish()
}

/// The digest that an archive is known by: SHA-256 over its exact bytes.
#[must_use]
pub fn digest(archive: &[u8]) -> Sha256Text {
    Sha256Text::of(archive)
}
