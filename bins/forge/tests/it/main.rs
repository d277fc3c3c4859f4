//! The appliance through its one binary: a Gate, Workers and plugins as real processes over real
//! sockets, repositories and databases.
#![expect(
    clippy::disallowed_methods,
    reason = "the tests start the programs that they judge and wait in real time"
)]

#[cfg(test)]
mod activity;
#[cfg(test)]
mod appliance;
#[cfg(test)]
mod clocks;
#[cfg(test)]
mod codex;
#[cfg(test)]
mod control;
#[cfg(test)]
mod disk_full;
#[cfg(test)]
mod doctor;
#[cfg(test)]
mod endurance;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod half_open;
#[cfg(test)]
mod main_job;
#[cfg(test)]
mod operator;
#[cfg(test)]
mod package_receipt;
#[cfg(test)]
mod privacy;
#[cfg(test)]
#[path = "../../../forge-codex-plugin/tests/it/provider.rs"]
mod provider;
#[cfg(test)]
mod reconnect;
#[cfg(test)]
mod relay;
#[cfg(test)]
mod repository;
#[cfg(test)]
mod security;

#[cfg(test)]
const PROGRAM: &str = appliance::FORGE;
