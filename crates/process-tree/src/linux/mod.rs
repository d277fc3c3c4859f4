//! The wrapper and its host: exact clean-up by a child subreaper.

mod control;
pub(crate) mod descendants;
pub(crate) mod host;
pub(crate) mod wrapper;
