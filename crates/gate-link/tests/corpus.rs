//! Every file of the corpus is one message, named after the rule that it shows.
//! `accept` must be read and written back to the same meaning, `reject` must be
//! refused, `unacceptable` holds leases that a Worker answers with `invalid_task`.

#![expect(
    clippy::needless_pass_by_value,
    reason = "the harness hands over the bytes"
)]

use std::path::Path;

use gate_link::{GateMessage, WorkerMessage};

type Outcome = datatest_stable::Result<()>;

fn from_worker_accepted(_: &Path, message: Vec<u8>) -> Outcome {
    let read = WorkerMessage::decode(&message)?;
    assert_eq!(WorkerMessage::decode(&read.encode()?)?, read);
    Ok(())
}

fn from_gate_accepted(_: &Path, message: Vec<u8>) -> Outcome {
    let read = GateMessage::decode(&message)?;
    assert!(
        !matches!(read, GateMessage::UnacceptableLease(_)),
        "{read:?}"
    );
    assert_eq!(GateMessage::decode(&read.encode()?)?, read);
    Ok(())
}

fn from_worker_rejected(_: &Path, message: Vec<u8>) -> Outcome {
    match WorkerMessage::decode(&message) {
        Ok(read) => Err(format!("accepted as {read:?}").into()),
        Err(_) => Ok(()),
    }
}

fn from_gate_rejected(_: &Path, message: Vec<u8>) -> Outcome {
    match GateMessage::decode(&message) {
        Ok(read) => Err(format!("accepted as {read:?}").into()),
        Err(_) => Ok(()),
    }
}

fn lease_unacceptable(_: &Path, message: Vec<u8>) -> Outcome {
    match GateMessage::decode(&message)? {
        GateMessage::UnacceptableLease(lease) if !lease.reason.is_empty() => Ok(()),
        other => Err(format!("read as {other:?}").into()),
    }
}

datatest_stable::harness! {
    { test = from_worker_accepted, root = "tests/data/accept/from-worker", pattern = r"\.json$" },
    { test = from_gate_accepted, root = "tests/data/accept/from-gate", pattern = r"\.json$" },
    { test = from_worker_rejected, root = "tests/data/reject/from-worker", pattern = r"\.json$" },
    { test = from_gate_rejected, root = "tests/data/reject/from-gate", pattern = r"\.json$" },
    { test = lease_unacceptable, root = "tests/data/unacceptable/from-gate", pattern = r"\.json$" },
}
