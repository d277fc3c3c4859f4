//! What a store promises, tried against the trait; and what the SQLite store adds to it.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail loudly"
)]

mod backup;
mod crash;
mod files;
mod fixture;
mod recovery;
mod scenarios;
mod schema;
mod sql;
mod suite;
