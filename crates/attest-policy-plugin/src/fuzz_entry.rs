//! The bodies of the fuzz targets, shared with the test that replays their corpora.

use attest_plugin_protocol::{
    AfterStep, BeforeStep, Decision, FINDINGS, MESSAGE_BYTES, Payload, PipelinePayload, StepPlan,
    Verdict,
};
use strict_json::{Layout, Limits, Object};

use crate::policy::Policy;
use crate::{judge, words};

/// A rule of each kind that needs something of a receipt.
const WHOLE: &[u8] = b"version = 1
[[step]]
id = \"s\"
decision = \"deny\"
severity = \"high\"
required = [\"build\", \"*\"]
ordered = true
[[output]]
id = \"o\"
decision = \"warn\"
severity = \"low\"
required = [\"*\"]
[[duration]]
id = \"d\"
decision = \"deny\"
severity = \"info\"
step_secs = 1
total_secs = 1
";

/// Reads a policy and judges a payload of each hook by it.
///
/// # Panics
/// A rule of this crate is broken.
pub fn policy(bytes: &[u8]) {
    let policy = match Policy::parse(bytes) {
        Ok(policy) => policy,
        Err(error) => {
            let text = error.to_string();
            assert!(!bounded::text::has_control_or_format(&text), "{text:?}");
            return;
        }
    };
    assert!(!policy.rules.is_empty(), "a policy has a rule");
    for rule in &policy.rules {
        let text = words::says(rule);
        assert!(!bounded::text::has_control_or_format(&text), "{text:?}");
    }
    let (name, run) = ("build".to_owned(), "make; true\n".to_owned());
    let plan = StepPlan {
        name: name.clone(),
        run: run.clone(),
        needs: vec![name.clone()],
        outputs: vec!["./out/".to_owned()],
        env: [("LD_PRELOAD".to_owned(), String::new())].into(),
        ..StepPlan::default()
    };
    let before = BeforeStep {
        name: name.clone(),
        run,
        ..BeforeStep::default()
    };
    let after = AfterStep {
        name,
        duration_secs: u64::MAX,
        ..AfterStep::default()
    };
    let pipeline = PipelinePayload {
        steps: vec![plan],
        ..PipelinePayload::default()
    };
    for payload in [
        Payload::Pipeline(pipeline),
        Payload::BeforeStep(before),
        Payload::AfterStep(after),
        Payload::Receipt(Object::default()),
    ] {
        check(&judge(&policy, &payload));
    }
}

/// Judges arbitrary JSON as a receipt.
///
/// # Panics
/// A rule of this crate is broken.
pub fn receipt(bytes: &[u8]) {
    let limits = Limits {
        bytes: MESSAGE_BYTES,
        depth: 64,
    };
    let Ok(object) = strict_json::parse_object(bytes, &limits, Layout::Spaced) else {
        return;
    };
    let policy = Policy::parse(WHOLE);
    assert!(policy.is_ok(), "{policy:?}");
    let payload = Payload::Receipt(object);
    for policy in policy.iter() {
        let verdict = judge(policy, &payload);
        check(&verdict);
        assert_eq!(judge(policy, &payload), verdict);
    }
}

fn check(verdict: &Verdict) {
    assert!(verdict.findings.len() <= FINDINGS);
    assert!(verdict.annotation.is_some());
    let quiet = verdict.decision == Decision::Allow;
    assert_eq!(quiet, verdict.findings.is_empty(), "{verdict:?}");
    for finding in &verdict.findings {
        let text = finding.message();
        assert!(!bounded::text::has_control_or_format(text), "{text:?}");
    }
    let line = attest_plugin_protocol::encode::verdict(1, verdict);
    assert!(line.len() <= MESSAGE_BYTES);
}
