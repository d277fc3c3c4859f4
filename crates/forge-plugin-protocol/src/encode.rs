//! Writes frames: compact, in the field order of the protocol, with a line feed at the end.

use serde::Serialize;

use crate::SessionId;
use crate::capability::{Capabilities, Capability};
use crate::limits::{
    COMMIT_SUBJECT_BYTES, FRAME_BYTES, PROGRESS_FRAMES, PROGRESS_TEXT_BYTES, TEXT_BYTES, VERSION,
};
use crate::operation::Operation;
use crate::outcome::{FailureCategory, Outcome};
use crate::progress::Progress;

/// Writes `initialize`.
pub fn initialize(id: SessionId, offer: &Capabilities) -> Vec<u8> {
    #[derive(Serialize)]
    struct Body<'a> {
        capabilities: &'a Capabilities,
        limits: Limits,
    }
    frame(
        id,
        "initialize",
        Body {
            capabilities: offer,
            limits: Limits::V1,
        },
    )
}

/// Writes `initialized`.
pub fn initialized(id: SessionId, selection: &Capabilities) -> Vec<u8> {
    #[derive(Serialize)]
    struct Body<'a> {
        capabilities: &'a Capabilities,
    }
    frame(
        id,
        "initialized",
        Body {
            capabilities: selection,
        },
    )
}

/// Writes `execute`.
pub fn execute(id: SessionId, operation: &Operation) -> Vec<u8> {
    #[derive(Serialize)]
    struct Body<'a> {
        operation: Capability,
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        workspace: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        instruction: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u32>,
    }
    let empty = Body {
        operation: operation.capability(),
        input: None,
        workspace: None,
        instruction: None,
        timeout_ms: None,
    };
    let body = match operation {
        Operation::Text { input } => Body {
            input: Some(input.as_str()),
            ..empty
        },
        Operation::WorkspaceEdit {
            workspace,
            instruction,
            timeout_ms,
        } => Body {
            workspace: Some(workspace.as_str()),
            instruction: Some(instruction.as_str()),
            timeout_ms: Some(timeout_ms.get()),
            ..empty
        },
    };
    frame(id, "execute", body)
}

/// Writes `cancel`.
pub fn cancel(id: SessionId) -> Vec<u8> {
    #[derive(Serialize)]
    struct Body {}
    frame(id, "cancel", Body {})
}

/// Writes `progress`.
pub fn progress(id: SessionId, progress: &Progress) -> Vec<u8> {
    #[derive(Serialize)]
    struct Body<'a> {
        sequence: u32,
        stage: &'static str,
        text: &'a str,
    }
    let Progress {
        sequence,
        stage,
        text,
    } = progress;
    frame(
        id,
        "progress",
        Body {
            sequence: *sequence,
            stage: stage.as_str(),
            text: text.as_str(),
        },
    )
}

/// Writes `result`.
pub fn result(id: SessionId, outcome: &Outcome) -> Vec<u8> {
    #[derive(Serialize)]
    struct Text<'a> {
        output: &'a str,
    }
    #[derive(Serialize)]
    struct Workspace<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        commit_subject: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        summary: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        changes: Option<Vec<&'a str>>,
    }
    match outcome {
        Outcome::Text(output) => frame(
            id,
            "result",
            Text {
                output: output.as_str(),
            },
        ),
        Outcome::Workspace { subject, report } => {
            let body = Workspace {
                commit_subject: subject.as_ref().map(AsRef::as_ref),
                summary: report.as_ref().map(|report| report.summary()),
                changes: report.as_ref().map(|report| report.changes().collect()),
            };
            frame(id, "result", body)
        }
    }
}

/// Writes `failure`.
pub fn failure(id: SessionId, category: FailureCategory) -> Vec<u8> {
    #[derive(Serialize)]
    struct Body {
        category: &'static str,
    }
    frame(
        id,
        "failure",
        Body {
            category: category.as_str(),
        },
    )
}

/// The five limits of `initialize`, each with its only value.
#[derive(Serialize)]
pub(crate) struct Limits {
    frame_bytes: usize,
    progress_frames: u32,
    text_bytes: usize,
    progress_text_bytes: usize,
    commit_subject_bytes: usize,
}

impl Limits {
    const V1: Self = Self {
        frame_bytes: FRAME_BYTES,
        progress_frames: PROGRESS_FRAMES,
        text_bytes: TEXT_BYTES,
        progress_text_bytes: PROGRESS_TEXT_BYTES,
        commit_subject_bytes: COMMIT_SUBJECT_BYTES,
    };
}

fn frame<Body: Serialize>(id: SessionId, kind: &'static str, body: Body) -> Vec<u8> {
    #[derive(Serialize)]
    struct Frame<Body> {
        version: &'static str,
        id: SessionId,
        r#type: &'static str,
        #[serde(flatten)]
        body: Body,
    }
    let mut bytes = strict_json::to_forge_frame(&Frame {
        version: VERSION,
        id,
        r#type: kind,
        body,
    });
    bytes.push(b'\n');
    bytes
}
