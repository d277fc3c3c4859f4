//! Reads frames. Each function takes every field of its frame by name and refuses the rest.

use std::str::FromStr;

use bounded::text::visible;
use strict_json::{Element, FieldError, Fields, Layout, parse_object};

use crate::SessionId;
use crate::capability::{Capabilities, Capability, InvalidCapabilities};
use crate::limits::{
    COMMIT_SUBJECT_BYTES, FRAME_BYTES, PROGRESS_FRAMES, PROGRESS_TEXT_BYTES, TEXT_BYTES, VERSION,
};
use crate::operation::{Operation, TimeoutMs};
use crate::outcome::{FailureCategory, InvalidReport, Outcome, Report};
use crate::progress::Progress;
use crate::violation::Violation;

/// A frame whose common fields are taken; the rest waits for the type to be judged.
pub(crate) struct Envelope {
    pub(crate) id: SessionId,
    pub(crate) kind: String,
    pub(crate) body: Fields,
}

impl Envelope {
    /// Reads the fields that every frame has.
    pub(crate) fn open(line: &[u8]) -> Result<Self, Violation> {
        // No frame nests deeper than two levels; the rest is room for a good message.
        let limits = strict_json::Limits {
            bytes: FRAME_BYTES,
            depth: 8,
        };
        let mut body = parse_object(line, &limits, Layout::Compact)?.fields("");
        if body.text("version")? != VERSION {
            return Err(Violation::Version);
        }
        let id = body.parse("id")?;
        let kind = body.text("type")?;
        Ok(Self { id, kind, body })
    }

    /// Reads a frame that must belong to a session.
    pub(crate) fn open_for(id: SessionId, line: &[u8]) -> Result<Self, Violation> {
        let envelope = Self::open(line)?;
        if envelope.id == id {
            Ok(envelope)
        } else {
            Err(Violation::OtherId)
        }
    }

    /// Refuses the frame because of its type.
    pub(crate) fn unexpected(&self, expected: &'static str) -> Violation {
        let found = visible(&self.kind.chars().take(32).collect::<String>());
        Violation::UnexpectedType { expected, found }
    }
}

/// Reads the body of `initialize`.
pub(crate) fn initialize(mut body: Fields) -> Result<Capabilities, Violation> {
    const KIND: &str = "initialize";
    let offer = capabilities(KIND, &mut body)?;
    let mut limits = body.object("limits").map_err(field(KIND))?;
    let expected = [
        ("frame_bytes", FRAME_BYTES as u64),
        ("progress_frames", u64::from(PROGRESS_FRAMES)),
        ("text_bytes", TEXT_BYTES as u64),
        ("progress_text_bytes", PROGRESS_TEXT_BYTES as u64),
        ("commit_subject_bytes", COMMIT_SUBJECT_BYTES as u64),
    ];
    for (name, expected) in expected {
        if limits.u64(name).map_err(field(KIND))? != expected {
            return Err(Violation::Limit { name, expected });
        }
    }
    limits.end().map_err(field(KIND))?;
    end(KIND, body)?;
    Ok(offer)
}

/// Reads the body of `initialized` and checks the selection against the offer.
pub(crate) fn initialized(
    mut body: Fields,
    offer: &Capabilities,
    operation: Capability,
) -> Result<Capabilities, Violation> {
    const KIND: &str = "initialized";
    let refused = |error| Violation::Capabilities { kind: KIND, error };
    let selection = capabilities(KIND, &mut body)?;
    end(KIND, body)?;
    if let Some(foreign) = selection
        .iter()
        .find(|capability| !offer.contains(*capability))
    {
        return Err(refused(InvalidCapabilities::NotOffered(foreign)));
    }
    if !selection.contains(operation) {
        return Err(refused(InvalidCapabilities::OperationMissing(operation)));
    }
    Ok(selection)
}

