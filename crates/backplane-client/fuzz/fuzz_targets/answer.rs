//! The checks are those of the corpus test.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| backplane_client::fuzz_entry::answer(bytes));
