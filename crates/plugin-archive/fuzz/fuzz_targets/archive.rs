//! Feeds arbitrary bytes to the reader of archives; the checks are those of the corpus test.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plugin_archive::fuzz_entry::archive(bytes));
