//! The plugins that ship with the appliance, as functions over the plugin kit.
//!
//! Each module is a whole program behind `main_from`; none knows of jobs, leases or candidates.

pub mod exec_plugin;
pub mod ref_plugin;
