//! The bodies of the fuzz targets, shared with the test that replays their corpora.

use std::time::Instant;

use crate::Violation;

use crate::{
    Capability, Conclusion, HostEvent, HostSession, Operation, PluginEvent, PluginSession,
};

/// Feeds what a plugin might write to a host, whole and byte by byte, and compares.
pub fn host(now: Instant, bytes: &[u8]) {
    for offer in [&[Capability::Text][..], &Capability::ALL] {
        assert_eq!(
            run_host(now, offer, bytes, usize::MAX),
            run_host(now, offer, bytes, 1)
        );
    }
}

/// Feeds what a host might write to a plugin, whole and byte by byte, and compares.
pub fn plugin(bytes: &[u8]) {
    assert_eq!(run_plugin(bytes, usize::MAX), run_plugin(bytes, 1));
}

fn run_host(
    now: Instant,
    offer: &[Capability],
    bytes: &[u8],
    chunk: usize,
) -> Option<(Vec<HostEvent>, Result<Conclusion, Violation>)> {
    let id = "0123456789abcdef0123456789abcdef".parse().ok()?;
    let mut session = HostSession::new(id, Operation::text("hello").ok()?, offer).ok()?;
    let mut events = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        // A plugin that waits for its turn; writing ahead is a scenario of its own.
        while session.poll_transmit().is_some() {}
        for piece in line.chunks(chunk.min(line.len()).max(1)) {
            session.receive(now, piece);
            events.extend(std::iter::from_fn(|| session.poll_event()));
        }
    }
    session.stdout_closed(now);
    session.exited(now, crate::PluginExit::Success);
    events.extend(std::iter::from_fn(|| session.poll_event()));
    assert!(
        session.is_finished(),
        "end of output and exit end every session"
    );
    // How much of the offending bytes was there to quote depends on the chunks; the rule does not.
    let conclusion = match session.conclude() {
        Conclusion::Broken(error) => Err(error.violation().clone()),
        conclusion => Ok(conclusion),
    };
    Some((events, conclusion))
}

type PluginRun = (Vec<PluginEvent>, Vec<Vec<u8>>, Result<(), String>);

fn run_plugin(bytes: &[u8], chunk: usize) -> Option<PluginRun> {
    let mut session = PluginSession::new(&Capability::ALL).ok()?;
    let mut result = Ok(());
    for piece in bytes.chunks(chunk.min(bytes.len()).max(1)) {
        result = session.receive(piece);
        if result.is_err() {
            break;
        }
    }
    let result = result
        .and_then(|()| session.input_closed())
        .map_err(|error| error.to_string());
    let events = std::iter::from_fn(|| session.poll_event()).collect();
    let frames = std::iter::from_fn(|| session.poll_transmit()).collect();
    Some((events, frames, result))
}
