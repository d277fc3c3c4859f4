//! The registry from outside.

#[cfg(test)]
mod config;
