//! Feeds arbitrary bytes to every reader of the link.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gate_link::fuzz_entry::decode(bytes));
