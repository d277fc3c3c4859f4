//! The numbers of the protocol. Sizes are bytes of UTF-8; each number itself passes, one more fails.

use std::time::Duration;

/// The protocol's major version: `v` of every message (seed 6, 11).
pub const MAJOR: u32 = 1;
/// Longest message, its line feed not counted (seed 4).
pub const MESSAGE_BYTES: usize = 1_048_576;
/// Most findings of one verdict (seed 6.4).
pub const FINDINGS: usize = 256;
/// Longest `rule` of a finding (seed 12).
pub const RULE_BYTES: usize = 256;
/// Longest `resource` of a finding (seed 12).
pub const RESOURCE_BYTES: usize = 256;
/// Longest `message` of a finding (ours).
pub const FINDING_MESSAGE_BYTES: usize = 4_096;
/// Longest annotation, counted on its compact form with sorted keys (seed 6.4; the form is ours).
pub const ANNOTATION_BYTES: usize = 65_536;
/// Deepest annotation, the outermost object included (ours).
pub const ANNOTATION_DEPTH: usize = 64;
/// Most that a plugin sees of one output stream of a step (seed 6.3).
pub const OUTPUT_BYTES: usize = 65_536;
/// Longest `version` of a plugin (ours).
pub const VERSION_BYTES: usize = 256;

/// From `shutdown` to SIGTERM (seed 5).
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);
/// From SIGTERM to SIGKILL (seed 5).
pub const TERMINATE_GRACE: Duration = Duration::from_secs(5);
/// From the first sign that a plugin ended too early to the failure, so that its exit code can be
/// told, or an answer that it left in the pipe can be read (ours).
pub const END_GRACE: Duration = Duration::from_millis(250);
