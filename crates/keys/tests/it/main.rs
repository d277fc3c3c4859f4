//! Signing keys and trust stores on a real file system: what is written, refused and left behind.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests fail loudly, and mount file systems of their own"
)]

mod left_over;
mod open;
mod signing;
mod store;
mod support;
mod together;
mod trouble;
