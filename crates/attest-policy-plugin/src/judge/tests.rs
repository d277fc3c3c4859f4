//! What each rule says of each payload, and what holds for all policies and payloads.

use attest_plugin_protocol::{
    AfterStep, BeforeStep, Decision, FINDINGS, Hook, MESSAGE_BYTES, Payload, PipelinePayload,
    Severity, StepPlan, Verdict,
};
use strict_json::{Json, Layout, Limits, Object};
use test_case::test_case;

use super::judge;
use crate::policy::Policy;

mod properties;

fn policy(text: &str) -> Policy {
    Policy::parse(format!("version = 1\n{text}").as_bytes()).unwrap()
}

/// A rule of a table with its own keys behind the ones that all have.
fn rule(table: &str, keys: &str) -> Policy {
    policy(&format!(
        "[[{table}]]\nid = \"r\"\ndecision = \"deny\"\nseverity = \"high\"\n{keys}\n"
    ))
}

fn step(name: &str, run: &str, needs: &[&str], outputs: &[&str]) -> StepPlan {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    StepPlan {
        name: name.to_owned(),
        run: run.to_owned(),
        needs: owned(needs),
        outputs: owned(outputs),
        ..StepPlan::default()
    }
}

fn pipeline(steps: Vec<StepPlan>) -> Payload {
    Payload::Pipeline(PipelinePayload {
        steps,
        ..PipelinePayload::default()
    })
}

fn object(text: &str) -> Object {
    let limits = Limits {
        bytes: 1 << 22,
        depth: 64,
    };
    strict_json::parse_object(text.as_bytes(), &limits, Layout::Spaced).unwrap()
}

fn receipt(text: &str) -> Payload {
    Payload::Receipt(object(text))
}

/// `resource: message` of each finding.
#[track_caller]
fn told(verdict: &Verdict, decision: Decision) -> Vec<String> {
    assert_eq!(verdict.decision, decision, "{verdict:?}");
    let findings = verdict.findings.iter();
    findings
        .map(|finding| {
            format!(
                "{}: {}",
                finding.resource().unwrap_or_default(),
                finding.message()
            )
        })
        .collect()
}

fn annotation(verdict: &Verdict, key: &str) -> Json {
    match verdict.annotation.as_ref().unwrap().to_json() {
        Json::Object(object) => object.get(key).unwrap().clone(),
        other => panic!("{other:?}"),
    }
}

const WHOLE: &str = r#"{"steps":[
    {"name":"build","exit_code":0,"duration_secs":3},
    {"name":"test","exit_code":0,"duration_secs":8}],
  "timestamp":"2026-11-30T12:00:00Z","total_duration_secs":11,
  "provenance":{"steps":[
    {"name":"build","needs":[],"outputs":["./out/","log"]},
    {"name":"test","needs":["build"],"outputs":[]}],
   "artifacts":[{"step":"build","path":"out/app"},{"step":"build","path":"log"}]}}"#;

#[test]
fn required_steps_are_there() {
    let policy = rule("step", "required = [\"build\", \"lint*\"]");
    let verdict = judge(&policy, &pipeline(vec![step("build", "make", &[], &[])]));
    assert_eq!(
        told(&verdict, Decision::Deny),
        ["pipeline: no step matches `lint*`, which is required"]
    );
    let both = vec![
        step("build", "make", &[], &[]),
        step("lint-c", "x", &[], &[]),
    ];
    assert!(told(&judge(&policy, &pipeline(both)), Decision::Allow).is_empty());
}

#[test]
fn order_is_what_needs_say() {
    let policy = rule(
        "step",
        "required = [\"build\", \"test\", \"ship\"]\nordered = true",
    );
    let through = |needs: &[&str]| {
        pipeline(vec![
            step("build", "make", &[], &[]),
            step("mid", "x", &["build"], &[]),
            step("test", "make test", &["mid"], &[]),
            step("ship", "make ship", needs, &[]),
        ])
    };
    assert!(told(&judge(&policy, &through(&["test"])), Decision::Allow).is_empty());
    assert_eq!(
        told(&judge(&policy, &through(&["mid"])), Decision::Deny),
        [
            "step:ship: does not need step `test`, directly or through others, so it may run before it"
        ]
    );
}

