//! The real `backplane`, judged by what it prints, the code that it ends with and the files it leaves.
#![expect(
    clippy::disallowed_methods,
    reason = "the tests start the program that they judge"
)]

#[cfg(test)]
mod bed;
#[cfg(test)]
#[path = "../../../../crates/plugin-archive/tests/archives/build.rs"]
#[expect(
    dead_code,
    clippy::cast_possible_truncation,
    reason = "archives are made here, and judged there"
)]
mod build;
#[cfg(test)]
mod cli;
#[cfg(test)]
mod diff;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod init;
#[cfg(test)]
mod inspect;
#[cfg(test)]
mod killed;
#[cfg(test)]
mod pack;
#[cfg(test)]
mod remote;
#[cfg(test)]
mod tutorial;
#[cfg(test)]
mod unpack;
