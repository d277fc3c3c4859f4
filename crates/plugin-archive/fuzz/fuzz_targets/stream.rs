//! Feeds arbitrary bytes to the reader as the stream of an archive; the checks are those of the
//! corpus test.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plugin_archive::fuzz_entry::stream(bytes));
