//! Feeds arbitrary bytes to the reader of declarations; the checks are those of the corpus test.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| attest_plugin_host::fuzz_entry::declarations(bytes));
