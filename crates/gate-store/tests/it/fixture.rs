//! Jobs, policies, ids and times that tests are made of.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bounded::{GitSha, Hex32};
use forge_domain::{
    AttemptId, Completion, EvidenceBatch, EvidenceRecord, ExecutionLimits, ExecutionPolicy,
    Generation, Holder, JobId, Output, PolicyTarget, Priority, Reason, ResolvedPolicy, SlotId,
    Work,
};
use gate_store::{ClaimRequest, JobView, Lease, NewJob, Store, Submitted};
use jiff::Timestamp;

pub(crate) const BASE: &str = "1111111111111111111111111111111111111111";
pub(crate) const CANDIDATE: &str = "2222222222222222222222222222222222222222";
pub(crate) const TTL: i64 = 30;
pub(crate) const POOL: &str = "coding";

/// A moment, in seconds after an arbitrary start.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

/// An id that no other call in this process returns; the process is part of it.
fn fresh() -> Hex32 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let process = u64::from(std::process::id());
    Hex32::from_bytes(((u128::from(process) << 64) | u128::from(number)).to_be_bytes())
}

pub(crate) fn job_id() -> JobId {
    fresh().into()
}

pub(crate) fn attempt_id() -> AttemptId {
    fresh().into()
}

pub(crate) fn generation() -> Generation {
    fresh().into()
}

pub(crate) fn slot(text: &str) -> SlotId {
    text.parse().unwrap()
}

pub(crate) fn sha(text: &str) -> GitSha {
    text.parse().unwrap()
}

pub(crate) fn limits() -> ExecutionLimits {
    ExecutionLimits {
        plugin_timeout: Duration::from_secs(900),
        check_timeout: Duration::from_secs(600),
        git_timeout: Duration::from_secs(60),
        cleanup_timeout: Duration::from_secs(10),
        plugin_output_bytes: 1 << 20,
        check_output_bytes: 2048,
        git_output_bytes: 1 << 20,
    }
}

/// A policy with a TTL of 30 s, a retry base of 1 s and three attempts.
pub(crate) fn policy(pool: &str, coding: bool, max_attempts: u16) -> Arc<ResolvedPolicy> {
    let target = coding.then(|| PolicyTarget {
        repository_id: "agent-forge".parse().unwrap(),
        default_branch: "main".parse().unwrap(),
    });
    let execution =
        ExecutionPolicy::new(target, "codex".parse().unwrap(), Vec::new(), limits()).unwrap();
    let ttl = Duration::from_secs(TTL.unsigned_abs());
    Arc::new(
        ResolvedPolicy::new(
            pool.parse().unwrap(),
            ttl,
            Duration::from_secs(1),
            max_attempts,
            execution,
        )
        .unwrap(),
    )
}

pub(crate) fn coding_work() -> Work {
    let text = format!(
        r#"{{"repository_id":"agent-forge","base_sha":"{BASE}","instruction":"fix","tests":[["true"],["go","test"]]}}"#
    );
    Work::Coding(forge_domain::CodingTask::from_canonical(&text).unwrap())
}

pub(crate) fn text_job() -> NewJob {
    NewJob {
        id: job_id(),
        work: Work::text("hello".to_owned()).unwrap(),
        policy: policy(POOL, false, 3),
        priority: Priority::default(),
        source_ref: None,
        idempotency: None,
    }
}

pub(crate) fn coding_job() -> NewJob {
    NewJob {
        work: coding_work(),
        policy: policy(POOL, true, 3),
        ..text_job()
    }
}

pub(crate) async fn submit(store: &dyn Store, job: NewJob, now: Timestamp) -> JobView {
    match store.submit(job, now).await.unwrap() {
        Submitted::Created(job) => job,
        Submitted::Existing(job) => panic!("{} was there", job.id),
    }
}

/// A connected slot.
#[derive(Debug, Clone)]
pub(crate) struct Lane {
    pub(crate) slot: SlotId,
    pub(crate) generation: Generation,
}

impl Lane {
    pub(crate) async fn connect(store: &dyn Store, name: &str, now: Timestamp) -> Self {
        Self::connect_to(store, name, POOL, now).await
    }

    pub(crate) async fn connect_to(
        store: &dyn Store,
        name: &str,
        pool: &str,
        now: Timestamp,
    ) -> Self {
        let lane = Self {
            slot: slot(name),
            generation: generation(),
        };
        store
            .connect_slot(
                lane.slot.clone(),
                pool.parse().unwrap(),
                lane.generation,
                now,
            )
            .await
            .unwrap();
        lane
    }

    pub(crate) fn request(&self) -> ClaimRequest {
        ClaimRequest {
            slot: self.slot.clone(),
            generation: self.generation,
            attempt: attempt_id(),
            attach: None,
        }
    }

    pub(crate) async fn claim(&self, store: &dyn Store, now: Timestamp) -> Option<Lease> {
        store.claim(self.request(), now).await.unwrap()
    }

    pub(crate) fn holder(&self, lease: &Lease) -> Holder {
        Holder {
            attempt: lease.attempt,
            slot: self.slot.clone(),
            generation: self.generation,
        }
    }
}

pub(crate) fn text_result(text: &str) -> Completion {
    Completion::Text {
        result: text.to_owned(),
    }
}

pub(crate) fn candidate(report: Option<&str>) -> Completion {
    let report = report.map(|text| forge_domain::AgentReport::parse(text).unwrap());
    Completion::Candidate {
        sha: sha(CANDIDATE),
        report,
    }
}

/// A passed check of the coding job, with its own id.
pub(crate) fn passed(check: u16, candidate: Option<&str>) -> EvidenceRecord {
    EvidenceRecord {
        evidence_id: fresh().into(),
        reason: Reason::ScopedCheckPassed,
        check_index: Some(check),
        exit_code: Some(0),
        duration_ms: 15,
        output: Output::Redacted { truncated: false },
        base_sha: sha(BASE),
        candidate_sha: candidate.map(sha),
    }
}

pub(crate) fn batch(records: Vec<EvidenceRecord>) -> EvidenceBatch {
    EvidenceBatch::new(records).unwrap()
}
