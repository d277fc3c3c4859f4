//! Feeds arbitrary bytes to the reader of policies; the checks are those of the corpus test.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| attest_policy_plugin::fuzz_entry::policy(bytes));
