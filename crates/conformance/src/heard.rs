//! What a plugin said in a session, taken apart frame by frame, and every rule that it broke.
//!
//! The frames are read here and not by the protocol crate, on which plugins under test may be
//! built. A rule that is broken is told apart by its aspect, so that each scenario judges its own.

use std::time::Duration;

use bounded::text::{has_control_or_format, is_trimmed};
use strict_json::{Fields, Layout, Limits, parse_object};

use crate::conduct::Aspect;
use crate::verdict::End;
use crate::wire::{FRAME_BYTES, SESSION, TEXT_BYTES};
use crate::{Operation, excerpt};

/// The time for the end of a session, and for the answer to a `cancel`.
const GRACE: Duration = Duration::from_millis(250);

const PROGRESS_FRAMES: usize = 128;
const PROGRESS_TEXT_BYTES: usize = 1_024;
const SUBJECT_BYTES: usize = 256;
const SUMMARY_BYTES: usize = 1_024;
const CHANGES: usize = 12;
const CHANGE_BYTES: usize = 256;

/// Everything that one process did.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    /// Its whole standard output.
    pub(crate) stdout: Vec<u8>,
    /// The end of its standard error.
    pub(crate) stderr: Vec<u8>,
    /// How it came to its end.
    pub(crate) end: End,
    /// How many processes it left behind.
    pub(crate) descendants: u32,
    /// The time from the end of its input to the end of its output and of itself.
    pub(crate) left_after: Option<Duration>,
    /// The time from `cancel` to the terminal frame.
    pub(crate) stopped_after: Option<Duration>,
    /// By how much the tool itself came late meanwhile.
    pub(crate) late: Duration,
}

/// How a plugin ended a session.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Terminal {
    /// The operation was performed.
    Result,
    /// It was not, for a reason of this category.
    Failure(String),
}

/// A broken rule.
#[derive(Clone, Debug)]
pub(crate) struct Broken {
    pub(crate) aspect: Aspect,
    pub(crate) text: String,
}

/// What came of reading a session.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// What was selected, once it was said.
    pub(crate) selection: Option<Vec<String>>,
    /// The first terminal frame.
    pub(crate) terminal: Option<Terminal>,
    /// Every rule that was broken.
    pub(crate) broken: Vec<Broken>,
    progress: usize,
}

/// Whether a line is the last of a session: a terminal frame, or nothing of the protocol's.
pub(crate) fn ends_session(line: &[u8]) -> bool {
    let kind = kind(line);
    !matches!(kind.as_deref(), Some("initialized" | "progress"))
}

/// Returns what the first line of an output selects.
pub(crate) fn selection(stdout: &[u8]) -> Option<Vec<String>> {
    let line = stdout.split(|byte| *byte == b'\n').next()?;
    let frame: serde_json::Value = serde_json::from_slice(line).ok()?;
    let all = frame.get("capabilities")?.as_array()?;
    all.iter()
        .map(|one| one.as_str().map(str::to_owned))
        .collect()
}

/// Returns the first and the terminal line, which a repeated session must repeat.
pub(crate) fn fixed_lines(stdout: &[u8]) -> Vec<&[u8]> {
    stdout
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| kind(line.trim_ascii_end()).as_deref() != Some("progress"))
        .collect()
}

fn kind(line: &[u8]) -> Option<String> {
    let frame: serde_json::Value = serde_json::from_slice(line).ok()?;
    Some(frame.get("type")?.as_str()?.to_owned())
}

impl Heard {
    /// Reads what was said to an offer.
    pub(crate) fn read(&self, operation: Operation, offer: &[&str]) -> Reading {
        let mut reading = Reading::default();
        let mut rest = &self.stdout[..];
        while let Some(length) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = rest.split_at(length);
            rest = after.get(1..).unwrap_or_default();
            reading.line(line, operation, offer);
        }
        if !rest.is_empty() {
            let text = format!(
                "expected frames that end with LF, got {}",
                excerpt::quoted(rest)
            );
            let aspect = match reading.terminal {
                Some(_) => Aspect::Trailing,
                None => Aspect::Form,
            };
            reading.note(aspect, text);
        }
        if self.descendants > 0 {
            let text = format!(
                "expected no process to be left behind, {} had to be killed",
                self.descendants
            );
            reading.note(Aspect::Descendant, text);
        }
        if let Some(time) = self.left_after.filter(|time| *time > GRACE) {
            let text = match self.end {
                End::Timeout(_) => format!("still running {} ms", time.as_millis()),
                _ => format!("took {} ms", time.as_millis()),
            };
            reading.note(
                Aspect::ExitTime,
                format!(
                    "expected the end of output and process within 250 ms of end of input, {text}"
                ),
            );
        }
        if let Some(time) = self.stopped_after.filter(|time| *time > GRACE) {
            let text = format!(
                "expected a terminal frame within 250 ms of `cancel`, took {} ms",
                time.as_millis()
            );
            reading.note(Aspect::CancelTime, text);
        }
        reading
    }
}

