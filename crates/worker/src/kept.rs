//! What is kept of an attempt that has ended until the Gate has acknowledged it.
//!
//! One strict JSON object with a version; it holds nothing that the Gate would not be sent.

use std::time::Duration;

use forge_domain::{AgentReport, Completion, EvidenceBatch, EvidenceRecord, SlotId};
use gate_link::{AttachToken, LeaseKey};
use serde::Serialize;
use strict_json::{FieldError, Fields, JsonError, Layout, Limits, parse_object};

/// The largest file that is read. A result is at most 64 KiB of text, which takes six times that
/// where every character is escaped, and evidence at most 96 KiB.
pub(crate) const MAX_KEPT_BYTES: u64 = 1 << 20;
const VERSION: u64 = 1;
const MAX_DEPTH: usize = 8;

/// An undelivered result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Kept {
    /// Whose it is; only the same slot may deliver it.
    pub(crate) slot: SlotId,
    pub(crate) lease: LeaseKey,
    pub(crate) token: AttachToken,
    /// The time to live of its lease, for the heartbeats of the delivery.
    pub(crate) ttl: Duration,
    pub(crate) report: Report,
}

/// How an attempt ended, and what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Report {
    pub(crate) evidence: Vec<EvidenceRecord>,
    pub(crate) completion: Completion,
}

/// Why a file is none.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Damaged {
    #[error("it is not one strict JSON object: {0}")]
    Json(#[from] JsonError),
    #[error("{0}")]
    Field(#[from] FieldError),
    #[error("it has no end, or more than one")]
    NotOneEnd,
    #[error("it is of version {0}, and this program reads version {VERSION}")]
    Version(u64),
}

impl Kept {
    /// The content of the file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (mut text, mut sha, mut report, mut failure) = (None, None, None, None);
        match &self.report.completion {
            Completion::Text { result } => text = Some(result.as_str()),
            Completion::Candidate {
                sha: commit,
                report: said,
            } => {
                sha = Some(commit.as_ref());
                report = said.as_ref().map(AgentReport::canonical);
            }
            Completion::Failed(why) => failure = Some(why.code().as_str()),
        }
        let mut bytes = strict_json::to_line(&File {
            version: VERSION,
            slot: self.slot.to_string(),
            job_id: self.lease.job_id.as_str(),
            attempt_id: self.lease.attempt_id.as_str(),
            attach_token: self.token.reveal(),
            lease_ttl_ms: u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX),
            evidence: &self.report.evidence,
            text,
            candidate_sha: sha,
            agent_report: report.as_deref(),
            failure,
        });
        bytes.push(b'\n');
        bytes
    }

    /// Reads a file back.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Damaged> {
        let limits = Limits {
            bytes: usize::try_from(MAX_KEPT_BYTES).unwrap_or(usize::MAX),
            depth: MAX_DEPTH,
        };
        let mut fields = parse_object(bytes, &limits, Layout::Spaced)?.fields("");
        match fields.u64("version")? {
            VERSION => {}
            other => return Err(Damaged::Version(other)),
        }
        let kept = Self {
            slot: fields.parse("slot")?,
            lease: LeaseKey {
                job_id: fields.parse("job_id")?,
                attempt_id: fields.parse("attempt_id")?,
            },
            token: fields.parse("attach_token")?,
            ttl: Duration::from_millis(fields.u64("lease_ttl_ms")?),
            report: Report {
                evidence: evidence(&mut fields)?,
                completion: completion(&mut fields)?,
            },
        };
        fields.end()?;
        Ok(kept)
    }
}

fn evidence(fields: &mut Fields) -> Result<Vec<EvidenceRecord>, FieldError> {
    const FIELD: &str = "evidence";
    let records = fields
        .array(FIELD)?
        .into_iter()
        .map(|element| EvidenceRecord::from_fields(element.object()?))
        .collect::<Result<Vec<_>, _>>()?;
    if !records.is_empty() {
        // The rules of a batch: it is sent as one.
        EvidenceBatch::new(records.clone())
            .map_err(|error| FieldError::invalid(FIELD, error.to_string()))?;
    }
    Ok(records)
}

fn completion(fields: &mut Fields) -> Result<Completion, Damaged> {
    let text = fields.opt_text("text")?;
    let sha = fields.opt_parse("candidate_sha")?;
    let report = fields
        .opt_text("agent_report")?
        .map(|report| AgentReport::parse(&report))
        .transpose()
        .map_err(|error| FieldError::invalid("agent_report", error.to_string()))?;
    let failure = fields.opt_parse("failure")?;
    match (text, sha, report, failure) {
        (Some(result), None, None, None) => Ok(Completion::Text { result }),
        (None, Some(sha), report, None) => Ok(Completion::Candidate { sha, report }),
        (None, None, None, Some(failure)) => Ok(Completion::Failed(failure)),
        _ => Err(Damaged::NotOneEnd),
    }
}

