//! Writes messages: compact, in one fixed order of fields, `<`, `>`, `&`, U+2028
//! and U+2029 escaped, and a line feed behind the object. Fields that a message
//! does not have are left out.

use forge_domain::{Completion, EvidenceBatch, ResolvedPolicy, Work};
use serde::Serialize;

use crate::error::LinkError;
use crate::message::{GateMessage, Lease, LeaseKey, WorkerMessage};
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
}

impl<'a> Envelope<'a> {
    const fn bare(kind: &'static str) -> Self {
        Self {
            activity_version: None,
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
