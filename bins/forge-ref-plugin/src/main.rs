//! The reference text plugin.

fn main() {}
