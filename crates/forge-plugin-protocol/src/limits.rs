//! The numbers of the protocol. Sizes are bytes of UTF-8.

use std::time::Duration;

/// The only protocol version.
pub const VERSION: &str = "v1";

/// Longest frame, its line feed not counted: this many bytes pass, one more fails.
pub const FRAME_BYTES: usize = 1_048_576;
/// Most progress frames of one session.
pub const PROGRESS_FRAMES: u32 = 128;
/// Longest `input`, `output` and `instruction`.
pub const TEXT_BYTES: usize = 65_536;
/// Longest `text` of a progress frame.
pub const PROGRESS_TEXT_BYTES: usize = 1_024;
/// Longest `commit_subject`.
pub const COMMIT_SUBJECT_BYTES: usize = 256;

/// Longest `summary` of a report.
pub const REPORT_SUMMARY_BYTES: usize = 1_024;
/// Most `changes` of a report; at least one is needed.
pub const REPORT_CHANGES: usize = 12;
/// Longest single change of a report.
pub const REPORT_CHANGE_BYTES: usize = 256;

/// Longest `workspace` path.
pub const WORKSPACE_BYTES: usize = 4_096;
/// Largest `timeout_ms`: one day.
pub const TIMEOUT_MS: u32 = 86_400_000;

/// Time from the terminal frame to end of output and exit.
pub const CLOSE_WINDOW: Duration = Duration::from_millis(250);
/// Time a plugin gets to finish by itself after `cancel`.
pub const DRAIN_WINDOW: Duration = Duration::from_millis(250);
