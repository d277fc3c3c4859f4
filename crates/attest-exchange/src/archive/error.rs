//! Why an archive is not looked at. None of these is a verdict.

use std::fmt;

use bounded::text::visible;

/// A limit of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// [`super::Limits::archive`]
    Archive,
    /// [`super::Limits::unpacked`]
    Unpacked,
    /// [`super::Limits::entries`]
    Entries,
    /// [`super::Limits::entry`]
    Entry,
    /// What a document of that kind can be long at most, whatever the caller allows.
    Document,
    /// The memory that the compression asks for.
    Window,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Archive => "archive bytes",
            Self::Unpacked => "unpacked bytes",
            Self::Entries => "entries",
            Self::Entry => "bytes of an entry",
            Self::Document => "bytes of a document",
            Self::Window => "bytes of the zstd window",
        })
    }
}

/// Why an archive is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// It is more than the reader takes.
    #[error("resource limit: {what} has more than {bound} {limit}", what = visible(.what))]
    TooMuch {
        /// Which limit.
        limit: Limit,
        /// Its value.
        bound: u64,
        /// The archive, or an entry.
        what: String,
    },
    /// It is no zstd frame, or a damaged one.
    #[error("not a zstd archive that can be read: {}", visible(.0))]
    Frame(String),
    /// Something follows what the archive is.
    #[error("the archive goes on after its end")]
    Trailing,
    /// It ends before its end.
    #[error("the archive is cut short")]
    CutShort,
    /// A header that the writer would not have written.
    #[error("the header of entry {0} is not one of this format: {1}")]
    Header(u64, &'static str),
    /// A tar extension, which could rename or resize what follows.
    #[error("entry {number} is a tar extension (type '{kind}'); an attest archive has none")]
    Extension {
        /// Which, counted from 1.
        number: u64,
        /// Its type.
        kind: char,
    },
    /// A link, folder or device.
    #[error("entry {number} is not a regular file (type '{kind}'); an attest archive has only those", kind = kind.escape_default())]
    NotAFile {
        /// Which, counted from 1.
        number: u64,
        /// Its type.
        kind: char,
    },
    /// A name that leads out of the archive.
    #[error("entry `{}` escapes the archive", visible(.0))]
    Escapes(String),
    /// A name that means nothing.
    #[error("entry `{}` is not part of this format", visible(.0))]
    Stranger(String),
    /// A name that was there before.
    #[error("entry `{}` is there twice", visible(.0))]
    Twice(String),
    /// Without it nothing can be said.
    #[error("the archive has no {0}")]
    Missing(&'static str),
    /// The manifest cannot be read.
    #[error("manifest.json: {}", visible(.0))]
    Manifest(String),
    /// Another format or version.
    #[error("unsupported archive format '{}' (expected {})", visible(.0), super::FORMAT)]
    Format(String),
    /// A public key that is none, or another's.
    #[error("entry `{}` is not the public key that its name says", visible(.0))]
    Key(String),
    /// The archive cannot be put together.
    #[error("cannot put the archive together: {0}")]
    Write(String),
}

impl ArchiveError {
    /// The error for a file that is longer than the limit of the archive.
    #[must_use]
    pub fn too_long(limits: &super::Limits) -> Self {
        Self::TooMuch {
            limit: Limit::Archive,
            bound: limits.archive,
            what: "the archive".to_owned(),
        }
    }

    /// Tells whether a limit was exceeded, so that the rest was not looked at.
    #[must_use]
    pub fn is_resource_limit(&self) -> bool {
        matches!(self, Self::TooMuch { .. })
    }
}
