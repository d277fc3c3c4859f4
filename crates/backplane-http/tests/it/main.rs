//! The transport against scripted servers on this machine.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail loudly"
)]

mod answers;
mod cancel;
mod clock;
mod proxies;
mod redirects;
mod resume;
mod resume_file;
mod runtimes;
mod server;
mod support;
mod times;
mod trust;
mod uploads;
