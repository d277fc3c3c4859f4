//! A receipt on disk: read within the limit, or an error that names the file.

use std::path::{Path, PathBuf};

use attest_receipt::receipt::{self, MAX_BYTES, ReadError, Receipt, SchemaError};
use attest_receipt::yaml::YamlError;
use cli_shell::CliError;
use safe_fs::SafeFsError;
use thiserror::Error;

/// What kept a file from being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// There is no such file.
    Missing,
    /// It is a folder, a pipe or a device.
    NotAFile,
    /// It is longer than a receipt can be.
    TooLong,
    /// The system refused.
    Refused,
}

/// What a file is that was taken for a receipt, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Other {
    /// A zstd frame.
    Archive,
    /// A DSSE envelope.
    Envelope,
}

impl Other {
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
        const NAMES: &[&[u8]] = &[b"\"payloadType\"", b"\"payload\"", b"\"signatures\""];
        let first = bytes.trim_ascii_start().strip_prefix(b"{");
        let first = first.map(<[u8]>::trim_ascii_start);
        if bytes.starts_with(ZSTD) {
            Some(Self::Archive)
        } else if first.is_some_and(|rest| NAMES.iter().any(|name| rest.starts_with(name))) {
            Some(Self::Envelope)
        } else {
            None
        }
    }

    pub(crate) fn hint(self) -> &'static str {
        match self {
            Self::Archive => "it is compressed: `attest verify --archive FILE` judges an archive",
            Self::Envelope => {
                "it looks like an envelope: `attest import FILE --format in-toto` judges one"
            }
        }
    }
}

/// Why a file gives no receipt.
#[derive(Debug, Error)]
pub(crate) enum FileError {
    /// There is none, or it cannot be read, or it is too long.
    #[error("cannot read the receipt `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What it was.
        fault: Fault,
        /// What the system said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Its bytes are no document.
    #[error("unreadable YAML in `{}`", path.display())]
    Document {
        /// The file.
        path: PathBuf,
        /// Where and what.
        #[source]
        source: YamlError,
        /// What else it is.
        other: Option<Other>,
    },
    /// It is a document of another kind, or a broken receipt.
    #[error("`{}` is not a receipt", path.display())]
    NotAReceipt {
        /// The file.
        path: PathBuf,
        /// The first difference.
        #[source]
        source: SchemaError,
        /// What else it is.
        other: Option<Other>,
    },
}

/// Reads the bytes of a receipt's file.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, FileError> {
    safe_fs::read_bounded(path, MAX_BYTES as u64).map_err(|error| {
        let missing = error.is_not_found();
        let (fault, source): (_, Box<dyn std::error::Error + Send + Sync>) = match error {
            SafeFsError::Io { source, .. } if missing => (Fault::Missing, source.into()),
            SafeFsError::Io { source, .. } => (Fault::Refused, source.into()),
            SafeFsError::NotARegularFile { .. } => {
                (Fault::NotAFile, "it is not a regular file".into())
            }
            SafeFsError::TooLarge { limit, .. } => (
                Fault::TooLong,
                format!("it is longer than {limit} bytes").into(),
            ),
            other => (Fault::Refused, other.into()),
        };
        FileError::Read {
            path: path.to_owned(),
            fault,
            source,
        }
    })
}

/// Reads a receipt, whether or not it is coherent.
pub(crate) fn read(path: &Path) -> Result<Receipt, FileError> {
    parse(path, &bytes(path)?)
}

/// Tells whether a file is one, for a hint alone.
pub(crate) fn is_receipt(path: &Path) -> bool {
    read(path).is_ok()
}

/// Takes the bytes of a receipt apart.
pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<Receipt, FileError> {
    let path = path.to_owned();
    let other = Other::of(bytes);
    receipt::read(bytes).map_err(|error| match error {
        ReadError::Unreadable(source) => FileError::Document {
            path,
            source,
            other,
        },
        ReadError::Schema(source) => FileError::NotAReceipt {
            path,
            source,
            other,
        },
    })
}

impl From<FileError> for CliError {
    /// That a document is no receipt is an answer; all else is a failed operation.
    fn from(error: FileError) -> Self {
        let hint = match &error {
            FileError::NotAReceipt { other, .. } => {
                let hint = other.map(Other::hint);
                let error = Self::no(error);
                return match hint {
                    Some(hint) => error.hint(hint),
                    None => error,
                };
            }
            FileError::Read { fault, .. } => match fault {
                Fault::NotAFile => {
                    Some("a receipt is a regular file; save what comes through a pipe first")
                }
                Fault::Missing => Some("`attest run` prints the path of the receipt that it wrote"),
                Fault::TooLong | Fault::Refused => None,
            },
            FileError::Document { other, .. } => other.map(Other::hint),
        };
        let error = Self::operation(error);
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}
