//! Random receipts and pipelines: what is written reads back, to the same bytes.

use std::collections::BTreeMap;

use attest_receipt::declared::check_declared;
use attest_receipt::names;
use attest_receipt::pipeline::{Attestation, Pipeline, Step, StepAttestation};
use attest_receipt::receipt::{
    self, Artifact, ArtifactKind, Ci, CiProvider, Control, ControlStatus, Decision, DeclaredStep,
    Execution, Isolation, IsolationMode, PluginRecord, Provenance, Receipt, Reproducibility,
    Source, StepResult,
};
use attest_receipt::time::Time;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use strict_json::{Json, Object};

/// Longer than what a YAML key may be without `? ` in front.
const LONG: &str = concat!(
    "long long long long long long long long long long long long long long long long long long ",
    "long long long long long long long long long long long long long long long long long long",
);

/// Texts that emitters and readers of YAML have treated in different ways.
const TRICKY: &[&str] = &[
    "",
    " ",
    "null",
    "Null",
    "~",
    "true",
    "True",
    "yes",
    "no",
    "on",
    "1",
    "-1",
    "0",
    "01",
    "1.0",
    ".5",
    "1e5",
    "1e999",
    "0x1F",
    "0o17",
    "0b1",
    "1_000",
    ".nan",
    ".inf",
    "-.inf",
    "- a",
    "a: b",
    "a #b",
    "#",
    "&a",
    "*a",
    "!t",
    "|",
    ">",
    "%a",
    "@a",
    "`a",
    "{a",
    "[a",
    "]",
    "}",
    ",",
    "?",
    "-",
    "--- a",
    "...",
    "\n",
    "a\n",
    "a\n\n",
    "\na",
    " a\nb",
    "a\n b\n",
    "a\tb",
    "\t",
    "a \nb",
    "'",
    "\"",
    "'\"",
    "\\",
    "\r",
    "a\r\nb",
    "\0",
    "\u{1b}[1m",
    "\u{7f}",
    "\u{85}",
    "\u{a0}",
    "\u{2028}",
    "\u{feff}",
    "\u{fffd}",
    "\u{1f600}",
    "é",
    "<<",
    "=",
    "2026-11-30",
    "2026-11-30T12:00:00Z",
    LONG,
    "12e34567890123456789012345678901234567890123456789012345678901234567",
];

fn text() -> BoxedStrategy<String> {
    prop_oneof![
        3 => select(TRICKY).prop_map(str::to_owned),
        2 => any::<String>(),
        2 => "[a-z ]{0,12}",
        1 => vec(select(TRICKY), 2..4).prop_map(|parts| parts.concat()),
    ]
    .boxed()
}

fn texts() -> BoxedStrategy<Vec<String>> {
    vec(text(), 0..3).boxed()
}

fn time() -> BoxedStrategy<Time> {
    (0_i64..4_102_444_800, 0_i32..1_000_000_000, 0_u32..4)
        .prop_map(|(seconds, nanos, digits)| {
            let unit = [1_000_000_000, 1_000_000, 1_000, 1][digits as usize];
            let nanos = nanos / unit * unit;
            Time::from(jiff::Timestamp::new(seconds, nanos).unwrap())
        })
        .boxed()
}

fn hash() -> BoxedStrategy<String> {
    prop_oneof!["[0-9a-f]{64}", "[0-9]{64}", "[0-9]{2}e[0-9]{61}", text()].boxed()
}

fn step() -> BoxedStrategy<StepResult> {
    (
        (text(), hash(), hash(), any::<u64>()),
        (any::<i32>(), any::<bool>(), text(), text()),
        option::of(hash()),
    )
        .prop_map(|(a, b, capsule_hash)| StepResult {
            name: a.0,
            input_hash: a.1,
            output_hash: a.2,
            duration_secs: a.3,
            exit_code: b.0,
            cache_hit: b.1,
            stdout: b.2,
            stderr: b.3,
            capsule_hash,
        })
        .boxed()
}

