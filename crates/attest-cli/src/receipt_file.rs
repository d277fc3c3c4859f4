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
    },
    /// It is a document of another kind, or a broken receipt.
    #[error("`{}` is not a receipt", path.display())]
    NotAReceipt {
        /// The file.
        path: PathBuf,
        /// The first difference.
        #[source]
        source: SchemaError,
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

/// Takes the bytes of a receipt apart.
pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<Receipt, FileError> {
    let path = path.to_owned();
    receipt::read(bytes).map_err(|error| match error {
        ReadError::Unreadable(source) => FileError::Document { path, source },
        ReadError::Schema(source) => FileError::NotAReceipt { path, source },
    })
}

impl From<FileError> for CliError {
    /// That a document is no receipt is an answer; all else is a failed operation.
    fn from(error: FileError) -> Self {
        let hint = match &error {
            FileError::NotAReceipt { .. } => return Self::no(error),
            FileError::Read { fault, .. } => match fault {
                Fault::NotAFile => {
                    Some("a receipt is a regular file; save what comes through a pipe first")
                }
                Fault::Missing => Some("`attest run` prints the path of the receipt that it wrote"),
                Fault::TooLong | Fault::Refused => None,
            },
            FileError::Document { .. } => None,
        };
        let error = Self::operation(error);
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}