#[test]
fn needs_in_a_circle_and_of_nobody_end() {
    let policy = rule("step", "required = [\"a\", \"b\"]\nordered = true");
    let circle = vec![
        step("a", "x", &["b", "?"], &[]),
        step("b", "x", &["a"], &[]),
    ];
    assert!(told(&judge(&policy, &pipeline(circle)), Decision::Allow).is_empty());
}

#[test]
fn a_step_that_ended_badly_is_not_there() {
    let policy = rule("step", "required = [\"build\", \"test\"]\nordered = true");
    assert!(told(&judge(&policy, &receipt(WHOLE)), Decision::Allow).is_empty());
    let failed = WHOLE.replacen("\"test\",\"exit_code\":0", "\"test\",\"exit_code\":1", 1);
    assert_eq!(
        told(&judge(&policy, &receipt(&failed)), Decision::Deny),
        ["receipt: no step that matches `test` has ended well"]
    );
    let apart = WHOLE.replace("[\"build\"]", "[]");
    assert_eq!(
        told(&judge(&policy, &receipt(&apart)), Decision::Deny).len(),
        1
    );
}

#[test_case("make", &[] as &[&str])]
#[test_case("make -j2", &[])]
#[test_case("make; true", &["step:s: `make; true` is not allowed by `make`, `make *`"]; "an operator")]
#[test_case("make curl", &["step:s: `make curl` is denied by `*curl*`"]; "denied wins")]
#[test_case("  make -j2 \n", &[]; "white space at the ends")]
#[test_case("make\nmake", &["step:s: `make\\u{a}make` is not allowed by `make`, `make *`"]; "two lines")]
#[test_case("ninja", &["step:s: `ninja` is not allowed by `make`, `make *`"]; "unknown")]
fn commands(run: &str, findings: &[&str]) {
    let policy = rule(
        "command",
        "allow = [\"make\", \"make *\"]\ndeny = [\"*curl*\"]",
    );
    let decision = match findings {
        [] => Decision::Allow,
        _ => Decision::Deny,
    };
    let planned = pipeline(vec![step("s", run, &[], &[])]);
    assert_eq!(told(&judge(&policy, &planned), decision), findings);
    let before = Payload::BeforeStep(BeforeStep {
        name: "s".to_owned(),
        run: run.to_owned(),
        ..BeforeStep::default()
    });
    assert_eq!(told(&judge(&policy, &before), decision), findings);
}

#[test]
fn only_selected_steps_are_judged() {
    let policy = rule("command", "steps = [\"deploy*\"]\ndeny = [\"*\"]");
    let steps = vec![
        step("build", "x", &[], &[]),
        step("deploy-a", "x", &[], &[]),
    ];
    let verdict = judge(&policy, &pipeline(steps));
    assert_eq!(
        told(&verdict, Decision::Deny),
        ["step:deploy-a: `x` is denied by `*`"]
    );
}

