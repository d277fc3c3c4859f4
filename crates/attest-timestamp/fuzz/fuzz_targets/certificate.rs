//! The checks are those of the corpus test.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| attest_timestamp::fuzz_entry::certificate(bytes));
