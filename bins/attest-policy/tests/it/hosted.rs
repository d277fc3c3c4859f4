//! Under the real host.
