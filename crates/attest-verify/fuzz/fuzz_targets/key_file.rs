//! Feeds arbitrary bytes to the readers of keys and certificates; the checks are those of the corpus test.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| attest_verify::trust::fuzz_entry::key_file(bytes));
