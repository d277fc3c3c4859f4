//! The store as a whole: real SQLite and real files, or objects in memory or in a bucket.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail loudly"
)]

mod bucket;
mod catalog;
mod crash;
mod damage;
mod files;
mod fixture;
mod model;
mod root;
mod suite;
