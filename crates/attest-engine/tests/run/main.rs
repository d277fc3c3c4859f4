//! Pipelines with real commands.

mod cache;
mod commands;
mod faults;
mod hooks;
mod order;
mod receipt;
mod support;
