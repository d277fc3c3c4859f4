//! Feeds arbitrary bytes to a plugin session as if a core had written them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| attest_plugin_protocol::fuzz_entry::plugin(bytes));
