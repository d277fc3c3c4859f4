//! The workspace's own checks.

fn main() {}
