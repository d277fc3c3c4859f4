//! Feeds arbitrary bytes to the reader of a pipeline; the checks are those of the corpus test.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| attest_receipt::fuzz_entry::pipeline(bytes));
