//! The real Worker against a scripted Gate, with a real git, real plugins and real checks.
#![expect(
    clippy::disallowed_methods,
    reason = "the tests start the program that they judge and wait in real time"
)]

#[cfg(test)]
mod activity;
#[cfg(test)]
mod bed;
#[cfg(test)]
mod checks;
#[cfg(test)]
mod cli;
#[cfg(test)]
mod coding;
#[cfg(test)]
mod control;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod gate;
#[cfg(test)]
mod link;
#[cfg(test)]
mod plugins;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod shutdown;
#[cfg(test)]
mod text;
#[cfg(test)]
mod tls;
