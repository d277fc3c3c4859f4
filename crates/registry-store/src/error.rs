//! Why a registry refuses something, or cannot go on.

use std::path::PathBuf;

use agent_plugin::{Diagnostic, Severity};
use digest_text::Sha256Text;
use plugin_archive::{ArchiveError, LimitName, Rule};
use safe_fs::SafeFsError;

use crate::{ChannelName, ReleaseId};

/// What is sent to a client as the code of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireCode {
    /// A value is not as it must be.
    InvalidRequest,
    /// There is no such thing.
    NotFound,
    /// Something else is there already.
    Conflict,
    /// The bytes have another digest than they were announced with.
    IntegrityMismatch,
    /// The release may not be chosen any more; `gone` where it was asked for by its channel.
    ReleaseYanked {
        /// Whether the answer is "gone" rather than "conflict".
        gone: bool,
    },
    /// Too large or too many.
    LimitExceeded,
    /// The bytes are no package.
    InvalidPackage,
    /// The receipt is none, or not of this artifact.
    ReceiptMismatch,
    /// The registry is at fault.
    Internal,
    /// The registry has too much to do, or is stopping.
    TemporarilyUnavailable,
}

impl WireCode {
    /// Returns the word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::IntegrityMismatch => "integrity_mismatch",
            Self::ReleaseYanked { .. } => "release_yanked",
            Self::LimitExceeded => "limit_exceeded",
            Self::InvalidPackage => "invalid_package",
            Self::ReceiptMismatch => "receipt_mismatch",
            Self::Internal => "internal",
            Self::TemporarilyUnavailable => "temporarily_unavailable",
        }
    }

    /// Returns the status of HTTP that goes with it.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::InvalidRequest => 400,
            Self::NotFound => 404,
            Self::Conflict | Self::IntegrityMismatch | Self::ReleaseYanked { gone: false } => 409,
            Self::ReleaseYanked { gone: true } => 410,
            Self::LimitExceeded => 413,
            Self::InvalidPackage | Self::ReceiptMismatch => 422,
            Self::Internal => 500,
            Self::TemporarilyUnavailable => 503,
        }
    }

    /// Tells whether the same request may succeed later.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::TemporarilyUnavailable)
    }
}

