//! Feeds arbitrary bytes to the reader of SKILL.md; the checks are those of the corpus test.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| agent_plugin::fuzz_entry::skill(bytes));
