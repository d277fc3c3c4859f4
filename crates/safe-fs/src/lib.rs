//! Files and folders whose owner, mode and links are checked before they are trusted.
//!
//! What is private belongs to the effective user, gives nobody else any access, and is reached
//! without a symbolic link in any component of its path. A file or folder that breaks this is
//! refused with the reason; nothing here repairs the mode or owner of what it found.
//!
//! All functions block; asynchronous callers put them on a blocking thread. Nothing here starts a
//! process, reads the environment or follows a link while it removes a tree.

mod atomic;
mod error;
mod left_over;
mod lock;
mod private;
mod read;
mod remove;
mod shell;
mod target;
mod temp_dir;
mod walk;

pub use atomic::write_atomic;
pub use error::SafeFsError;
pub use left_over::sweep_left_over;
pub use lock::{LockGuard, lock_exclusive, lock_named};
pub use private::{check_private_dir, check_private_file, create_private_file, private_dir};
pub use read::{read_bounded, read_private_bounded};
pub use remove::remove_tree_no_follow;
pub use shell::shell_word;
pub use target::{kind, writable_target, write_target};
pub use temp_dir::PrivateTempDir;
