//! Reads every line of the corpus as a frame; the name of a file is the frame and the rule.
//!
//! The first word of the name says where the frame comes: `initialize`, `execute` and `cancel` go
//! to a plugin, everything else to a host.

use std::path::Path;
use std::time::{Duration, Instant};

use forge_plugin_protocol::{
    Capability, Conclusion, HostSession, Operation, PluginSession, Report,
};

const INITIALIZE: &str = include_str!("data/accept/initialize-everything.ndjson");
const EXECUTE: &str = include_str!("data/accept/execute-everything.ndjson");
const SELECT_EVERYTHING: &str = include_str!("data/accept/initialized-everything.ndjson");
const SELECT_OPERATION: &str = include_str!("data/accept/initialized-operation-alone.ndjson");

fn accept(path: &Path) -> datatest_stable::Result<()> {
    each_line(path, |line, read| {
        read.map_err(|why| format!("`{line}` was refused: {why}"))
    })
}

fn reject(path: &Path) -> datatest_stable::Result<()> {
    let about_spaces = path.to_str().is_some_and(|name| {
        ["not-compact", "blank", "carriage-return", "control"]
            .iter()
            .any(|rule| name.contains(rule))
    });
    each_line(path, |line, read| match read {
        Ok(()) => Err(format!("`{line}` was accepted")),
        // A stray space in a file would hide the rule that the file is about.
        Err(why) if !about_spaces && why.contains("white space outside") => {
            Err(format!("`{line}` was refused for a space"))
        }
        Err(_) => Ok(()),
    })
}

fn each_line(
    path: &Path,
    judge: impl Fn(&str, Result<(), String>) -> Result<(), String>,
) -> datatest_stable::Result<()> {
    let name = path
        .file_stem()
        .and_then(|name| name.to_str())
        .ok_or("the name is not UTF-8")?;
    let bytes = std::fs::read(path)?;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let kind = name.split('-').next().unwrap_or(name);
        judge(&line.escape_ascii().to_string(), read(kind, line)?)?;
    }
    Ok(())
}

/// Brings a session to where the frame is due, and gives it the frame.
fn read(kind: &str, line: &[u8]) -> datatest_stable::Result<Result<(), String>> {
    let edit = Operation::workspace_edit("/w", "edit", Duration::from_secs(60))?;
    match kind {
        "initialize" => to_plugin(&[], line),
        "execute" => to_plugin(&[INITIALIZE], line),
        "cancel" => to_plugin(&[INITIALIZE, EXECUTE], line),
        "initialized" => to_host(edit, None, line),
        "workspace" | "progress" | "failure" => to_host(edit, Some(SELECT_EVERYTHING), line),
        "legacy" => to_host(edit, Some(SELECT_OPERATION), line),
        "text" => to_host(Operation::text("hello")?, Some(SELECT_EVERYTHING), line),
        other => Err(format!("no frame is called `{other}`").into()),
    }
}

fn to_plugin(before: &[&str], line: &[u8]) -> datatest_stable::Result<Result<(), String>> {
    let mut session = PluginSession::new(&Capability::ALL)?;
    for frame in before {
        session.receive(frame.as_bytes())?;
    }
    Ok(session.receive(line).map_err(|error| error.to_string()))
}

fn to_host(
    operation: Operation,
    before: Option<&str>,
    line: &[u8],
) -> datatest_stable::Result<Result<(), String>> {
    #[expect(
        clippy::disallowed_methods,
        reason = "an origin for a clock that stands still"
    )]
    let now = Instant::now();
    let id = "0123456789abcdef0123456789abcdef".parse()?;
    let mut session = HostSession::new(id, operation, &Capability::ALL)?;
    for frame in before.into_iter().map(str::as_bytes).chain([line]) {
        while session.poll_transmit().is_some() {}
        session.receive(now, frame);
    }
    if !session.is_finished() {
        return Ok(Ok(()));
    }
    match session.conclude() {
        Conclusion::Broken(error) => Ok(Err(error.to_string())),
        other => Err(format!("the session ended with {other:?}").into()),
    }
}

/// A report is also read outside of frames, by whoever makes one; the rules are the same.
fn report(path: &Path) -> datatest_stable::Result<()> {
    let accepted = path.components().any(|part| part.as_os_str() == "accept");
    for line in std::fs::read_to_string(path)?.lines() {
        let frame: serde_json::Value = serde_json::from_str(line)?;
        let summary = frame.get("summary").and_then(|summary| summary.as_str());
        let changes = frame.get("changes").and_then(|changes| changes.as_array());
        let (Some(summary), Some(changes)) = (summary, changes) else {
            return Err("a report file has a summary and changes in each line".into());
        };
        let changes = changes
            .iter()
            .map(|change| change.as_str().unwrap_or_default());
        let report = Report::new(summary, changes);
        if report.is_ok() != accepted {
            return Err(format!("{line}: {report:?}").into());
        }
    }
    Ok(())
}

datatest_stable::harness! {
    { test = accept, root = "tests/data/accept", pattern = r"\.ndjson$" },
    { test = reject, root = "tests/data/reject", pattern = r"\.ndjson$" },
    { test = report, root = "tests/data", pattern = r"/workspace-report-text[^/]*\.ndjson$" },
}
