//! Records of evidence: what each phase may say, with durations that every Gate accepts.
//!
//! No record carries a byte of anything that a plugin, a check or git printed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bounded::GitSha;
use forge_domain::{EvidenceId, EvidenceRecord, ExecutionLimits, Output, Phase, Reason};

/// Longest durations that an original Gate believes, whatever the policy says.
const LONGEST_CHECK: Duration = Duration::from_secs(10 * 60);
const LONGEST_CLEANUP: Duration = Duration::from_secs(10);
const LONGEST_OTHER: Duration = Duration::from_secs(15 * 60);

/// Makes the records of one attempt.
#[derive(Debug, Clone)]
pub(crate) struct Recorder {
    base: GitSha,
    limits: ExecutionLimits,
}

impl Recorder {
    /// Records about an attempt with this base, under these limits.
    pub(crate) const fn new(base: GitSha, limits: ExecutionLimits) -> Self {
        Self { base, limits }
    }

    /// A record of anything but a check.
    pub(crate) fn event(&self, reason: Reason, took: Duration) -> EvidenceRecord {
        EvidenceRecord {
            evidence_id: new_id(),
            reason,
            check_index: None,
            exit_code: None,
            duration_ms: self.milliseconds(reason.phase(), took),
            output: Output::Empty,
            base_sha: self.base,
            candidate_sha: None,
        }
    }

    /// A record of a check.
    pub(crate) fn check(
        &self,
        index: u16,
        reason: Reason,
        exit_code: Option<u8>,
        output: Output,
        took: Duration,
    ) -> EvidenceRecord {
        EvidenceRecord {
            check_index: Some(index),
            exit_code,
            output,
            ..self.event(reason, took)
        }
    }

    /// What was really measured, cut to what the policy and an original Gate allow to say.
    fn milliseconds(&self, phase: Phase, took: Duration) -> u64 {
        let (policy, original) = match phase {
            Phase::ScopedCheck => (self.limits.check_timeout, LONGEST_CHECK),
            Phase::Cleanup => (self.limits.cleanup_timeout, LONGEST_CLEANUP),
            Phase::Plugin => (self.limits.plugin_timeout, LONGEST_OTHER),
            Phase::Preparation | Phase::WorkspaceValidation | Phase::CandidateCommit => (
                self.limits.plugin_timeout.max(self.limits.git_timeout),
                LONGEST_OTHER,
            ),
        };
        u64::try_from(took.min(policy).min(original).as_millis()).unwrap_or(u64::MAX)
    }
}

/// A fresh id; it need not be secret, only distinct within one attempt.
fn new_id() -> EvidenceId {
    let mut bytes = [0; 16];
    if getrandom::fill(&mut bytes).is_err() {
        // A system without random bytes: count.
        static LAST: AtomicU64 = AtomicU64::new(0);
        let count = LAST.fetch_add(1, Ordering::Relaxed);
        for (place, byte) in bytes.iter_mut().zip(count.to_le_bytes()) {
            *place = byte;
        }
    }
    EvidenceId::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorder(limit: Duration) -> Recorder {
        let limits = ExecutionLimits {
            plugin_timeout: limit,
            check_timeout: limit,
            git_timeout: limit,
            cleanup_timeout: limit,
            plugin_output_bytes: 1,
            check_output_bytes: 1,
            git_output_bytes: 1,
        };
        Recorder::new("1".repeat(40).parse().unwrap(), limits)
    }

    #[test]
    fn durations_are_cut_to_what_an_original_gate_believes() {
        let recorder = recorder(Duration::from_secs(3600));
        let hour = Duration::from_secs(3600);
        let check = recorder.check(0, Reason::ScopedCheckPassed, Some(0), Output::Empty, hour);
        assert_eq!(check.duration_ms, 600_000);
        assert_eq!(
            recorder.event(Reason::CleanupFailed, hour).duration_ms,
            10_000
        );
        assert_eq!(
            recorder.event(Reason::PluginFailed, hour).duration_ms,
            900_000
        );
        assert_eq!(
            recorder
                .event(Reason::CandidateCommitFailed, hour)
                .duration_ms,
            900_000
        );
    }

    #[test]
    fn durations_are_cut_to_the_policy_of_the_attempt() {
        let recorder = recorder(Duration::from_secs(2));
        let check = recorder.check(
            0,
            Reason::ScopedCheckTimeout,
            None,
            Output::Empty,
            Duration::from_secs(3),
        );
        assert_eq!(check.duration_ms, 2000);
        let short = recorder.event(Reason::PluginFailed, Duration::from_millis(15));
        assert_eq!(short.duration_ms, 15);
    }

    #[test]
    fn only_checks_have_an_index_and_an_exit_code() {
        let recorder = recorder(Duration::from_secs(2));
        for reason in Reason::ALL {
            let record = recorder.event(*reason, Duration::ZERO);
            assert_eq!(record.check_index, None);
            assert_eq!(record.exit_code, None);
        }
    }
}
