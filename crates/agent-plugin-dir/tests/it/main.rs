//! Packages in real directories, with real links, FIFOs and sockets.
#![expect(clippy::unwrap_used, reason = "tests fail loudly")]

mod broken;
mod escapes;
mod follow;
mod limits;
mod property;
mod strict;
mod tree;