#[derive(Serialize)]
struct File<'a> {
    version: u64,
    slot: String,
    job_id: &'a str,
    attempt_id: &'a str,
    attach_token: &'a str,
    lease_ttl_ms: u64,
    evidence: &'a [EvidenceRecord],
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    candidate_sha: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_report: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'a str>,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::evidence::Recorder;
    use bounded::ReportText;
    use forge_domain::{ExecutionLimits, Output, Reason, WorkerFailure};

    const SHA: &str = "1111111111111111111111111111111111111111";

    fn record() -> EvidenceRecord {
        let second = Duration::from_secs(1);
        let limits = ExecutionLimits {
            plugin_timeout: second,
            check_timeout: second,
            git_timeout: second,
            cleanup_timeout: second,
            plugin_output_bytes: 1,
            check_output_bytes: 1,
            git_output_bytes: 1,
        };
        let output = Output::Redacted { truncated: true };
        Recorder::new(SHA.parse().unwrap(), limits).check(
            0,
            Reason::ScopedCheckPassed,
            Some(0),
            output,
            Duration::from_millis(7),
        )
    }

    pub(crate) fn kept(slot: &str, completion: Completion) -> Kept {
        Kept {
            slot: slot.parse().unwrap(),
            lease: LeaseKey {
                job_id: "a".repeat(32).parse().unwrap(),
                attempt_id: "b".repeat(32).parse().unwrap(),
            },
            token: "c".repeat(32).parse().unwrap(),
            ttl: Duration::from_secs(30),
            report: Report {
                evidence: vec![record()],
                completion,
            },
        }
    }

    pub(crate) fn text(result: &str) -> Completion {
        Completion::Text {
            result: result.to_owned(),
        }
    }

    fn ends() -> [Completion; 5] {
        let report = AgentReport::new(
            ReportText::new("did <it>").unwrap(),
            vec![ReportText::new("a change").unwrap()],
        );
        let sha = SHA.parse().unwrap();
        [
            text(""),
            text("<a>&\u{2028}\u{0}é"),
            Completion::Candidate { sha, report: None },
            Completion::Candidate {
                sha,
                report: Some(report.unwrap()),
            },
            Completion::Failed(WorkerFailure::ScopedTestFailed),
        ]
    }

    #[test]
    fn every_end_comes_back_as_it_was() {
        for end in ends() {
            let kept = kept("worker-1#3", end);
            assert_eq!(Kept::decode(&kept.encode()).unwrap(), kept);
        }
        let bare = Kept {
            report: Report {
                evidence: Vec::new(),
                completion: text("x"),
            },
            ..kept("worker-1", text("x"))
        };
        assert_eq!(Kept::decode(&bare.encode()).unwrap(), bare);
    }

    #[test]
    fn the_longest_text_fits_the_limit() {
        let kept = kept("worker-1", text(&"\u{0}".repeat(65_536)));
        assert!(u64::try_from(kept.encode().len()).unwrap() <= MAX_KEPT_BYTES);
    }

    /// Whatever is cut off, doubled or changed by one bit is refused or is another whole result;
    /// it never panics.
    #[test]
    fn a_damaged_file_is_refused() {
        let whole = kept("worker-1", text("HELLO")).encode();
        for end in 0..whole.len() - 1 {
            assert!(Kept::decode(&whole[..end]).is_err(), "{end}");
        }
        for at in 0..whole.len() {
            let mut bent = whole.clone();
            bent[at] ^= 4;
            drop(Kept::decode(&bent));
        }
        assert!(Kept::decode(&whole.repeat(2)).is_err());
        let file = String::from_utf8(whole).unwrap();
        for (from, to) in [
            ("\"version\":1", "\"version\":2"),
            ("\"text\":\"HELLO\"", "\"text\":null"),
            (",\"text\":\"HELLO\"", ""),
            ("\"text\"", "\"failure\":\"execution_failed\",\"text\""),
            ("\"text\":\"HELLO\"", "\"failure\":\"other\""),
            ("\"slot\":\"worker-1\"", "\"slot\":\"worker-1#64\""),
            ("\"slot\"", "\"extra\":1,\"slot\""),
            ("\"slot\"", "\"slot\":\"worker-1\",\"slot\""),
            ("\"attach_token\":\"c", "\"attach_token\":\"C"),
        ] {
            let bent = file.replacen(from, to, 1);
            assert_ne!(bent, file, "{from}");
            assert!(Kept::decode(bent.as_bytes()).is_err(), "{to}");
        }
    }
}
