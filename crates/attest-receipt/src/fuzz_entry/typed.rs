//! What must hold for whatever bytes are a receipt, an event, a pipeline or a capsule.

use std::fmt::Display;

use crate::capsule::Capsule;
use crate::ledger::Event;
use crate::pipeline::Pipeline;
use crate::receipt;

/// Longest input, so that what is written from it is within the readers' own limits.
const LONGEST: usize = 1 << 16;

/// What no message is longer than: some shortened names, and the words around them.
const LONGEST_MESSAGE: usize = 1 << 16;

/// Reads a receipt, judges it, and reads what is written of it.
pub fn receipt(bytes: &[u8]) {
    let Some(read) = accepted(bytes, receipt::read) else {
        return;
    };
    for problem in read.problems() {
        check_message(&problem);
    }
    let signing = read.signing_bytes();
    let written = [
        read.to_yaml().unwrap_or_default().into_bytes(),
        strict_json::to_line(&read),
    ];
    for written in written {
        let again = receipt::read(&written);
        assert!(
            again.is_ok_and(|again| again == read && again.signing_bytes() == signing),
            "a receipt that was written is the receipt that was read"
        );
    }
    let mut reordered = read;
    reordered.steps.reverse();
    reordered.causal_events.reverse();
    let names = reordered.steps.iter().map(|step| &step.name);
    let distinct = names.collect::<std::collections::BTreeSet<_>>().len();
    assert!(
        distinct < reordered.steps.len() || reordered.signing_bytes() == signing,
        "the order of steps and events is not signed"
    );
}

/// Reads an event of the ledger, and what is written of it.
pub fn event(bytes: &[u8]) {
    let Some(read) = accepted(bytes, Event::read) else {
        return;
    };
    let again = Event::read(&strict_json::to_line(&read));
    assert!(
        again.is_ok_and(|again| again == read && again.content() == read.content()),
        "an event that was written is the event that was read"
    );
}

/// Reads a pipeline, orders it, and reads its canonical form.
pub fn pipeline(bytes: &[u8]) {
    let Some(read) = accepted(bytes, Pipeline::read) else {
        return;
    };
    let order = read.order();
    assert_eq!(order.len(), read.steps.len(), "each step has its turn");
    let canonical = read.canonical().unwrap_or_default();
    let again = Pipeline::read(canonical.as_bytes());
    // The writer leaves `<<` plain, which no reader here accepts as a key.
    assert!(
        canonical.contains("<<:") || again.is_ok_and(|again| again == read),
        "the canonical form is the pipeline that was read"
    );
}

/// Reads a capsule, and what is written of it.
pub fn capsule(bytes: &[u8]) {
    let Some(read) = accepted(bytes, Capsule::read) else {
        return;
    };
    let written = read.to_yaml().unwrap_or_default();
    let again = Capsule::read(written.as_bytes());
    assert!(
        again.is_ok_and(|again| again == read),
        "a capsule that was written is the capsule that was read"
    );
}

fn accepted<T, E: Display>(bytes: &[u8], read: impl Fn(&[u8]) -> Result<T, E>) -> Option<T> {
    if bytes.len() > LONGEST {
        return None;
    }
    match read(bytes) {
        Ok(read) => Some(read),
        Err(error) => {
            check_message(&error.to_string());
            None
        }
    }
}

fn check_message(message: &str) {
    assert!(message.len() <= LONGEST_MESSAGE, "a message is bounded");
    assert!(
        !message.contains(char::is_control),
        "a message has no control character"
    );
}