#[test]
fn forbidden_variables_also_of_the_pipeline() {
    let policy = rule("env", "forbidden = [\"LD_*\"]");
    let mut one = step("s", "x", &[], &[]);
    one.env = [("LD_PRELOAD", "evil.so"), ("OLD_LD_", "")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let verdict = judge(&policy, &pipeline(vec![one]));
    let told = told(&verdict, Decision::Deny);
    assert_eq!(
        told,
        ["step:s: sets variable `LD_PRELOAD`, which `LD_*` forbids"]
    );
    assert!(!told[0].contains("evil"), "values are nobody's business");
}

#[test]
fn outputs_are_declared_before_and_made_afterwards() {
    let policy = rule(
        "output",
        "steps = [\"build\"]\nrequired = [\"out\", \"log\"]",
    );
    let outputs: &[&str] = &["./out/", "log"];
    let good = pipeline(vec![step("build", "x", &[], outputs)]);
    assert!(told(&judge(&policy, &good), Decision::Allow).is_empty());
    let bad = pipeline(vec![step("build", "x", &[], &["out"])]);
    assert_eq!(
        told(&judge(&policy, &bad), Decision::Deny),
        ["step:build: declares no output that matches `log`"]
    );
    let none = pipeline(vec![step("other", "x", &[], outputs)]);
    assert_eq!(
        told(&judge(&policy, &none), Decision::Deny),
        ["pipeline: no step matches `build`"]
    );
    assert!(told(&judge(&policy, &receipt(WHOLE)), Decision::Allow).is_empty());
    let empty = WHOLE.replace("out/app", "other/app");
    assert_eq!(
        told(&judge(&policy, &receipt(&empty)), Decision::Deny),
        ["step:build: no artifact is `out` or below it"]
    );
    let failed = WHOLE.replacen("\"build\",\"exit_code\":0", "\"build\",\"exit_code\":9", 1);
    assert_eq!(
        told(&judge(&policy, &receipt(&failed)), Decision::Deny),
        ["step:build: has not ended well, so its outputs are not there"]
    );
}

#[test]
fn outputs_before_a_step() {
    let policy = rule("output", "steps = [\"build\"]\nrequired = [\"out\"]");
    let before = |name: &str| {
        Payload::BeforeStep(BeforeStep {
            name: name.to_owned(),
            ..BeforeStep::default()
        })
    };
    assert_eq!(
        told(&judge(&policy, &before("build")), Decision::Deny),
        ["step:build: declares no output that matches `out`"]
    );
    assert!(told(&judge(&policy, &before("test")), Decision::Allow).is_empty());
}

#[test]
fn artifacts_that_are_only_counted_cannot_be_judged() {
    let counted = WHOLE.replace(
        r#""artifacts":[{"step":"build","path":"out/app"},{"step":"build","path":"log"}]"#,
        r#""artifact_count":1001,"artifact_manifest_hash":"00""#,
    );
    assert!(counted.contains("artifact_count"));
    let strict = rule("output", "required = [\"*\"]");
    let verdict = judge(&strict, &receipt(&counted));
    assert_eq!(
        told(&verdict, Decision::Deny),
        [
            "receipt: cannot be judged: the receipt has 1001 artifacts, too many for the payload, which only counts them"
        ]
    );
    assert_eq!(
        annotation(&verdict, "unknown"),
        Json::Array(vec![Json::Text("r".to_owned())])
    );
    let lenient = rule("output", "required = [\"*\"]\nif_unknown = \"warn\"");
    assert_eq!(
        told(&judge(&lenient, &receipt(&counted)), Decision::Warn).len(),
        1
    );
}

#[test_case("step", "required = [\"a\", \"b\"]\nordered = true", 2)]
#[test_case("output", "required = [\"a\"]", 1)]
#[test_case("duration", "step_secs = 1\ntotal_secs = 1", 2)]
fn a_receipt_that_tells_nothing_is_not_silence(table: &str, keys: &str, findings: usize) {
    for text in [
        "{}",
        r#"{"steps":7,"provenance":[],"total_duration_secs":-1}"#,
        r#"{"steps":[{"name":null}],"provenance":{"steps":[{}],"artifacts":[0]}}"#,
    ] {
        let verdict = judge(&rule(table, keys), &receipt(text));
        let told = told(&verdict, Decision::Deny);
        assert_eq!(told.len(), findings, "{text}: {told:?}");
        assert!(
            told.iter().all(|it| it.contains("cannot be judged")),
            "{told:?}"
        );
    }
}

#[test]
fn durations_of_steps_and_of_the_run() {
    let policy = rule("duration", "step_secs = 7\ntotal_secs = 10");
    let after = |duration_secs| {
        Payload::AfterStep(AfterStep {
            name: "test".to_owned(),
            duration_secs,
            ..AfterStep::default()
        })
    };
    assert!(told(&judge(&policy, &after(7)), Decision::Allow).is_empty());
    assert_eq!(
        told(&judge(&policy, &after(8)), Decision::Deny),
        ["step:test: took 8 s, 7 s are the limit"]
    );
    assert_eq!(
        told(&judge(&policy, &receipt(WHOLE)), Decision::Deny),
        [
            "step:test: took 8 s, 7 s are the limit",
            "receipt: the run took 11 s, 10 s are the limit"
        ]
    );
}

#[test_case("2026-11-30T12:00:00Z", "2024-01-01T00:00:00Z"; "a fixed time")]
#[test_case("\"steps\":[", "\"reproducibility\":{\"runs\":2},\"steps\":["; "a comparison")]
fn zeros_of_a_comparison_are_no_durations(from: &str, to: &str) {
    let policy = rule("duration", "total_secs = 1000\nif_unknown = \"warn\"");
    let text = WHOLE.replacen(from, to, 1);
    assert!(told(&judge(&policy, &receipt(WHOLE)), Decision::Allow).is_empty());
    let told = told(&judge(&policy, &receipt(&text)), Decision::Warn);
    assert!(told[0].contains("two builds are compared"), "{told:?}");
}

#[test]
fn rules_of_other_hooks_are_named_and_nothing_depends_on_time() {
    let text = r#"
[[env]]
id = "early"
decision = "deny"
severity = "low"
forbidden = ["X"]
[[duration]]
id = "late"
decision = "warn"
severity = "info"
message = "Be quick"
total_secs = 5
"#;
    let policy = policy(text);
    let verdict = judge(&policy, &receipt(WHOLE));
    assert_eq!(
        told(&verdict, Decision::Warn),
        ["receipt: Be quick: the run took 11 s, 5 s are the limit"]
    );
    let annotation = verdict.annotation.clone().unwrap();
    let line = String::from_utf8(strict_json::to_line(&annotation)).unwrap();
    let digest = blake3::hash(format!("version = 1\n{text}").as_bytes()).to_hex();
    assert_eq!(
        line,
        format!(
            "{{\"denials\":0,\"hook\":\"receipt.finalize\",\"judged\":1,\"judged_elsewhere\":[\"early\"],\
             \"policy\":\"blake3:{digest}\",\"rules\":2,\"unknown\":[],\"warnings\":1}}"
        )
    );
    assert_eq!(judge(&policy, &receipt(WHOLE)), verdict);
}

#[test]
fn more_findings_than_a_verdict_takes_are_counted_and_denials_come_first() {
    let text = r#"
[[command]]
id = "soft"
decision = "warn"
severity = "critical"
deny = ["*"]
[[command]]
id = "hard"
decision = "deny"
severity = "low"
steps = ["s299"]
deny = ["*"]
"#;
    let run = "\u{1b}\"\\".repeat(2_000);
    let steps = (0..300).map(|number| step(&format!("s{number}"), &run, &[], &[]));
    let verdict = judge(&policy(text), &pipeline(steps.collect()));
    assert_eq!(verdict.decision, Decision::Deny);
    assert_eq!(verdict.findings.len(), FINDINGS);
    assert_eq!(verdict.findings[0].rule(), "hard");
    let last = verdict.findings.last().unwrap();
    assert_eq!(last.rule(), "attest-policy");
    assert_eq!(last.severity(), Severity::Critical);
    assert_eq!(
        last.message(),
        "46 more findings have no room in one verdict"
    );
    let line = attest_plugin_protocol::encode::verdict(u64::MAX, &verdict);
    assert!(line.len() < MESSAGE_BYTES / 2, "{}", line.len());
}

#[test]
fn exactly_as_many_findings_as_there_is_room_for() {
    let policy = rule("command", "deny = [\"*\"]");
    let steps = |count: usize| {
        let steps = (0..count).map(|number| step(&format!("s{number}"), "x", &[], &[]));
        judge(&policy, &pipeline(steps.collect())).findings
    };
    assert!(steps(FINDINGS).iter().all(|finding| finding.rule() == "r"));
    assert_eq!(steps(FINDINGS + 1).last().unwrap().rule(), "attest-policy");
}

#[test]
fn each_kind_is_judged_at_the_hooks_that_it_names() {
    let payloads = [
        pipeline(vec![]),
        Payload::BeforeStep(BeforeStep::default()),
        Payload::AfterStep(AfterStep::default()),
        receipt(WHOLE),
    ];
    let judged: Vec<Hook> = payloads.iter().map(Payload::hook).collect();
    assert_eq!(judged, Hook::ALL);
    for (table, keys, hooks) in [
        ("step", "required = [\"a\"]", [true, false, false, true]),
        ("command", "deny = [\"a\"]", [true, true, false, false]),
        ("env", "forbidden = [\"a\"]", [true, false, false, false]),
        ("output", "required = [\"a\"]", [true, true, false, true]),
        ("duration", "step_secs = 1", [false, false, true, true]),
        ("duration", "total_secs = 1", [false, false, false, true]),
    ] {
        let policy = rule(table, keys);
        let judged = payloads
            .iter()
            .map(|payload| annotation(&judge(&policy, payload), "judged") == Json::Integer(1));
        assert_eq!(judged.collect::<Vec<_>>(), hooks, "{table}");
    }
}