/// Reads the body of `execute`.
pub(crate) fn execute(mut body: Fields, selection: &Capabilities) -> Result<Operation, Violation> {
    const KIND: &str = "execute";
    let name = body.text("operation").map_err(field(KIND))?;
    let capability = Capability::from_str(&name)
        .ok()
        .filter(|found| found.is_operation());
    let Some(capability) = capability else {
        let reason = "must be `text` or `workspace_edit`";
        return Err(field(KIND)(FieldError::invalid("operation", reason)));
    };
    if !selection.contains(capability) {
        return Err(Violation::OperationNotSelected(capability));
    }
    let operation = if capability == Capability::Text {
        Operation::Text {
            input: body.parse("input").map_err(field(KIND))?,
        }
    } else {
        let workspace = body.parse("workspace").map_err(field(KIND))?;
        let instruction = body.parse("instruction").map_err(field(KIND))?;
        let timeout_ms = body.u64("timeout_ms").map_err(field(KIND))?;
        let timeout_ms = TimeoutMs::new(timeout_ms)
            .map_err(|reason| field(KIND)(FieldError::invalid("timeout_ms", reason.to_string())))?;
        Operation::WorkspaceEdit {
            workspace,
            instruction,
            timeout_ms,
        }
    };
    end(KIND, body)?;
    Ok(operation)
}

/// Closes the body of `cancel`, which has no fields of its own.
pub(crate) fn cancel(body: Fields) -> Result<(), Violation> {
    end("cancel", body)
}

/// Reads the body of `progress`; `expected` is the only sequence number that may come.
pub(crate) fn progress(mut body: Fields, expected: u32) -> Result<Progress, Violation> {
    const KIND: &str = "progress";
    let sequence = body.u64("sequence").map_err(field(KIND))?;
    let stage = body.parse("stage").map_err(field(KIND))?;
    let text = body.parse("text").map_err(field(KIND))?;
    end(KIND, body)?;
    if expected > PROGRESS_FRAMES {
        return Err(Violation::TooManyProgressFrames);
    }
    if sequence != u64::from(expected) {
        return Err(Violation::Sequence { expected });
    }
    Ok(Progress {
        sequence: expected,
        stage,
        text,
    })
}

/// Reads the body of `result` for the operation that was asked for.
pub(crate) fn result(
    mut body: Fields,
    operation: Capability,
    selection: &Capabilities,
) -> Result<Outcome, Violation> {
    const KIND: &str = "result";
    if operation == Capability::Text {
        let output = body.parse("output").map_err(field(KIND))?;
        end(KIND, body)?;
        return Ok(Outcome::Text(output));
    }
    // Without its capability even `null` in a field is refused, so presence is what counts.
    let needs = [
        ("commit_subject", Capability::CommitSubject),
        ("summary", Capability::AgentReport),
        ("changes", Capability::AgentReport),
    ];
    for (what, capability) in needs {
        if body.contains(what) && !selection.contains(capability) {
            return Err(Violation::NotNegotiated { what, capability });
        }
    }
    let subject = body.opt_parse("commit_subject").map_err(field(KIND))?;
    let summary = body.opt_text("summary").map_err(field(KIND))?;
    let changes = body.opt_array("changes").map_err(field(KIND))?;
    end(KIND, body)?;
    let report = match (summary, changes) {
        (None, None) => None,
        (Some(summary), Some(changes)) => Some(report(summary, changes).map_err(field(KIND))?),
        _ => return Err(Violation::HalfReport),
    };
    Ok(Outcome::Workspace { subject, report })
}

/// Reads the body of `failure`.
pub(crate) fn failure(mut body: Fields) -> Result<FailureCategory, Violation> {
    const KIND: &str = "failure";
    let category = body.parse("category").map_err(field(KIND))?;
    end(KIND, body)?;
    Ok(category)
}

fn report(summary: String, changes: Vec<Element>) -> Result<Report, FieldError> {
    let changes = changes
        .into_iter()
        .map(Element::text)
        .collect::<Result<Vec<_>, _>>()?;
    Report::new(summary, changes).map_err(|error| match error {
        InvalidReport::Summary(reason) => FieldError::invalid("summary", reason.to_string()),
        InvalidReport::Change { index, error } => {
            FieldError::invalid(format!("changes[{index}]"), error.to_string())
        }
        InvalidReport::ChangeCount => FieldError::invalid("changes", "must have 1 to 12 entries"),
    })
}

fn capabilities(kind: &'static str, body: &mut Fields) -> Result<Capabilities, Violation> {
    let items = body.array("capabilities").map_err(field(kind))?;
    let list = items
        .into_iter()
        .map(Element::parse)
        .collect::<Result<Vec<_>, _>>();
    Capabilities::new(list.map_err(field(kind))?)
        .map_err(|error| Violation::Capabilities { kind, error })
}

fn end(kind: &'static str, body: Fields) -> Result<(), Violation> {
    body.end().map_err(field(kind))
}

fn field(kind: &'static str) -> impl Fn(FieldError) -> Violation {
    move |error| Violation::Field { kind, error }
}
