//! The plugins that ship with the appliance, as functions over the plugin kit.
//!
//! Each public module is a whole program behind `main_from`; none knows of jobs, leases or
//! candidates.

pub mod codex_plugin;
pub mod exec_plugin;
mod executor;
pub mod ref_plugin;
mod report;
