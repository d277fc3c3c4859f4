//! Any command as a workspace plugin.

fn main() {}
