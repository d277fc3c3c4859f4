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
    Activity, ActivityVersion, Evidence, GateMessage, Heartbeat, JobResult, Lease, LeaseKey,
    UnacceptableLease, WorkerMessage,
};

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
