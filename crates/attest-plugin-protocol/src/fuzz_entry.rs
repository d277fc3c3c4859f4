//! The bodies of the fuzz targets, shared with the test that replays their corpora.

use std::time::{Duration, Instant};

use crate::annotation::Annotation;
use crate::decode::{self, Envelope};
use crate::encode;
use crate::payload::{AfterStep, BeforeStep, Payload, PipelinePayload};
use crate::{
    Announcement, Expected, Hook, HostEvent, HostSession, MESSAGE_BYTES, PluginEvent, PluginExit,
    PluginName, PluginSession, Verdict,
};

/// Feeds what a plugin might write to a host, line by line and byte by byte, and compares.
pub fn host(now: Instant, bytes: &[u8]) {
    let whole = run_host(now, bytes, usize::MAX);
    assert_eq!(
        whole,
        run_host(now, bytes, 1),
        "how bytes are cut changes nothing"
    );
    let (events, sent) = whole.unwrap_or_default();
    let failed = events
        .iter()
        .position(|event| matches!(event, HostEvent::Failed(_)));
    assert_eq!(
        failed,
        events.len().checked_sub(1),
        "a failure is the last event"
    );
    let verdicts = events.iter().filter_map(|event| match event {
        HostEvent::Verdict(verdict) => Some(verdict),
        _ => None,
    });
    // `hello` is answered by something else.
    assert!(
        verdicts.clone().count() < sent.len().max(1),
        "one verdict per request"
    );
    verdicts.for_each(reads_back);
}

/// Feeds what a core might write to a plugin, line by line and byte by byte, and compares.
pub fn plugin(bytes: &[u8]) {
    let whole = run_plugin(bytes, usize::MAX);
    assert_eq!(
        whole,
        run_plugin(bytes, 1),
        "how bytes are cut changes nothing"
    );
    let Some((events, _, _)) = whole else { return };
    for event in events {
        if let PluginEvent::Request { payload, .. } = event {
            let line = encode::request(1, &payload);
            let again = read(&line, |body| decode::payload(payload.hook(), body).ok());
            if let Some(again) = again {
                assert_eq!(
                    encode::request(1, &again),
                    line,
                    "what was written reads back"
                );
            }
        }
    }
}

fn reads_back(verdict: &Verdict) {
    let line = encode::verdict(1, verdict);
    let again = read(&line, |body| decode::verdict(body).ok());
    // Escapes may make it too long to be read again.
    if line.len() <= MESSAGE_BYTES {
        let again = again.map(|again| encode::verdict(1, &again));
        assert_eq!(again, Some(line), "what was written reads back");
    }
}

fn read<T>(line: &[u8], read: impl Fn(strict_json::Fields) -> Option<T>) -> Option<T> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    read(Envelope::open(line).ok()?.body)
}

fn name() -> Option<PluginName> {
    "policy".parse().ok()
}

/// One payload per hook, in turn.
fn payload(turn: usize) -> Payload {
    match turn % 4 {
        0 => Payload::Pipeline(PipelinePayload::default()),
        1 => Payload::BeforeStep(BeforeStep::default()),
        2 => Payload::AfterStep(AfterStep::default()),
        _ => Payload::Receipt(strict_json::Object::default()),
    }
}

type HostRun = (Vec<HostEvent>, Vec<Vec<u8>>);

/// Asks again after each answer, as often as the plugin answers.
fn run_host(now: Instant, bytes: &[u8], chunk: usize) -> Option<HostRun> {
    let expected = Expected {
        name: name()?,
        hooks: Hook::ALL.to_vec(),
        deterministic: true,
    };
    let mut session = HostSession::new(expected, "1.0.0", Duration::from_secs(30), now);
    let mut sent = Vec::new();
    let mut events = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        sent.extend(std::iter::from_fn(|| session.poll_transmit()));
        for piece in line.chunks(chunk.min(line.len()).max(1)) {
            session.receive(now, piece);
        }
        events.extend(std::iter::from_fn(|| session.poll_event()));
        // A refusal means that the session is over or waits for more.
        let _refused = session.request(now, &payload(sent.len()));
    }
    session.stdout_closed(now);
    session.exited(now, PluginExit::Code(0));
    if session.is_idle() {
        let _refused = session.request(now, &payload(0));
    }
    events.extend(std::iter::from_fn(|| session.poll_event()));
    assert!(
        session.is_over(),
        "end of output and exit end every session"
    );
    assert_eq!(session.poll_timeout(), None);
    // Notes show as much of the offending bytes as was there.
    events.retain(|event| !matches!(event, HostEvent::Note(_)));
    Some((events, sent))
}

type PluginRun = (Vec<PluginEvent>, Vec<Vec<u8>>, Result<(), String>);

/// Allows everything.
fn run_plugin(bytes: &[u8], chunk: usize) -> Option<PluginRun> {
    let mut announcement = Announcement::new(name()?, "1", &Hook::ALL, true);
    announcement.hooks.push("step.retry".to_owned());
    let verdict = Verdict::allow().annotated(Annotation::new(strict_json::Object::default()).ok()?);
    let mut session = PluginSession::new();
    let mut events = Vec::new();
    let mut sent = Vec::new();
    let mut result = Ok(());
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        for piece in line.chunks(chunk.min(line.len()).max(1)) {
            result = result.and_then(|()| session.receive(piece));
        }
        while let Some(event) = session.poll_event() {
            let answered = match &event {
                PluginEvent::Hello { .. } => session.accept(announcement.clone()),
                PluginEvent::Request { id, .. } | PluginEvent::OtherRequest { id, .. } => {
                    session.verdict(*id, &verdict)
                }
                PluginEvent::Unknown { .. } | PluginEvent::Shutdown => Ok(()),
            };
            assert!(answered.is_ok() || matches!(event, PluginEvent::Hello { .. }));
            events.push(event);
        }
        sent.extend(std::iter::from_fn(|| session.poll_transmit()));
    }
    let result = result.and_then(|()| session.input_closed());
    // How much of the offending bytes was there to quote depends on the chunks.
    let result = result.map_err(|error| error.violation().to_string());
    Some((events, sent, result))
}
