//! The recorded messages, one of each kind.

use gate_link::{GateMessage, WorkerMessage};

const WIRE: &str = include_str!("../data/wire.ndjson");
/// What job control adds.
const CONTROL: &str = include_str!("../data/control.ndjson");

/// All recorded frames, each with its line feed.
pub(crate) fn frames() -> Vec<String> {
    let lines = WIRE.lines().chain(CONTROL.lines());
    lines.map(|line| format!("{line}\n")).collect()
}

/// Whether a Worker sends it.
pub(crate) fn is_from_worker(frame: &str) -> bool {
    [
        "heartbeat",
        "activity",
        "evidence",
        "result",
        "attach",
        "ready",
        "decline",
        "pong",
        "cancelled",
    ]
    .iter()
    .any(|kind| frame.contains(&format!("\"type\":\"{kind}\"")))
}

/// Reads a frame in its own direction and writes it again.
pub(crate) fn rewrite(frame: &[u8], from_worker: bool) -> Result<Vec<u8>, gate_link::LinkError> {
    if from_worker {
        WorkerMessage::decode(frame)?.encode()
    } else {
        match GateMessage::decode(frame)? {
            GateMessage::UnacceptableLease(lease) => {
                Err(gate_link::LinkError::UnknownType(lease.reason))
            }
            other => other.encode(),
        }
    }
}
