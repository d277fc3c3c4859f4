//! What holds for every policy and every payload.

use std::fmt::Write as _;

use attest_plugin_protocol::{
    AfterStep, BeforeStep, FINDINGS, MESSAGE_BYTES, Payload, PipelinePayload, StepPlan,
};
use proptest::prelude::*;
use strict_json::{Json, Object};

use crate::judge;
use crate::policy::Policy;

/// Texts that often match one another.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "a", "b", "a/b", "make", "make x", "x;y", ".", "./a/", "\n"
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ]
}

fn pattern() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["*", "a", "b*", "make*", "?", "[!a]*", "*;*", "a/*"])
}

fn decision() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["warn", "deny"])
}

/// The table of one rule without its id.
fn rule() -> impl Strategy<Value = String> {
    let keys = prop_oneof![
        (pattern(), any::<bool>(), decision()).prop_map(|(one, ordered, unknown)| (
            "step",
            format!(
                "required = [\"{one}\", \"other\"]\nordered = {ordered}\nif_unknown = \"{unknown}\""
            )
        )),
        (pattern(), pattern()).prop_map(|(steps, deny)| (
            "command",
            format!("steps = [\"{steps}\"]\nallow = [\"make\", \"make *\"]\ndeny = [\"{deny}\"]")
        )),
        pattern().prop_map(|one| ("env", format!("forbidden = [\"{one}\"]"))),
        (pattern(), pattern(), decision()).prop_map(|(steps, one, unknown)| (
            "output",
            format!("steps = [\"{steps}\"]\nrequired = [\"{one}\"]\nif_unknown = \"{unknown}\"")
        )),
        (0_u64..4, 0_u64..4).prop_map(|(step, total)| (
            "duration",
            format!("step_secs = {step}\ntotal_secs = {total}")
        )),
    ];
    (keys, decision()).prop_map(|((table, keys), decision)| {
        format!("decision = \"{decision}\"\nseverity = \"low\"\n{keys}\n|{table}")
    })
}

fn policy(rules: &[String]) -> Policy {
    let mut text = "version = 1\n".to_owned();
    for (number, rule) in rules.iter().enumerate() {
        let (keys, table) = rule.rsplit_once('|').unwrap();
        let _infallible = writeln!(text, "[[{table}]]\nid = \"r{number}\"\n{keys}");
    }
    Policy::parse(text.as_bytes()).unwrap()
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(word(), 0..4)
}

fn plan() -> impl Strategy<Value = StepPlan> {
    let env = prop::collection::btree_map(word(), word(), 0..3);
    (word(), word(), texts(), texts(), env).prop_map(|(name, run, needs, outputs, env)| StepPlan {
        name,
        run,
        needs,
        outputs,
        env,
        ..StepPlan::default()
    })
}

/// Any JSON, with the keys that a receipt has more often than others.
fn json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        (-2_i64..4).prop_map(Json::Integer),
        any::<u64>().prop_map(Json::Unsigned),
        word().prop_map(Json::Text),
    ];
    leaf.prop_recursive(5, 60, 5, |inner| {
        let key = prop::sample::select(vec![
            "steps",
            "name",
            "exit_code",
            "duration_secs",
            "provenance",
            "artifacts",
            "needs",
            "outputs",
            "step",
            "path",
            "artifact_count",
            "total_duration_secs",
            "timestamp",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::Array),
            prop::collection::btree_map(key, inner, 0..6).prop_map(|members| {
                let members = members.into_iter();
                let members = members.map(|(key, value)| (key.to_owned(), value));
                Json::Object(Object::from_members(members.collect()).unwrap())
            }),
        ]
    })
}

fn payload() -> impl Strategy<Value = Payload> {
    prop_oneof![
        prop::collection::vec(plan(), 0..5).prop_map(|steps| Payload::Pipeline(PipelinePayload {
            steps,
            ..PipelinePayload::default()
        })),
        (word(), word(), texts()).prop_map(|(name, run, outputs)| {
            Payload::BeforeStep(BeforeStep {
                name,
                run,
                outputs,
                ..BeforeStep::default()
            })
        }),
        (word(), 0_u64..4).prop_map(|(name, duration_secs)| {
            Payload::AfterStep(AfterStep {
                name,
                duration_secs,
                ..AfterStep::default()
            })
        }),
        json().prop_map(|value| {
            Payload::Receipt(match value {
                Json::Object(object) => object,
                other => Object::from_members(vec![("steps".to_owned(), other)]).unwrap(),
            })
        }),
    ]
}

proptest! {
    #[test]
    fn every_verdict_is_within_the_limits_and_a_function_of_the_payload(
        rules in prop::collection::vec(rule(), 1..5), payload in payload(),
    ) {
        let policy = policy(&rules);
        let verdict = judge(&policy, &payload);
        prop_assert!(verdict.findings.len() <= FINDINGS);
        prop_assert!(verdict.annotation.is_some());
        prop_assert!(attest_plugin_protocol::encode::verdict(1, &verdict).len() <= MESSAGE_BYTES);
        // No decision without a reason, and no reason without a decision.
        let quiet = verdict.decision == attest_plugin_protocol::Decision::Allow;
        prop_assert_eq!(quiet, verdict.findings.is_empty());
        prop_assert_eq!(judge(&policy, &payload), verdict);
    }

    #[test]
    fn one_rule_more_never_makes_a_decision_milder(
        rules in prop::collection::vec(rule(), 2..5), payload in payload(),
    ) {
        let (_, fewer) = rules.split_last().unwrap();
        let before = judge(&policy(fewer), &payload);
        let after = judge(&policy(&rules), &payload);
        prop_assert!(after.decision >= before.decision);
        prop_assert!(after.findings.len() >= before.findings.len());
    }

    #[test]
    fn any_bytes_are_a_policy_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        drop(Policy::parse(&bytes));
    }
}
