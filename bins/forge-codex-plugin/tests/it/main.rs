//! The plugin as its host sees it, with stand-ins for the Codex CLI and with the real one.
#![expect(
    clippy::disallowed_methods,
    reason = "the tests start the programs that they judge"
)]

#[cfg(test)]
mod answers;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod fake;
#[cfg(test)]
mod head;
#[cfg(test)]
mod provider;
#[cfg(test)]
mod real;
#[cfg(test)]
#[path = "../../../forge/tests/it/repository.rs"]
mod repository;
#[cfg(test)]
mod start;
#[cfg(test)]
mod suite;
#[cfg(test)]
#[path = "../../../forge-exec-plugin/tests/it/support.rs"]
mod support;

#[cfg(test)]
const PROGRAM: &str = env!("CARGO_BIN_EXE_forge-codex-plugin");
