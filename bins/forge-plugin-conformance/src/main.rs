//! Tests a forge plugin executable.

fn main() {}
