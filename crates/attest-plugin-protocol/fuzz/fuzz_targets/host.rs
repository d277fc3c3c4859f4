//! Feeds arbitrary bytes to a host session as if a plugin had written them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    attest_plugin_protocol::fuzz_entry::host(std::time::Instant::now(), bytes);
});