fn source() -> BoxedStrategy<Source> {
    (
        option::of(text()),
        text(),
        option::of(text()),
        any::<bool>(),
    )
        .prop_map(|(repository, commit, branch, tracked_dirty)| Source {
            repository,
            commit,
            branch,
            tracked_dirty,
        })
        .boxed()
}

fn ci() -> BoxedStrategy<Ci> {
    let provider = select(&[CiProvider::Github, CiProvider::Gitlab][..]);
    (provider, option::of(text()), option::of(text()))
        .prop_map(|(provider, run_id, job_id)| Ci {
            provider,
            run_id,
            job_id,
        })
        .boxed()
}

fn declared() -> BoxedStrategy<DeclaredStep> {
    (text(), texts(), hash(), texts(), texts())
        .prop_map(
            |(name, needs, command_hash, inputs, outputs)| DeclaredStep {
                name,
                needs,
                command_hash,
                inputs,
                outputs,
            },
        )
        .boxed()
}

fn artifact() -> BoxedStrategy<Artifact> {
    let kind = select(&[ArtifactKind::File, ArtifactKind::Symlink][..]);
    (text(), text(), kind, hash(), text())
        .prop_map(|(step, path, kind, digest, algorithm)| Artifact {
            step,
            path,
            kind,
            digest,
            algorithm,
        })
        .boxed()
}

fn execution() -> BoxedStrategy<Execution> {
    prop_oneof![
        Just(Execution::Native),
        texts().prop_map(|command| Execution::Wrapped { command }),
    ]
    .boxed()
}

fn provenance() -> BoxedStrategy<Provenance> {
    (
        (option::of(text()), option::of(time()), option::of(text())),
        (option::of(source()), text(), text(), option::of(ci())),
        (
            vec(declared(), 0..3),
            vec(artifact(), 0..3),
            option::of(execution()),
        ),
    )
        .prop_map(|(a, b, c)| Provenance {
            invocation_id: a.0,
            started_at: a.1,
            pipeline_name: a.2,
            source: b.0,
            runner_os: b.1,
            runner_arch: b.2,
            ci: b.3,
            steps: c.0,
            artifacts: c.1,
            execution: c.2,
        })
        .boxed()
}

fn isolation() -> BoxedStrategy<Isolation> {
    use ControlStatus::{Enforced, NotAvailable, NotEnforced};
    use IsolationMode::{Container, None, Process, StrictContainer};
    let status = select(&[Enforced, NotEnforced, NotAvailable][..]);
    let control = (text(), status, text()).prop_map(|(name, status, detail)| Control {
        name,
        status,
        detail,
    });
    let mode = select(&[None, Process, Container, StrictContainer][..]);
    (mode, text(), vec(control, 0..3), texts())
        .prop_map(|(mode, platform, controls, capsule_steps)| Isolation {
            mode,
            platform,
            controls,
            capsule_steps,
        })
        .boxed()
}

fn object(members: BTreeMap<String, Json>) -> Json {
    Json::Object(Object::from_members(members.into_iter().collect()).unwrap())
}

fn annotation() -> BoxedStrategy<Json> {
    let number = prop_oneof![any::<i64>().prop_map(Json::Integer), finite(), large()];
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        number,
        text().prop_map(Json::Text),
    ];
    let value = leaf.prop_recursive(4, 16, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Json::Array),
            btree_map(text(), inner, 0..3).prop_map(object),
        ]
    });
    btree_map(text(), value, 0..3).prop_map(object).boxed()
}

fn finite() -> BoxedStrategy<Json> {
    any::<f64>()
        .prop_filter("JSON has no others", |number| number.is_finite())
        .prop_map(Json::Number)
        .boxed()
}

fn large() -> BoxedStrategy<Json> {
    (i64::MAX as u64 + 1..).prop_map(Json::Unsigned).boxed()
}

fn plugin(name: String) -> BoxedStrategy<PluginRecord> {
    use Decision::{Allow, Deny, Error, Skipped, Warn};
    let decision = select(&[Allow, Warn, Deny, Error, Skipped][..]);
    let rest = (text(), any::<u32>(), "blake3:[0-9a-f]{64}", any::<bool>());
    (rest, decision, "[a-z]{1,9}", option::of(annotation()))
        .prop_map(move |(rest, decision, reason, annotation)| PluginRecord {
            name: name.clone(),
            version: rest.0,
            protocol: rest.1,
            digest: rest.2,
            decision,
            deterministic: rest.3,
            reason: matches!(decision, Error | Skipped).then_some(reason),
            annotation,
        })
        .boxed()
}

