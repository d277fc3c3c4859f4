//! The program as a core meets it, as the authors of policies meet it, and under the real host.
#![expect(
    clippy::disallowed_methods,
    reason = "the tests start the program that they judge"
)]

#[cfg(test)]
mod check;
#[cfg(test)]
mod cli;
#[cfg(test)]
mod core;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod hosted;
#[cfg(test)]
mod protocol;
#[cfg(test)]
mod tutorial;
