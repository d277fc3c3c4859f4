//! Tries arbitrary bytes as every bounded type.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bounded::fuzz_entry::texts(bytes));