/// An operation that was refused, or a registry that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A value is not as it must be.
    #[error("`{what}` {rule}")]
    Invalid {
        /// Which one, by its name on the wire.
        what: &'static str,
        /// What it must be.
        rule: &'static str,
    },
    /// The cursor was not made for this list.
    #[error("the cursor is not one of this list")]
    InvalidCursor,
    /// There is no such thing.
    #[error("there is no such {what}")]
    NotFound {
        /// Which kind.
        what: &'static str,
    },
    /// The channel does not point where the caller believes, or where it may be moved from.
    #[error("channel `{channel}` points at {}, not at {expected}", found.map_or_else(|| "no release".to_owned(), |found| found.to_string()))]
    ChannelMoved {
        /// The channel.
        channel: ChannelName,
        /// Where it points.
        found: Option<ReleaseId>,
        /// Where it was believed to point.
        expected: ReleaseId,
    },
    /// Another release than the one that is published again is in the channel.
    #[error(
        "the release was published before, and channel `{channel}` points at {found} now; promoting moves it"
    )]
    ChannelTaken {
        /// The channel.
        channel: ChannelName,
        /// Where it points.
        found: ReleaseId,
    },
    /// The artifact has another receipt.
    #[error("the artifact has another receipt already")]
    ReceiptExists,
    /// The installation is another plugin's.
    #[error("the installation is one of another plugin")]
    InstallationTaken,
    /// The release may not be chosen any more.
    #[error("release {release_id} is yanked")]
    Yanked {
        /// The release.
        release_id: ReleaseId,
        /// Whether it was asked for by a channel.
        gone: bool,
    },
    /// The bytes have another digest.
    #[error("the bytes are {found}, not {expected}")]
    IntegrityMismatch {
        /// What they were announced as.
        expected: Sha256Text,
        /// What they are.
        found: Sha256Text,
    },
    /// The bytes are no archive.
    #[error("{0}")]
    Archive(#[source] ArchiveError),
    /// What is in the archive is no package.
    #[error("{}", rejection(.0))]
    Rejected(Vec<Diagnostic>),
    /// Something is longer than is kept.
    #[error("the {what} is longer than {limit} bytes")]
    TooLong {
        /// What.
        what: &'static str,
        /// How long it may be.
        limit: usize,
    },
    /// Too many of something.
    #[error("more than {limit} {what} are not remembered")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there may be.
        limit: u64,
    },
    /// The receipt is none, or not of this artifact.
    #[error("{reason}")]
    ReceiptMismatch {
        /// What is wrong.
        reason: String,
    },
    /// The bytes that are kept are not those that came.
    #[error("{what} {digest} is damaged: {reason}")]
    Damaged {
        /// An artifact, or the receipt of one.
        what: &'static str,
        /// The artifact.
        digest: Sha256Text,
        /// What is wrong.
        reason: String,
    },
    /// More waits than is taken.
    #[error("the registry has too much to do")]
    Busy,
    /// The registry is stopping.
    #[error("the registry is closed")]
    Closed,
    /// The folder cannot be used.
    #[error("`{path}` cannot hold a registry: {reason}")]
    InvalidRoot {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        reason: &'static str,
    },
    /// The folder or what is in it is not private, or cannot be opened.
    #[error("`{path}` cannot be used")]
    Insecure {
        /// Which one.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: SafeFsError,
    },
    /// Another process serves this folder.
    #[error("`{path}` is served by another running registry; stop that one first")]
    AlreadyOwned {
        /// The folder.
        path: PathBuf,
    },
    /// The file belongs to another program.
    #[error("database `{path}` {what}")]
    ForeignDatabase {
        /// The database.
        path: PathBuf,
        /// What it is, as the rest of a sentence.
        what: &'static str,
    },
    /// A newer registry has written the file.
    #[error(
        "database `{path}` has schema {found}, this registry knows schemas up to {known}; run the newer one, or restore the copy that it made"
    )]
    NewerSchema {
        /// The database.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The newest schema that is known.
        known: i64,
    },
    /// Stored rows do not fit together.
    #[error("stored data is inconsistent: {what}")]
    Inconsistent {
        /// What is wrong.
        what: &'static str,
    },
    /// SQLite failed.
    #[error("failed to {doing}")]
    Database {
        /// What was being done.
        doing: &'static str,
        /// What SQLite says.
        #[source]
        source: rusqlite::Error,
    },
    /// The operation was part of a transaction that could not be committed.
    #[error("failed to commit: {reason}")]
    NotCommitted {
        /// What SQLite says.
        reason: String,
    },
    /// The place of the artifacts failed.
    #[error("failed to {doing} in the place of the artifacts")]
    Artifacts {
        /// What was being done.
        doing: &'static str,
        /// What the place says.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The service that keeps the artifacts does not answer, or not as it should.
    #[error("failed to {doing} in the place of the artifacts, which may pass")]
    ArtifactsAway {
        /// What was being done.
        doing: &'static str,
        /// What is wrong there.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl StoreError {
    /// Returns what a client is told.
    #[must_use]
    pub const fn wire(&self) -> WireCode {
        match self {
            Self::Invalid { .. } | Self::InvalidCursor => WireCode::InvalidRequest,
            Self::NotFound { .. } => WireCode::NotFound,
            Self::ChannelMoved { .. }
            | Self::ChannelTaken { .. }
            | Self::ReceiptExists
            | Self::InstallationTaken => WireCode::Conflict,
            Self::Yanked { gone, .. } => WireCode::ReleaseYanked { gone: *gone },
            Self::IntegrityMismatch { .. } => WireCode::IntegrityMismatch,
            Self::Archive(ArchiveError {
                rule:
                    Rule::Limit {
                        name: LimitName::ArchiveBytes,
                        ..
                    },
                ..
            })
            | Self::TooLong { .. }
            | Self::TooMany { .. } => WireCode::LimitExceeded,
            Self::Archive(_) | Self::Rejected(_) => WireCode::InvalidPackage,
            Self::ReceiptMismatch { .. } => WireCode::ReceiptMismatch,
            Self::Busy | Self::Closed | Self::ArtifactsAway { .. } => {
                WireCode::TemporarilyUnavailable
            }
            Self::Damaged { .. }
            | Self::InvalidRoot { .. }
            | Self::Insecure { .. }
            | Self::AlreadyOwned { .. }
            | Self::ForeignDatabase { .. }
            | Self::NewerSchema { .. }
            | Self::Inconsistent { .. }
            | Self::Database { .. }
            | Self::NotCommitted { .. }
            | Self::Artifacts { .. } => WireCode::Internal,
        }
    }

    /// Tells whether the caller asked for something that cannot be had: nothing has changed, and
    /// the text is fit for the caller. Otherwise what is behind it belongs into the log.
    #[must_use]
    pub const fn is_refusal(&self) -> bool {
        !matches!(self.wire(), WireCode::Internal) && !matches!(self, Self::ArtifactsAway { .. })
    }

    /// Says what was being done when SQLite failed.
    pub(crate) fn while_doing(self, doing: &'static str) -> Self {
        match self {
            Self::Database { source, .. } => Self::Database { doing, source },
            other => other,
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(source: rusqlite::Error) -> Self {
        Self::Database {
            doing: "work on the database",
            source,
        }
    }
}

/// The first error of a package that was rejected, and how many more there are.
fn rejection(found: &[Diagnostic]) -> String {
    let mut errors = found
        .iter()
        .filter(|found| found.severity == Severity::Error);
    let Some(first) = errors.next() else {
        return "the package is rejected".to_owned();
    };
    let Diagnostic {
        path,
        message,
        code,
        ..
    } = first;
    let rest = match errors.count() {
        0 => String::new(),
        more => format!("; {more} more"),
    };
    format!("`{path}`: {message} ({}){rest}", code.as_str())
}