fn plugins() -> BoxedStrategy<Vec<PluginRecord>> {
    proptest::collection::btree_set("[a-z0-9-]{1,32}", 1..4)
        .prop_flat_map(|names| names.into_iter().map(plugin).collect::<Vec<_>>())
        .boxed()
}

fn reproducibility() -> BoxedStrategy<Reproducibility> {
    (any::<bool>(), any::<u32>(), text())
        .prop_map(|(verified, runs, method)| Reproducibility {
            verified,
            runs,
            method,
        })
        .boxed()
}

fn receipts() -> BoxedStrategy<Receipt> {
    (
        (
            option::of(0_u32..=3),
            hash(),
            vec(step(), 0..4),
            time(),
            any::<u64>(),
        ),
        (
            option::of(text()),
            option::of(hash()),
            text(),
            vec(hash(), 0..4),
        ),
        (
            option::of(hash()),
            option::of(reproducibility()),
            option::of(provenance()),
        ),
        (
            option::of(text()),
            option::of(isolation()),
            option::of(plugins()),
        ),
    )
        .prop_map(|(a, b, c, d)| Receipt {
            schema_version: a.0,
            pipeline_hash: a.1,
            steps: a.2,
            timestamp: a.3,
            total_duration_secs: a.4,
            signature: b.0,
            signer_public_key: b.1,
            attest_version: b.2,
            causal_events: b.3,
            causal_chain_hash: c.0,
            reproducibility: c.1,
            provenance: c.2,
            timestamp_token: d.0,
            isolation: d.1,
            plugins: d.2,
        })
        .boxed()
}

/// Texts that a pipeline may hold where a process is given them.
fn without_nul() -> BoxedStrategy<String> {
    text().prop_map(|text| text.replace('\0', "0")).boxed()
}

/// Texts of one line, for names and paths.
fn one_line() -> BoxedStrategy<String> {
    let printable = |text: String| text.chars().filter(|c| !c.is_control()).collect::<String>();
    text()
        .prop_map(move |text| printable(text).trim_start_matches('/').to_owned())
        .prop_filter("a reader may take it for a merge", |text| text != "<<")
        .boxed()
}

/// Names of steps, none of which looks like another.
fn names() -> BoxedStrategy<Vec<String>> {
    let name = one_line().prop_filter("no name", |text| names::check(text).is_ok());
    proptest::collection::btree_set(name, 1..5)
        .prop_map(|names| {
            let alike = names::alike(&names.iter().map(String::as_str).collect());
            let alike: Vec<String> = alike.iter().map(|(name, _)| (*name).to_owned()).collect();
            let mut names: Vec<String> = names.into_iter().collect();
            names.retain(|name| !alike.contains(name));
            names
        })
        .boxed()
}

/// Paths that a step may declare.
fn path() -> BoxedStrategy<String> {
    one_line()
        .prop_map(|text| match check_declared(&text) {
            Ok(()) => text,
            Err(_) => format!("p{}", text.replace('/', "_")),
        })
        .boxed()
}

fn env() -> BoxedStrategy<BTreeMap<String, String>> {
    let name = without_nul().prop_map(|name| format!("V{}", name.replace('=', "_")));
    btree_map(name, without_nul(), 0..3).boxed()
}