impl Reading {
    fn note(&mut self, aspect: Aspect, text: impl Into<String>) {
        self.broken.push(Broken {
            aspect,
            text: text.into(),
        });
    }

    fn line(&mut self, line: &[u8], operation: Operation, offer: &[&str]) {
        let (kind, fields) = match frame(line) {
            Ok(read) => read,
            Err(reason) => {
                let aspect = self
                    .terminal
                    .as_ref()
                    .map_or(Aspect::Form, |_| Aspect::Trailing);
                return self.note(aspect, format!("{}: {reason}", excerpt::quoted(line)));
            }
        };
        match (
            kind.as_str(),
            self.selection.is_some(),
            self.terminal.is_some(),
        ) {
            ("progress", true, false) => self.progress(fields),
            ("progress", _, _) => {
                self.note(Aspect::ProgressPlace, "expected `progress` between `initialized` and the terminal frame, got it elsewhere");
            }
            (_, _, true) => self.note(
                Aspect::Trailing,
                format!(
                    "expected nothing after the terminal frame, got {}",
                    excerpt::quoted(line)
                ),
            ),
            ("initialized", false, _) => self.initialized(fields, operation, offer),
            ("result", true, _) => self.result(fields, operation),
            ("failure", true, _) => self.failure(fields),
            (other, _, _) => {
                let other = excerpt::message(other);
                self.note(
                    Aspect::Form,
                    format!("a frame of type `{other}` has no place here"),
                );
            }
        }
    }

    fn initialized(&mut self, mut fields: Fields, operation: Operation, offer: &[&str]) {
        let all: Result<Vec<String>, _> = fields
            .array("capabilities")
            .and_then(|all| all.into_iter().map(strict_json::Element::text).collect());
        let all = match all.and_then(|all| fields.end().map(|()| all)) {
            Ok(all) => all,
            Err(error) => {
                return self.note(
                    Aspect::Form,
                    excerpt::message(&format!("`initialized`: {error}")),
                );
            }
        };
        let mut seen: Vec<&str> = Vec::new();
        for one in &all {
            let shown = excerpt::message(one);
            if !offer.contains(&one.as_str()) {
                self.note(
                    Aspect::Selection,
                    format!(
                        "expected a part of the offer, `{shown}` is selected and was not offered"
                    ),
                );
            }
            if seen.contains(&one.as_str()) {
                self.note(
                    Aspect::Selection,
                    format!("expected a selection without repetition, `{shown}` is there twice"),
                );
            }
            seen.push(one);
        }
        if !seen.contains(&operation.capability()) {
            self.note(
                Aspect::Selection,
                format!("expected `{operation}` in the selection, it is missing"),
            );
        }
        self.selection = Some(all);
    }

    fn selected(&self, capability: &str) -> bool {
        self.selection
            .as_ref()
            .is_some_and(|all| all.iter().any(|one| one == capability))
    }

    fn progress(&mut self, mut fields: Fields) {
        self.progress += 1;
        if !self.selected("progress") {
            self.note(
                Aspect::Unselected,
                "`progress` was not selected, but is sent",
            );
        }
        if self.progress == PROGRESS_FRAMES + 1 {
            self.note(
                Aspect::ProgressCount,
                "expected at most 128 progress frames, got more",
            );
        }
        match fields.u64("sequence") {
            Ok(number) if usize::try_from(number) == Ok(self.progress) => {}
            Ok(number) => {
                let text = format!("expected progress number {}, got {number}", self.progress);
                self.note(Aspect::ProgressSequence, text);
            }
            Err(error) => self.note(
                Aspect::ProgressSequence,
                excerpt::message(&error.to_string()),
            ),
        }
        match fields.text("stage") {
            Ok(stage) if matches!(stage.as_str(), "started" | "working" | "finalizing") => {}
            Ok(stage) => {
                let stage = excerpt::message(&stage);
                self.note(
                    Aspect::ProgressStage,
                    format!("expected `started`, `working` or `finalizing`, got `{stage}`"),
                );
            }
            Err(error) => self.note(Aspect::ProgressStage, excerpt::message(&error.to_string())),
        }
        match fields.text("text") {
            Ok(text) if text.len() <= PROGRESS_TEXT_BYTES => {}
            Ok(text) => self.note(
                Aspect::ProgressText,
                format!(
                    "expected a progress text of at most 1024 bytes, got {}",
                    text.len()
                ),
            ),
            Err(error) => self.note(Aspect::ProgressText, excerpt::message(&error.to_string())),
        }
        if let Err(error) = fields.end() {
            self.note(
                Aspect::Form,
                excerpt::message(&format!("`progress`: {error}")),
            );
        }
    }

