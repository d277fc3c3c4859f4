//! Values of every type that travels, at random and always valid.

use attest_plugin_protocol::{
    AfterStep, Annotation, Announcement, BeforeStep, Decision, Finding, Payload, PipelinePayload,
    Severity, StepOutput, StepPlan, Verdict,
};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use strict_json::{Json, Object};

fn text() -> impl Strategy<Value = String> {
    // Line feeds, quotes, NUL and wide characters are what framing could stumble over.
    "[a-z\"\\\\\n\r\u{0}\u{2028}€😀/ ]{0,12}"
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    vec(text(), 0..4)
}

pub(crate) fn object() -> impl Strategy<Value = Object> {
    members(json().boxed())
}

fn members(value: BoxedStrategy<Json>) -> impl Strategy<Value = Object> {
    // A map has each key once; its order is turned around so that sorting has something to do.
    btree_map(text(), value, 0..4)
        .prop_map(|members| Object::from_members(members.into_iter().rev().collect()).unwrap())
}

fn json() -> impl Strategy<Value = Json> {
    // Doubles with a fraction: others come back as what they are written like.
    let number = (-1e9..1e9).prop_map(|number: f64| Json::Number(number.trunc() + 0.5));
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        any::<i64>().prop_map(Json::Integer),
        (1 << 63..=u64::MAX).prop_map(Json::Unsigned),
        number,
        text().prop_map(Json::Text),
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Json::Array),
            members(inner.boxed()).prop_map(Json::Object),
        ]
    })
}

fn step_plan() -> impl Strategy<Value = StepPlan> {
    let lists = (texts(), texts(), texts());
    let rest = (
        btree_map(text(), text(), 0..3),
        option::of(text()),
        option::of(text()),
        any::<bool>(),
        option::of(any::<u64>()),
    );
    (text(), text(), lists, rest).prop_map(|(name, run, (needs, inputs, outputs), rest)| {
        let (env, working_dir, capsule, cache, timeout_secs) = rest;
        StepPlan {
            name,
            run,
            needs,
            inputs,
            outputs,
            env,
            working_dir,
            capsule,
            cache,
            timeout_secs,
        }
    })
}

fn pipeline() -> impl Strategy<Value = Payload> {
    let names = (
        option::of(text()),
        text(),
        option::of(text()),
        option::of(text()),
    );
    (names, vec(step_plan(), 0..4)).prop_map(|((path, pipeline_hash, name, version), steps)| {
        Payload::Pipeline(PipelinePayload {
            path,
            pipeline_hash,
            name,
            version,
            steps,
        })
    })
}

fn before_step() -> impl Strategy<Value = Payload> {
    let lists = (texts(), texts(), texts());
    let hashes = (text(), text(), option::of(text()));
    (text(), text(), lists, hashes, any::<bool>()).prop_map(
        |(name, run, (needs, inputs, outputs), hashes, cache_hit)| {
            let (input_hash, command_hash, capsule_hash) = hashes;
            Payload::BeforeStep(BeforeStep {
                name,
                run,
                needs,
                inputs,
                outputs,
                input_hash,
                command_hash,
                capsule_hash,
                cache_hit,
            })
        },
    )
}

fn after_step() -> impl Strategy<Value = Payload> {
    let hashes = (text(), text(), option::of(text()));
    let numbers = (any::<u64>(), any::<i32>(), any::<bool>());
    let output = (text(), text(), any::<bool>(), any::<bool>()).prop_map(
        |(stdout, stderr, stdout_truncated, stderr_truncated)| StepOutput {
            stdout,
            stderr,
            stdout_truncated,
            stderr_truncated,
        },
    );
    (text(), hashes, numbers, option::of(output)).prop_map(|(name, hashes, numbers, output)| {
        let (input_hash, output_hash, capsule_hash) = hashes;
        let (duration_secs, exit_code, cache_hit) = numbers;
        Payload::AfterStep(AfterStep {
            name,
            input_hash,
            output_hash,
            duration_secs,
            exit_code,
            cache_hit,
            capsule_hash,
            output,
        })
    })
}

pub(crate) fn payload() -> impl Strategy<Value = Payload> {
    prop_oneof![
        pipeline(),
        before_step(),
        after_step(),
        object().prop_map(Payload::Receipt),
    ]
}

fn finding() -> impl Strategy<Value = Finding> {
    (
        text(),
        select(&Severity::ALL[..]),
        text(),
        option::of(text()),
    )
        .prop_map(|(rule, severity, message, resource)| {
            Finding::new(rule, severity, message, resource).unwrap()
        })
}

pub(crate) fn verdict() -> impl Strategy<Value = Verdict> {
    let annotation = object().prop_map(|object| Annotation::new(object).unwrap());
    (
        select(&Decision::ALL[..]),
        vec(finding(), 0..6),
        option::of(annotation),
    )
        .prop_map(|(decision, findings, annotation)| Verdict {
            decision,
            findings,
            annotation,
        })
}

pub(crate) fn announcement() -> impl Strategy<Value = Announcement> {
    ("[a-z0-9-]{1,32}", text(), texts(), any::<bool>()).prop_map(
        |(name, version, hooks, deterministic)| Announcement {
            hooks,
            ..Announcement::new(name.parse().unwrap(), version, &[], deterministic)
        },
    )
}
