//! Feeds arbitrary bytes to the reader of policy files; the checks are those of the corpus test.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| attest_verify::fuzz_entry::policy(bytes));
