//! The documents of attest, to the byte: receipts, pipelines, manifests, ledger events, capsules.
//!
//! Everything here is a function of bytes: no file, no clock, no key, no process. A document is
//! read through [`yaml::parse`] into a tree that keeps nothing implicit, then taken apart by name;
//! what is written is a function of the value alone, so that two readers of one receipt hash and
//! verify the same bytes.
//!
//! | module | document | identity |
//! |---|---|---|
//! | [`receipt`] | what a run did | [`receipt::Receipt::signing_bytes`] |
//! | [`pipeline`] | what a run is asked to do | [`pipeline::Pipeline::hash`] |
//! | [`manifest`] | the files behind one hash | [`manifest::Manifest::hash`] |
//! | [`ledger`] | which step followed from which | [`ledger::Event::content`] |
//! | [`capsule`] | a pinned container | [`capsule::Capsule::hash`] |
//!
//! [`names`] and [`declared`] say what may name a step and what a step may declare; pipelines and
//! receipts are judged by the same rules.

pub mod capsule;
pub mod declared;
pub mod encode;
#[doc(hidden)]
pub mod fuzz_entry;
pub mod ledger;
pub mod manifest;
pub mod names;
pub mod pipeline;
pub mod receipt;
pub mod time;
pub mod yaml;

mod graph;
mod nodes;
mod text;

pub use text::{is_hex, is_lower_hex_64};