    fn result(&mut self, mut fields: Fields, operation: Operation) {
        self.terminal = Some(Terminal::Result);
        match operation {
            Operation::Text => match fields.text("output") {
                Ok(text) if text.len() <= TEXT_BYTES => {}
                Ok(text) => self.note(
                    Aspect::Output,
                    format!(
                        "expected an output of at most 65536 bytes, got {}",
                        text.len()
                    ),
                ),
                Err(error) => self.note(
                    Aspect::Form,
                    excerpt::message(&format!("`result`: {error}")),
                ),
            },
            Operation::WorkspaceEdit => self.edit(&mut fields),
        }
        if let Err(error) = fields.end() {
            self.note(
                Aspect::Form,
                excerpt::message(&format!("`result`: {error}")),
            );
        }
    }

    /// Judges what an edit says about itself.
    fn edit(&mut self, fields: &mut Fields) {
        for (field, capability) in [
            ("commit_subject", "commit_subject"),
            ("summary", "agent_report"),
            ("changes", "agent_report"),
        ] {
            if fields.contains(field) && !self.selected(capability) {
                self.note(
                    Aspect::Unselected,
                    format!("`{capability}` was not selected, but `{field}` is sent"),
                );
            }
        }
        if fields.contains("commit_subject") {
            match fields.text("commit_subject") {
                Ok(text) => self.one_line(Aspect::Subject, "commit_subject", &text, SUBJECT_BYTES),
                Err(error) => self.note(Aspect::Subject, excerpt::message(&error.to_string())),
            }
        }
        if !fields.contains("summary") && !fields.contains("changes") {
            return;
        }
        match fields.text("summary") {
            Ok(text) => self.one_line(Aspect::Report, "summary", &text, SUMMARY_BYTES),
            Err(error) => self.note(Aspect::Report, excerpt::message(&error.to_string())),
        }
        let changes: Result<Vec<String>, _> = fields
            .array("changes")
            .and_then(|all| all.into_iter().map(strict_json::Element::text).collect());
        match changes {
            Ok(changes) => {
                if changes.is_empty() || changes.len() > CHANGES {
                    self.note(
                        Aspect::Report,
                        format!("expected 1 to 12 changes, got {}", changes.len()),
                    );
                }
                for change in &changes {
                    self.one_line(Aspect::Report, "changes", change, CHANGE_BYTES);
                }
            }
            Err(error) => self.note(Aspect::Report, excerpt::message(&error.to_string())),
        }
    }

    fn one_line(&mut self, aspect: Aspect, name: &str, text: &str, limit: usize) {
        if text.is_empty() || text.len() > limit {
            self.note(
                aspect,
                format!(
                    "expected `{name}` to have 1 to {limit} bytes, got {}",
                    text.len()
                ),
            );
        }
        if !is_trimmed(text) {
            self.note(
                aspect,
                format!("expected `{name}` without white space at its ends"),
            );
        }
        if has_control_or_format(text) {
            self.note(
                aspect,
                format!(
                    "expected `{name}` without control and format characters, U+2028 and U+2029"
                ),
            );
        }
    }

    fn failure(&mut self, mut fields: Fields) {
        let category = fields.text("category");
        let read = category.and_then(|category| fields.end().map(|()| category));
        match read {
            Ok(category) => {
                if !matches!(
                    category.as_str(),
                    "invalid_request" | "incompatible" | "execution_failed" | "cancelled"
                ) {
                    let shown = excerpt::message(&category);
                    self.note(
                        Aspect::Form,
                        format!("`{shown}` is no category of a failure"),
                    );
                }
                self.terminal = Some(Terminal::Failure(category));
            }
            Err(error) => {
                self.terminal = Some(Terminal::Failure(String::new()));
                self.note(
                    Aspect::Form,
                    excerpt::message(&format!("`failure`: {error}")),
                );
            }
        }
    }
}

/// Reads what all frames have in common, and returns the type and the other fields.
fn frame(line: &[u8]) -> Result<(String, Fields), String> {
    let limits = Limits {
        bytes: FRAME_BYTES,
        depth: 16,
    };
    let object = parse_object(line, &limits, Layout::Compact)
        .map_err(|error| excerpt::message(&error.to_string()))?;
    let mut fields = object.fields("");
    let mut text = |name| {
        fields
            .text(name)
            .map_err(|error| excerpt::message(&error.to_string()))
    };
    let (version, id, kind) = (text("version")?, text("id")?, text("type")?);
    if version != "v1" {
        return Err("the version is not `v1`".to_owned());
    }
    if id != SESSION {
        return Err("the id is not that of the session".to_owned());
    }
    Ok((kind, fields))
}

#[cfg(test)]
mod tests;
