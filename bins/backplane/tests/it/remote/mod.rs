//! The commands that ask a registry, against one that runs.

mod arguments;
mod credentials;
mod journey;
mod killed;
mod scripted;
mod service;
mod tampered;
mod unheard;
