//! Feeds arbitrary bytes to the reader of an event; the checks are those of the corpus test.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| attest_receipt::fuzz_entry::event(bytes));
