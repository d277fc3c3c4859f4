//! The plugin as its host sees it: a process, its frames, its end, and what is left of it.

#[cfg(test)]
mod answers;
#[cfg(test)]
mod command;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod support;

#[cfg(test)]
const PROGRAM: &str = env!("CARGO_BIN_EXE_forge-exec-plugin");
