//! What is accepted and refused, limit by limit and scenario by scenario.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::disallowed_methods,
    reason = "tests fail loudly, and ask programs of the system"
)]

mod build;
mod differential;
mod framing;
mod fuzz_corpus;
mod headers;
mod limits;
mod names;
mod packing;
mod page;
mod property;
