//! The control server.

fn main() {}
