//! Writes messages: compact, in one fixed order of fields, `<`, `>`, `&`, U+2028
//! and U+2029 escaped, and a line feed behind the object. Fields that a message
//! does not have are left out.

use forge_domain::{Completion, EvidenceBatch, NotAccepting, ResolvedPolicy, Work};
use serde::Serialize;

use crate::error::LinkError;
use crate::message::{ControlVersion, GateMessage, Lease, LeaseKey, Readiness, WorkerMessage};
use crate::token::AttachToken;
use crate::{MAX_MESSAGE_BYTES, REFUSED};

impl GateMessage {
    /// The message as one frame.
    pub fn encode(&self) -> Result<Vec<u8>, LinkError> {
        match self {
            Self::Lease(lease) => encode_lease(lease),
            Self::UnacceptableLease(_) => Err(LinkError::OutOfPlace {
                kind: "lease",
                reason: "a lease that was refused as it came in cannot be sent on",
            }),
            Self::Ack(key) => frame(&Envelope::of("ack", key)),
            Self::Error => frame(&Envelope {
                error: Some(REFUSED),
                ..Envelope::bare("error")
            }),
            Self::Attached(attached) => frame(&Envelope {
                deadline_ms: Some(attached.deadline_ms),
                ..Envelope::of("attached", &attached.lease)
            }),
            Self::Lost(key) => frame(&Envelope::of("lost", key)),
            Self::Cancel(cancel) => frame(&Envelope {
                reason: Some(cancel.reason.as_str()),
                ..Envelope::of("cancel", &cancel.lease)
            }),
            Self::Ping(n) => frame(&Envelope {
                n: Some(*n),
                ..Envelope::bare("ping")
            }),
        }
    }
}

impl WorkerMessage {
    /// The message as one frame.
    pub fn encode(&self) -> Result<Vec<u8>, LinkError> {
        match self {
            Self::Heartbeat(heartbeat) => frame(&Envelope {
                worker_id: Some(heartbeat.worker_id.as_str()),
                ..Envelope::of("heartbeat", &heartbeat.lease)
            }),
            Self::Activity(activity) => frame(&Envelope {
                activity_version: Some(activity.version.as_str()),
                activity: Some(activity.activity),
                worker_id: Some(activity.worker_id.as_str()),
                ..Envelope::of("activity", &activity.lease)
            }),
            Self::Evidence(evidence) => frame(&Envelope {
                evidence: Some(&evidence.batch),
                ..Envelope::of("evidence", &evidence.lease)
            }),
            Self::Result(result) => encode_result(&result.lease, &result.completion),
            Self::Attach(attach) => frame(&Envelope {
                attach_token: Some(attach.token.reveal()),
                ..Envelope::of("attach", &attach.lease)
            }),
            Self::Ready(readiness) => {
                let reason = match readiness {
                    Readiness::Accepts => None,
                    Readiness::Refuses(reason) => Some(reason),
                };
                frame(&Envelope {
                    accepting: Some(reason.is_none()),
                    reason: reason.map(|reason| NotAccepting::as_str(*reason)),
                    ..Envelope::bare("ready")
                })
            }
            Self::Decline(decline) => frame(&Envelope {
                reason: Some(decline.reason.as_str()),
                ..Envelope::of("decline", &decline.lease)
            }),
            Self::Pong(n) => frame(&Envelope {
                n: Some(*n),
                ..Envelope::bare("pong")
            }),
            Self::Cancelled(key) => frame(&Envelope::of("cancelled", key)),
        }
    }
}

fn encode_lease(lease: &Lease) -> Result<Vec<u8>, LinkError> {
    let (input, task) = match &lease.work {
        Work::Text { input } => (Some(input.as_str()), None),
        Work::Coding(task) => (None, Some(task)),
    };
    frame(&Envelope {
        activity_version: lease.activity_version.map(|version| version.as_str()),
        control_version: lease
            .attach_token
            .as_ref()
            .map(|_| ControlVersion::V1.as_str()),
        attach_token: lease.attach_token.as_ref().map(AttachToken::reveal),
        input,
        task,
        policy: Some(&lease.policy),
        ..Envelope::of("lease", &lease.lease)
    })
}

fn encode_result(key: &LeaseKey, completion: &Completion) -> Result<Vec<u8>, LinkError> {
    let bare = Envelope::of("result", key);
    match completion {
        Completion::Text { result } => frame(&Envelope {
            result: Some(result.as_str()).filter(|result| !result.is_empty()),
            ..bare
        }),
        Completion::Candidate { sha, report } => {
            let report = report.as_ref().map(forge_domain::AgentReport::canonical);
            frame(&Envelope {
                result: report.as_deref(),
                candidate_sha: Some(sha.as_ref()),
                ..bare
            })
        }
        Completion::Failed(failure) => frame(&Envelope {
            error: Some(failure.code().as_str()),
            disposition: Some(failure.disposition().as_str()),
            ..bare
        }),
    }
}

fn frame(envelope: &Envelope<'_>) -> Result<Vec<u8>, LinkError> {
    let mut frame = strict_json::to_forge_frame(envelope);
    frame.push(b'\n');
    if frame.len() > MAX_MESSAGE_BYTES {
        return Err(LinkError::TooLarge {
            bytes: frame.len(),
            limit: MAX_MESSAGE_BYTES,
        });
    }
    Ok(frame)
}

/// Every field of every message, in the order of the wire.
#[derive(Serialize)]
struct Envelope<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    activity_version: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    control_version: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    activity: Option<forge_domain::Activity>,
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<&'a forge_domain::CodingTask>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    candidate_sha: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disposition: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<&'a EvidenceBatch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<&'a ResolvedPolicy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attach_token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    accepting: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<u64>,
}

impl<'a> Envelope<'a> {
    const fn bare(kind: &'static str) -> Self {
        Self {
            activity_version: None,
            control_version: None,
            activity: None,
            r#type: kind,
            job_id: None,
            attempt_id: None,
            worker_id: None,
            input: None,
            task: None,
            result: None,
            candidate_sha: None,
            error: None,
            disposition: None,
            evidence: None,
            policy: None,
            attach_token: None,
            deadline_ms: None,
            accepting: None,
            reason: None,
            n: None,
        }
    }

    fn of(kind: &'static str, key: &'a LeaseKey) -> Self {
        Self {
            job_id: Some(key.job_id.as_str()),
            attempt_id: Some(key.attempt_id.as_str()),
            ..Self::bare(kind)
        }
    }
}
