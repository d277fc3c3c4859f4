//! A whole Gate with scripted clients and Workers.

#[cfg(test)]
mod activity;
#[cfg(test)]
mod broken_store;
#[cfg(test)]
mod clock_steps;
#[cfg(test)]
mod config;
#[cfg(test)]
mod control;
#[cfg(test)]
mod fuzz_api;
#[cfg(test)]
mod http;
#[cfg(test)]
mod link;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod openmetrics;
#[cfg(test)]
mod pools;
#[cfg(test)]
mod program;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod scenarios;
#[cfg(test)]
mod server;
#[cfg(test)]
mod slow_clients;
#[cfg(test)]
mod support;
#[cfg(test)]
mod why;
