//! Reads messages strictly: one object, no key twice, nothing behind it, and in
//! each type its own fields and no others. White space between tokens and any
//! order of keys pass.

use forge_domain::{
    AgentReport, CodingTask, Completion, EvidenceBatch, ResolvedPolicy, Work, WorkerFailure,
};
use strict_json::{FieldError, Fields, Layout, Limits, parse_object};

use crate::MAX_MESSAGE_BYTES;
use crate::error::LinkError;
use crate::message::{
    Activity, ActivityVersion, Attach, Attached, Cancel, ControlVersion, Decline, Evidence,
    GateMessage, Heartbeat, JobResult, Lease, LeaseKey, Readiness, UnacceptableLease,
    WorkerMessage,
};
use crate::token::AttachToken;

/// Deeper than any message nests.
const MAX_DEPTH: usize = 16;

impl WorkerMessage {
    /// Reads what a Worker sent.
    pub fn decode(message: &[u8]) -> Result<Self, LinkError> {
        let (kind, fields) = open(message)?;
        match kind.as_str() {
            "heartbeat" => heartbeat(fields)
                .map(Self::Heartbeat)
                .map_err(at("heartbeat")),
            "activity" => activity(fields).map(Self::Activity).map_err(at("activity")),
            "evidence" => evidence(fields).map(Self::Evidence).map_err(at("evidence")),
            "result" => result(fields).map(Self::Result),
            "attach" => attach(fields).map(Self::Attach).map_err(at("attach")),
            "ready" => ready(fields).map(Self::Ready),
            "decline" => decline(fields).map(Self::Decline).map_err(at("decline")),
            "pong" => number(fields).map(Self::Pong).map_err(at("pong")),
            "cancelled" => ack(fields).map(Self::Cancelled).map_err(at("cancelled")),
            _ => Err(LinkError::UnknownType(kind)),
        }
    }
}

impl GateMessage {
    /// Reads what a Gate sent.
    pub fn decode(message: &[u8]) -> Result<Self, LinkError> {
        let (kind, mut fields) = open(message)?;
        match kind.as_str() {
            "lease" => lease(fields),
            "ack" => ack(fields).map(Self::Ack).map_err(at("ack")),
            "error" => {
                fields
                    .text("error")
                    .and_then(|_| fields.end())
                    .map_err(at("error"))?;
                Ok(Self::Error)
            }
            "attached" => attached(fields).map(Self::Attached).map_err(at("attached")),
            "lost" => ack(fields).map(Self::Lost).map_err(at("lost")),
            "cancel" => cancel(fields).map(Self::Cancel).map_err(at("cancel")),
            "ping" => number(fields).map(Self::Ping).map_err(at("ping")),
            _ => Err(LinkError::UnknownType(kind)),
        }
    }
}

fn at(kind: &'static str) -> impl FnOnce(FieldError) -> LinkError {
    move |source| LinkError::Field { kind, source }
}

fn open(message: &[u8]) -> Result<(String, Fields), LinkError> {
    let limits = Limits {
        bytes: MAX_MESSAGE_BYTES,
        depth: MAX_DEPTH,
    };
    let object = parse_object(message, &limits, Layout::Spaced).map_err(LinkError::Json)?;
    let mut fields = object.fields("");
    let kind = fields.text("type").map_err(at("untyped"))?;
    Ok((kind, fields))
}

fn key(fields: &mut Fields) -> Result<LeaseKey, FieldError> {
    Ok(LeaseKey {
        job_id: fields.parse("job_id")?,
        attempt_id: fields.parse("attempt_id")?,
    })
}

fn heartbeat(mut fields: Fields) -> Result<Heartbeat, FieldError> {
    let heartbeat = Heartbeat {
        lease: key(&mut fields)?,
        worker_id: fields.parse("worker_id")?,
    };
    fields.end()?;
    Ok(heartbeat)
}

fn activity(mut fields: Fields) -> Result<Activity, FieldError> {
    let lease = key(&mut fields)?;
    let worker_id = fields.parse("worker_id")?;
    let version = version(&mut fields)?.ok_or_else(|| FieldError::Missing {
        path: "activity_version".to_owned(),
    })?;
    let mut inner = fields.object("activity")?;
    let path = inner.path_of("sequence");
    let sequence = u8::try_from(inner.u64("sequence")?)
        .map_err(|_| FieldError::invalid(path, "is too large"))?;
    let stage = inner.parse("stage")?;
    inner.end()?;
    fields.end()?;
    Ok(Activity {
        lease,
        worker_id,
        version,
        activity: forge_domain::Activity { sequence, stage },
    })
}

fn version(fields: &mut Fields) -> Result<Option<ActivityVersion>, FieldError> {
    let Some(text) = fields.opt_text("activity_version")? else {
        return Ok(None);
    };
    match ActivityVersion::exactly(&text) {
        Some(version) => Ok(Some(version)),
        None => Err(FieldError::invalid(
            "activity_version",
            "is not a known version",
        )),
    }
}

fn evidence(mut fields: Fields) -> Result<Evidence, FieldError> {
    let lease = key(&mut fields)?;
    let batch = EvidenceBatch::from_elements("evidence", fields.array("evidence")?)?;
    fields.end()?;
    Ok(Evidence { lease, batch })
}

fn attach(mut fields: Fields) -> Result<Attach, FieldError> {
    let attach = Attach {
        lease: key(&mut fields)?,
        token: fields.parse("attach_token")?,
    };
    fields.end()?;
    Ok(attach)
}

fn attached(mut fields: Fields) -> Result<Attached, FieldError> {
    let attached = Attached {
        lease: key(&mut fields)?,
        deadline_ms: fields.u64("deadline_ms")?,
    };
    fields.end()?;
    Ok(attached)
}

