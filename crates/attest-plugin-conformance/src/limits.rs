//! The numbers of the protocol, written down again, and how long the suite waits.

use std::time::Duration;

/// Bytes of a message without its line feed.
pub(crate) const MESSAGE_BYTES: usize = 1_048_576;
/// Entries of `findings`.
pub(crate) const FINDINGS: usize = 256;
/// Bytes of `rule` and of `resource`.
pub(crate) const NAME_BYTES: usize = 256;
/// Bytes of a finding's `message`.
pub(crate) const FINDING_MESSAGE_BYTES: usize = 4_096;
/// Bytes of an annotation as a receipt stores it.
pub(crate) const ANNOTATION_BYTES: usize = 65_536;
/// Levels of an annotation.
pub(crate) const ANNOTATION_DEPTH: usize = 64;
/// Bytes of `version` in `hello_ok`.
pub(crate) const VERSION_BYTES: usize = 256;

/// How long the suite waits for a plugin.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For the answer to `hello` and to each request: `timeout_secs` of a declaration.
    pub answer: Duration,
    /// For the end after `shutdown`, after the end of the input and after SIGTERM.
    pub grace: Duration,
    /// How long a plugin is watched that has nothing to say.
    pub quiet: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(30),
            grace: Duration::from_secs(5),
            quiet: Duration::from_millis(300),
        }
    }
}
