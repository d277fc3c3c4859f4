//! Plugin packages in directories.
//!
//! [`read_directory`] and [`read_directory_with_metadata`] are for what becomes an archive: a link
//! or a special file anywhere is an error. [`load_directory`] is for a package that is used where it
//! lies: links that stay inside the package are followed, and each that does not disables the least
//! that it can. [`read_following_links`] reads by the rules of the load what is packed afterwards.
//!
//! Nothing is left out silently: hidden files are files, and what a reader does not return is an
//! error or a diagnostic. Only empty directories are no part of a package. All readers keep to the
//! limits of archives before they take bytes into memory.
//!
//! The directory must be left alone while it is read. A file that changes meanwhile is an error
//! where it shows, but this is no sandbox against somebody who changes the directory on purpose.

mod error;
mod links;
mod load;
mod places;
mod read;
mod tree;
mod walk;

pub use agent_plugin::{Options, Package};
pub use error::{LoadError, ReadError};
pub use load::{load_directory, load_directory_with_metadata};
pub use plugin_archive::{Files, Limits, Modes, Snapshot};
pub use read::{Followed, read_directory, read_directory_with_metadata, read_following_links};
