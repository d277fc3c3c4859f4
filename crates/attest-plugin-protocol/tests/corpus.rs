//! Reads every line of the corpus as a message; the folder names the message, the file the rule.
//!
//! `hello_ok` and `verdict` go to a host, the others to a plugin; each line to a session of its own
//! that waits for it. The lines of a file called `two-…` go to one session.

use std::path::Path;
use std::time::{Duration, Instant};

use attest_plugin_protocol::{
    Announcement, BeforeStep, Expected, Hook, HostEvent, HostSession, Payload, PluginEvent,
    PluginSession, encode,
};

type Outcome = Result<(), String>;

fn accept(path: &Path) -> datatest_stable::Result<()> {
    each_message(path, |line, read| {
        read.map_err(|why| format!("`{line}` was refused: {why}"))
    })
}

fn reject(path: &Path) -> datatest_stable::Result<()> {
    let rule = name(path.file_stem())?;
    let said = needle(rule);
    each_message(path, |line, read| match read {
        Ok(()) => Err(format!("`{line}` was accepted")),
        // Or the file would be about another rule than its name says.
        Err(why) if !why.contains(said) => Err(format!("`{line}` was refused for `{why}`")),
        Err(_) => Ok(()),
    })
}

/// What the refusal says, by the first word of the rule.
fn needle(rule: &str) -> &'static str {
    match rule.split_once('-').unwrap_or((rule, "")) {
        ("name", _) => "name",
        ("deterministic", _) => "deterministic",
        ("hook", "not-announced") => "does not announce",
        ("hooks", _) => "`hooks",
        ("protocol", _) => "protocol",
        ("version", _) => "version`",
        ("major", "not-offered") => "does not offer",
        ("major", _) => "`v`",
        ("id", _) => "`id`",
        ("kind" | "hello", _) => "kind",
        ("protocols", _) => "`protocols",
        ("duplicate", _) => "duplicate key `",
        ("decision", _) => "`decision`",
        ("findings", "too-many") => "more than 256 findings",
        ("findings", _) => "`findings",
        ("rule" | "message" | "resource", "too-long") => "has at most",
        ("rule", _) => "rule`",
        ("message", _) => "message`",
        ("resource", _) => "resource`",
        ("severity", _) => "severity`",
        ("annotation", "duplicate-key") => "duplicate key `",
        ("annotation", "too-deep" | "too-long") => "an annotation has at most",
        ("annotation", "number-beyond-doubles") => "number",
        ("annotation", _) => "`annotation`",
        ("two", "for-one-request") => "no request was open",
        ("two", _) => "before the last message is answered",
        ("field", "null") => "must not be null",
        ("field", "missing") => "is missing",
        ("output", "too-long") => "has more than 65536 bytes",
        ("output", _) => "is missing",
        ("field", _) => "field `",
        _ => "not one JSON object",
    }
}

fn each_message(
    path: &Path,
    judge: impl Fn(&str, Outcome) -> Outcome,
) -> datatest_stable::Result<()> {
    let kind = name(path.parent().and_then(Path::file_name))?;
    let bytes = std::fs::read(path)?;
    let together = name(path.file_stem())?.starts_with("two-");
    let lines: Vec<&[u8]> = if together {
        vec![&bytes]
    } else {
        bytes.split_inclusive(|byte| *byte == b'\n').collect()
    };
    for line in lines {
        let shown: String = line.escape_ascii().to_string().chars().take(400).collect();
        judge(&shown, read(kind, line)?)?;
    }
    Ok(())
}

fn name(part: Option<&std::ffi::OsStr>) -> datatest_stable::Result<&str> {
    part.and_then(std::ffi::OsStr::to_str)
        .ok_or_else(|| "a name is not UTF-8".into())
}

/// Brings a session to where the message is due, and gives it the message.
fn read(kind: &str, line: &[u8]) -> datatest_stable::Result<Outcome> {
    match kind {
        "hello_ok" | "verdict" => to_host(kind == "verdict", line),
        "hello" => to_plugin(false, line),
        "request" | "shutdown" => to_plugin(true, line),
        other => Err(format!("no message is called `{other}`").into()),
    }
}

fn announcement() -> datatest_stable::Result<Announcement> {
    Ok(Announcement::new("policy".parse()?, "1", &Hook::ALL, true))
}

fn to_host(asked: bool, line: &[u8]) -> datatest_stable::Result<Outcome> {
    #[expect(
        clippy::disallowed_methods,
        reason = "an origin for a clock that stands still"
    )]
    let now = Instant::now();
    let expected = Expected {
        name: "policy".parse()?,
        hooks: Hook::ALL.to_vec(),
        deterministic: true,
    };
    let mut session = HostSession::new(expected, "1.0.0", Duration::from_secs(30), now);
    while session.poll_transmit().is_some() {}
    if asked {
        session.receive(now, &encode::hello_ok(1, &announcement()?));
        session.request(now, &Payload::BeforeStep(BeforeStep::default()))?;
        while session.poll_transmit().is_some() || session.poll_event().is_some() {}
    }
    session.receive(now, line);
    let mut answers = 0;
    while let Some(event) = session.poll_event() {
        match event {
            HostEvent::Failed(failure) => return Ok(Err(failure.to_string())),
            HostEvent::Ready(_) | HostEvent::Verdict(_) => answers += 1,
            _ => {}
        }
    }
    if answers == 1 {
        Ok(Ok(()))
    } else {
        Err(format!("{answers} answers").into())
    }
}

fn to_plugin(greeted: bool, line: &[u8]) -> datatest_stable::Result<Outcome> {
    let mut session = PluginSession::new();
    if greeted {
        session.receive(&encode::hello(1, "1.0.0"))?;
        session.poll_event();
        session.accept(announcement()?)?;
    }
    if let Err(error) = session.receive(line) {
        return Ok(Err(error.to_string()));
    }
    match session.poll_event() {
        Some(PluginEvent::Hello { .. }) => {
            let accepted = session.accept(announcement()?);
            Ok(accepted.map_err(|error| error.to_string()))
        }
        Some(_) => Ok(Ok(())),
        None => Err("the message made no event".into()),
    }
}

datatest_stable::harness! {
    { test = accept, root = "tests/corpus/accept", pattern = r"\.jsonl$" },
    { test = reject, root = "tests/corpus/reject", pattern = r"\.jsonl$" },
}
