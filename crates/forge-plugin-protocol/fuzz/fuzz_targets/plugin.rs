//! Feeds arbitrary bytes to a plugin session as if a host had written them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| forge_plugin_protocol::fuzz_entry::plugin(bytes));
