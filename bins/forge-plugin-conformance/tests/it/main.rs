//! The tool against plugins that are right, plugins that break one rule each, and things that are
//! no plugins at all.

#[cfg(test)]
mod cli;
#[cfg(test)]
mod example;
#[cfg(test)]
mod mutants;
#[cfg(test)]
mod mutation;
#[cfg(test)]
mod no_plugin;
#[cfg(test)]
mod support;
#[cfg(test)]
mod workspace;
