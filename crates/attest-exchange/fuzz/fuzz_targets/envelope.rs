#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| attest_exchange::fuzz_entry::envelope(bytes));
