//! Packages in real directories, with real links, FIFOs and sockets.
#![expect(clippy::unwrap_used, reason = "tests fail loudly")]

mod broken;
mod escapes;
mod follow;
mod limits;
mod property;
#[cfg(target_os = "linux")]
mod race;
mod strict;
mod tree;
