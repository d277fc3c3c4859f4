//! The HTTP face of the Gate: one file for each resource, the middleware in one.

mod answer;
mod body;
mod health;
mod jobs;
mod list;
mod metrics;
mod middleware;
mod origin;
mod pools;
mod proof;
mod router;
mod submit;
mod views;
mod workers;

pub(crate) use answer::ApiError;
pub use origin::HostRules;
pub use router::router;
