//! The sockets of the Gate, below HTTP.

pub(crate) mod deadlines;
pub(crate) mod listener;
mod socket;
