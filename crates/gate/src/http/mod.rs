//! The HTTP face of the Gate: one file for each resource, the middleware in one.

mod answer;
mod health;
mod jobs;
mod list;
mod metrics;
mod middleware;
mod pools;
mod proof;
mod router;
mod submit;
mod views;
mod workers;

pub(crate) use answer::ApiError;
pub use router::router;