fn ready(mut fields: Fields) -> Result<Readiness, LinkError> {
    const KIND: &str = "ready";
    let accepting = fields.bool("accepting").map_err(at(KIND))?;
    let reason = fields.opt_parse("reason").map_err(at(KIND))?;
    fields.end().map_err(at(KIND))?;
    match (accepting, reason) {
        (true, None) => Ok(Readiness::Accepts),
        (false, Some(reason)) => Ok(Readiness::Refuses(reason)),
        _ => Err(LinkError::Contradiction {
            kind: KIND,
            reason: "a `reason` belongs to `accepting` false, and to that alone".to_owned(),
        }),
    }
}

fn decline(mut fields: Fields) -> Result<Decline, FieldError> {
    let decline = Decline {
        lease: key(&mut fields)?,
        reason: fields.parse("reason")?,
    };
    fields.end()?;
    Ok(decline)
}

fn cancel(mut fields: Fields) -> Result<Cancel, FieldError> {
    let cancel = Cancel {
        lease: key(&mut fields)?,
        reason: fields.parse("reason")?,
    };
    fields.end()?;
    Ok(cancel)
}

fn number(mut fields: Fields) -> Result<u64, FieldError> {
    let n = fields.u64("n")?;
    fields.end()?;
    Ok(n)
}

/// The token that comes with job control; the version and the token belong together.
fn control(fields: &mut Fields) -> Result<Option<AttachToken>, LinkError> {
    const KIND: &str = "lease";
    let version = fields.opt_text("control_version").map_err(at(KIND))?;
    let token = fields.opt_parse("attach_token").map_err(at(KIND))?;
    match (version, token) {
        (None, None) => Ok(None),
        (Some(version), Some(token)) if ControlVersion::exactly(&version).is_some() => {
            Ok(Some(token))
        }
        (Some(_), Some(_)) => Err(at(KIND)(FieldError::invalid(
            "control_version",
            "is not a known version",
        ))),
        _ => Err(LinkError::Contradiction {
            kind: KIND,
            reason: "`control_version` and `attach_token` belong together".to_owned(),
        }),
    }
}

fn ack(mut fields: Fields) -> Result<LeaseKey, FieldError> {
    let lease = key(&mut fields)?;
    fields.end()?;
    Ok(lease)
}

fn result(mut fields: Fields) -> Result<JobResult, LinkError> {
    const KIND: &str = "result";
    let lease = key(&mut fields).map_err(at(KIND))?;
    let text = fields.opt_text("result").map_err(at(KIND))?;
    let candidate = fields.opt_parse("candidate_sha").map_err(at(KIND))?;
    let failure: Option<WorkerFailure> = fields.opt_parse("error").map_err(at(KIND))?;
    let disposition = fields.opt_text("disposition").map_err(at(KIND))?;
    fields.end().map_err(at(KIND))?;
    let contradiction = |reason: String| LinkError::Contradiction { kind: KIND, reason };
    let completion = match (failure, candidate, text) {
        (Some(failure), None, None) => {
            let named = disposition.as_deref().unwrap_or_default();
            let follows = failure.disposition().as_str();
            if !named.is_empty() && named != follows {
                let reason = format!("`{failure}` is `{follows}`");
                return Err(contradiction(reason));
            }
            Completion::Failed(failure)
        }
        (Some(_), ..) => {
            return Err(contradiction(
                "an `error` stands beside a result".to_owned(),
            ));
        }
        (None, ..) if disposition.is_some() => {
            return Err(contradiction(
                "a `disposition` stands without an `error`".to_owned(),
            ));
        }
        (None, Some(sha), report) => Completion::Candidate {
            sha,
            report: report
                .filter(|report| !report.is_empty())
                .map(|report| AgentReport::parse(&report))
                .transpose()
                .map_err(|error| contradiction(format!("the agent report is invalid: {error}")))?,
        },
        (None, None, text) => Completion::Text {
            result: text.unwrap_or_default(),
        },
    };
    Ok(JobResult { lease, completion })
}

fn lease(mut fields: Fields) -> Result<GateMessage, LinkError> {
    const KIND: &str = "lease";
    let lease = key(&mut fields).map_err(at(KIND))?;
    let activity_version = version(&mut fields).map_err(at(KIND))?;
    let attach_token = control(&mut fields)?;
    let input = fields.opt_text("input").map_err(at(KIND))?;
    let task = fields.opt_object("task").map_err(at(KIND))?;
    let policy = fields.object("policy").map_err(at(KIND))?;
    fields.end().map_err(at(KIND))?;
    let work = match (input, task) {
        (Some(_), Some(_)) | (None, None) => {
            return Err(LinkError::Contradiction {
                kind: KIND,
                reason: "it must have either `input` or `task`".to_owned(),
            });
        }
        (Some(input), None) => {
            Work::text(input).map_err(|error| FieldError::invalid("input", error.to_string()))
        }
        (None, Some(task)) => CodingTask::from_fields(task).map(Work::Coding),
    };
    let content = work.and_then(|work| Ok((work, ResolvedPolicy::from_fields(policy)?)));
    match content {
        Ok((work, policy)) => Ok(GateMessage::Lease(Box::new(Lease {
            lease,
            activity_version,
            attach_token,
            work,
            policy,
        }))),
        // The shape is that of this protocol, only a value is not: the Gate must
        // hear that this job cannot be done, or it would send it again.
        Err(FieldError::Invalid { path, reason }) => {
            Ok(GateMessage::UnacceptableLease(UnacceptableLease {
                lease,
                reason: format!("`{path}`: {reason}"),
            }))
        }
        Err(source) => Err(LinkError::Field { kind: KIND, source }),
    }
}
