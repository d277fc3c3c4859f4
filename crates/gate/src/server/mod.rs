//! The sockets of the Gate, below HTTP.

mod crowd;
pub(crate) mod deadlines;
pub(crate) mod listener;
pub(crate) mod socket;
