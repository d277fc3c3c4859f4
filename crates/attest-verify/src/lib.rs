//! Judges receipts in memory: nothing here opens a file, starts a process or asks a network.

pub mod trust;
