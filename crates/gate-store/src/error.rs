//! Why a store refused an operation, or cannot work at all.

use std::path::PathBuf;

use forge_domain::{DomainError, EvidenceId, JobStatus, Refused};
use safe_fs::SafeFsError;

/// An operation that was refused, or a store that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The machine of the run refuses the step.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// No job has this id.
    #[error("there is no such job")]
    JobNotFound,
    /// The job has ended in another way.
    #[error("the job has ended as `{status}`")]
    JobTerminal {
        /// How it ended.
        status: JobStatus,
    },
    /// The job neither waits for another attempt nor has it failed.
    #[error("a job that is `{status}` cannot be retried")]
    NotRetryable {
        /// Its state.
        status: JobStatus,
    },
    /// The key stands for another request.
    #[error("the idempotency key was used for a request with another body")]
    IdempotencyConflict,
    /// Work and policy are for different things.
    #[error("the policy is for another kind of job or another repository")]
    PolicyMismatch,
    /// An id that must be new is taken.
    #[error("the id of a new {what} is taken")]
    IdTaken {
        /// What the id names.
        what: &'static str,
    },
    /// Another session of the slot is connected.
    #[error("the slot is connected already")]
    SlotBusy,
    /// The session is not the connected one of its slot.
    #[error("the session is not the connected one of its slot")]
    Fenced,
    /// A record breaks a rule.
    #[error("the evidence is not acceptable")]
    InvalidEvidence(#[source] DomainError),
    /// Another record has this id.
    #[error("evidence `{evidence_id}` is stored with another content")]
    EvidenceConflict {
        /// The id.
        evidence_id: EvidenceId,
    },
    /// The attempt would have more records than allowed.
    #[error(
        "an attempt may have at most {} records of evidence",
        forge_domain::MAX_RECORDS
    )]
    TooMuchEvidence,
    /// The cursor was not made by this store, or for another filter.
    #[error("the cursor is not one of this list")]
    InvalidCursor,
    /// The text names no usable place for a database.
    #[error("`{location}` is no usable database location: {reason}")]
    InvalidLocation {
        /// The text.
        location: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Owner, mode or links of the database are not private.
    #[error("database `{path}` is not private")]
    Insecure {
        /// The database.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: SafeFsError,
    },
    /// Another process serves this database.
    #[error("database `{path}` is owned by another running Gate; stop that one first")]
    AlreadyOwned {
        /// The database.
        path: PathBuf,
    },
    /// The file belongs to another program.
    #[error("database `{path}` {what}; name a new file in the configuration, it will be created")]
    ForeignDatabase {
        /// The database.
        path: PathBuf,
        /// What it is, as the rest of a sentence.
        what: &'static str,
    },
    /// A newer Gate has written the file.
    #[error(
        "database `{path}` has schema {found}, this Gate knows schemas up to {known}; run the newer Gate, or restore the backup that it made"
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
    #[error("stored data is inconsistent: {what}: {reason}")]
    Inconsistent {
        /// The row.
        what: String,
        /// What is wrong with it.
        reason: String,
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
    /// The store is closed.
    #[error("the store is closed")]
    Closed,
}

/// The word for a failed start that operators search their logs for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartupCode {
    /// Anything that no other code names.
    StartupFailed,
    /// The location cannot be used.
    InvalidDatabaseLocation,
    /// The files are not private.
    InsecureDatabase,
    /// The schema is another program's or too new.
    UnsupportedDatabase,
    /// SQLite cannot open the file.
    DatabaseOpenFailed,
    /// Another Gate serves the database.
    AlreadyOwned,
}

impl StartupCode {
    /// Returns the word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StartupFailed => "startup_failed",
            Self::InvalidDatabaseLocation => "invalid_database_location",
            Self::InsecureDatabase => "insecure_database",
            Self::UnsupportedDatabase => "unsupported_database",
            Self::DatabaseOpenFailed => "database_open_failed",
            Self::AlreadyOwned => "already_owned",
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

impl StoreError {
    /// Says what was being done when SQLite failed.
    pub(crate) fn while_doing(self, doing: &'static str) -> Self {
        match self {
            Self::Database { source, .. } => Self::Database { doing, source },
            other => other,
        }
    }

    /// Tells whether the caller asked for something that cannot be had; nothing has changed and
    /// the store goes on. Otherwise the store has failed.
    #[must_use]
    pub const fn is_refusal(&self) -> bool {
        match self {
            Self::Refused(_)
            | Self::JobNotFound
            | Self::JobTerminal { .. }
            | Self::NotRetryable { .. }
            | Self::IdempotencyConflict
            | Self::PolicyMismatch
            | Self::IdTaken { .. }
            | Self::SlotBusy
            | Self::Fenced
            | Self::InvalidEvidence(_)
            | Self::EvidenceConflict { .. }
            | Self::TooMuchEvidence
            | Self::InvalidCursor => true,
            Self::InvalidLocation { .. }
            | Self::Insecure { .. }
            | Self::AlreadyOwned { .. }
            | Self::ForeignDatabase { .. }
            | Self::NewerSchema { .. }
            | Self::Inconsistent { .. }
            | Self::Database { .. }
            | Self::NotCommitted { .. }
            | Self::Closed => false,
        }
    }

    /// Returns the code under which a failed start is logged.
    #[must_use]
    pub const fn startup_code(&self) -> StartupCode {
        match self {
            Self::InvalidLocation { .. } => StartupCode::InvalidDatabaseLocation,
            Self::Insecure { .. } => StartupCode::InsecureDatabase,
            Self::AlreadyOwned { .. } => StartupCode::AlreadyOwned,
            Self::ForeignDatabase { .. } | Self::NewerSchema { .. } => {
                StartupCode::UnsupportedDatabase
            }
            Self::Database { .. } => StartupCode::DatabaseOpenFailed,
            _ => StartupCode::StartupFailed,
        }
    }
}
