//! The HTTP face of the registry: one file for each resource, the middleware in one.

mod access;
mod answer;
mod artifacts;
mod body;
mod bytes;
mod catalog;
mod health;
mod installations;
mod middleware;
mod params;
mod query;
mod range;
mod receipts;
mod releases;
mod router;
mod whoami;

pub use router::{PREFIX, router};
