//! The client against transports in memory.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail loudly")]

mod answers;
mod attempts;
mod downloads;
mod fuzz_corpus;
mod redirects;
mod refusals;
mod requests;
mod secrets;
mod support;
mod uploads;