fn pipeline_step(needed: Vec<String>) -> BoxedStrategy<Step> {
    let wishes = (without_nul(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|it| {
        StepAttestation {
            kind: it.0,
            reproducible: it.1,
            generate_slsa: it.2,
            verify_chain: it.3,
        }
    });
    let needs = if needed.is_empty() {
        Just(Vec::new()).boxed()
    } else {
        vec(select(needed), 0..3).boxed()
    };
    (
        (
            without_nul(),
            vec(path(), 0..3),
            vec(path(), 0..3),
            option::of(needs),
        ),
        (
            option::of(env()),
            option::of(one_line()),
            option::of(without_nul()),
        ),
        (
            option::of("[a-z.]{0,5}x"),
            any::<bool>(),
            option::of(1_u64..),
            option::of(wishes),
        ),
    )
        .prop_map(|(a, b, c)| Step {
            run: format!("run {}", a.0),
            inputs: a.1,
            outputs: a.2,
            needs: a.3,
            env: b.0,
            working_dir: b.1,
            image: b.2,
            capsule: c.0,
            cache: c.1,
            timeout_secs: c.2,
            attestation: c.3,
        })
        .boxed()
}

fn pipelines() -> BoxedStrategy<Pipeline> {
    // Each step needs earlier ones of a shuffled order, so that there is no cycle.
    names()
        .prop_flat_map(|names| Just(names).prop_shuffle())
        .prop_flat_map(|names| {
            let steps = names.iter().enumerate().map(|(index, name)| {
                let needed = names[..index].to_vec();
                (Just(name.clone()), pipeline_step(needed))
            });
            (
                steps.collect::<Vec<_>>(),
                (
                    option::of(0_u32..=1),
                    without_nul(),
                    option::of(without_nul()),
                    env(),
                ),
                any::<(bool, bool, bool)>(),
                proptest::collection::btree_set("[A-Z_][A-Z0-9_]{0,5}", 0..3),
            )
        })
        .prop_map(|(steps, a, wishes, secrets)| Pipeline {
            schema_version: a.0,
            version: format!("v{}", a.1),
            name: a.2,
            steps: steps.into_iter().collect(),
            env: a.3,
            attestation: Attestation {
                sign_all_steps: wishes.0,
                verify_dependencies: wishes.1,
                require_reproducible: wishes.2,
            },
            secrets: secrets.into_iter().collect(),
        })
        .boxed()
}

proptest! {
    #[test]
    fn receipts_read_back_and_sign_the_same(receipt in receipts()) {
        let signing = receipt.signing_bytes();
        let yaml = receipt.to_yaml().unwrap();
        let read = receipt::read(yaml.as_bytes())
            .map_err(|error| TestCaseError::fail(format!("{error}\n{yaml}")))?;
        prop_assert_eq!(&read, &receipt, "{}", yaml);
        prop_assert_eq!(read.to_yaml().unwrap(), yaml);
        prop_assert_eq!(
            String::from_utf8(read.signing_bytes()).unwrap(),
            String::from_utf8(signing).unwrap()
        );
        let json = serde_json::to_vec(&receipt).unwrap();
        prop_assert_eq!(receipt::read(&json).unwrap(), receipt);
    }

    #[test]
    fn pipelines_read_back_and_hash_the_same(pipeline in pipelines()) {
        let yaml = pipeline.canonical().unwrap();
        let read = Pipeline::read(yaml.as_bytes())
            .map_err(|error| TestCaseError::fail(format!("{error}\n{yaml}")))?;
        prop_assert_eq!(&read, &pipeline, "{}", yaml);
        prop_assert_eq!(read.hash().unwrap(), pipeline.hash().unwrap());
    }

    #[test]
    fn every_step_stands_once_and_behind_what_it_needs(pipeline in pipelines()) {
        let order = pipeline.order();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        prop_assert!(sorted.iter().eq(pipeline.steps.keys()));
        let mut seen: Vec<&str> = Vec::new();
        for name in order {
            let needs = pipeline.steps[name].needs.iter().flatten();
            for need in needs {
                prop_assert!(seen.contains(&need.as_str()));
            }
            // Of the steps that could stand here, the first by name does.
            for (other, step) in pipeline.steps.range(..name.to_owned()) {
                let ready = step.needs.iter().flatten().all(|need| seen.contains(&need.as_str()));
                prop_assert!(seen.contains(&other.as_str()) || !ready);
            }
            seen.push(name);
        }
    }

    #[test]
    fn no_bytes_break_a_reader(bytes in vec(any::<u8>(), 0..400)) {
        let _outcome = receipt::read(&bytes);
        let _outcome = Pipeline::read(&bytes);
    }
}
