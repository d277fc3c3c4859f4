//! The suite against good plugins and against every fault that it is to find.

#[cfg(test)]
mod good;
#[cfg(test)]
mod mutants;
#[cfg(test)]
mod support;
