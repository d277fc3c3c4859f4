//! A fresh workspace of a base commit, and the candidate commit made of it, by a hardened git.
//!
//! The registered repository keeps its branches, index, work tree and configuration as they are:
//! all that is written there are the objects and the ref of a candidate. Each attempt has a folder
//! with the files of its base, and a git directory of its own *outside* that folder, which is all
//! that git reads here. What a plugin leaves in the folder (hooks, configuration, filters, an
//! exchanged `.git`) is data: nothing in this crate runs it.
//!
//! The steps of an attempt:
//!
//! 1. [`Git::check_base`] proves that the base is a commit on the named branch;
//! 2. [`Git::prepare`] makes the [`Workspace`]; this may be done ahead of time;
//! 3. a plugin edits the files;
//! 4. [`Workspace::snapshot`] records what it left as a tree;
//! 5. after the checks, [`Workspace::verify_unchanged`] proves that they changed nothing;
//! 6. [`Workspace::draft`] makes the commit, which may be done beside the proof, and
//!    [`Workspace::publish`] the ref of the candidate;
//! 7. [`Workspace::remove`] removes the folders. The ref keeps the candidate.
//!
//! What this crate does not promise: a plugin runs with the rights of the Worker's user and can
//! reach the repository by its path. The separation is of authority, it is no sandbox.

mod base;
mod candidate;
mod error;
mod git;
mod head;
mod index;
mod inspect;
mod plugin_git;
mod private_git;
mod quarantine;
mod repository;
mod snapshot;
mod submodules;
mod untouched;
mod workspace;

pub use base::Base;
pub use candidate::{CandidateRef, Draft, Identity};
pub use error::{GitError, WorkspaceFault};
pub use git::{Git, GitLimits};
pub use repository::Repository;
pub use snapshot::Snapshot;
pub use workspace::{REMOVED_PREFIX, WORKTREE_PREFIX, Workspace};
