//! Feeds arbitrary bytes to the reader of private keys; the checks are those of the corpus test.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| keys::fuzz_entry::private_key(bytes));
