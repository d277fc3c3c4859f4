//! What is incoherent in a receipt whose fields all have their types.

use serde_json::{Value, json};

use crate::sample::{self, HASH, NO_OUTPUTS, artifact, coherent, outputs};

/// Returns the problems of a receipt, which must be read.
fn found(receipt: &Value) -> Vec<String> {
    match sample::read(receipt) {
        Ok(receipt) => receipt.problems(),
        Err(error) => panic!("{receipt}: {error}"),
    }
}

/// Returns the problems of the coherent receipt after a change.
fn after(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut receipt = coherent();
    change(&mut receipt);
    found(&receipt)
}

/// Returns the problems of the coherent receipt after a change at one place.
fn problems(pointer: &str, value: Value) -> Vec<String> {
    after(|receipt| *receipt.pointer_mut(pointer).unwrap() = value)
}

fn one_problem(pointer: &str, value: Value) -> String {
    let problems = problems(pointer, value);
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems.into_iter().next().unwrap()
}

#[test]
fn what_the_samples_say_is_coherent() {
    assert_eq!(found(&coherent()), Vec::<String>::new());
    assert_eq!(found(&sample::wrapped()), Vec::<String>::new());
}

#[test]
fn a24_every_hash_is_64_lowercase_digits() {
    for (pointer, what) in [
        ("/pipeline_hash", "pipeline_hash"),
        ("/steps/0/input_hash", "step 'build': input_hash"),
        ("/steps/1/output_hash", "step 'test': output_hash"),
        ("/steps/0/capsule_hash", "step 'build': capsule_hash"),
        ("/causal_events/0", "causal_events"),
        ("/causal_chain_hash", "causal_chain_hash"),
        (
            "/provenance/steps/0/command_hash",
            "provenance: step 'build': command_hash",
        ),
        ("/provenance/artifacts/0/digest", "artifact 'out/a': digest"),
    ] {
        for hash in [
            String::new(),
            HASH[1..].to_owned(),
            format!("{HASH}0"),
            HASH.to_uppercase(),
            format!("blake3:{HASH}"),
            format!("{} ", &HASH[1..]),
            format!("{}g", &HASH[1..]),
        ] {
            assert_eq!(
                one_problem(pointer, json!(hash)),
                format!("{what} is not a 64-char lowercase hex digest")
            );
        }
    }
}

#[test]
fn a24_another_algorithm_is_refused() {
    for algorithm in ["sha256", "BLAKE3", "", "blake3 "] {
        assert_eq!(
            one_problem("/provenance/artifacts/0/algorithm", json!(algorithm)),
            "artifact 'out/a': algorithm is not blake3"
        );
    }
}

#[test]
fn a26_an_artifacts_path_is_clean_and_relative() {
    for path in [
        "../a", "/a", "a/./b", "a/../b", "a//b", "a/", "", ".", "a\0b", "a\nf:0 b",
    ] {
        let problem = one_problem("/provenance/artifacts/0/path", json!(path));
        assert!(problem.starts_with("artifact '"), "{problem}");
        assert!(!problem.contains(['\n', '\0']), "{problem:?}");
    }
    let path = "out/é/ x~/..a";
    let problems = after(|receipt| {
        receipt["provenance"]["artifacts"][0]["path"] = json!(path);
        receipt["provenance"]["steps"][0]["outputs"] = json!(["out"]);
        receipt["steps"][0]["output_hash"] = json!(outputs(&[("f", path)]));
    });
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn a07_a_steps_name_stands_once() {
    let mut receipt = coherent();
    receipt["steps"][1]["name"] = json!("build");
    receipt["steps"][1]["output_hash"] = receipt["steps"][0]["output_hash"].clone();
    let problems = sample::read(&receipt).unwrap().problems();
    assert_eq!(problems, ["receipt: step 'build' stands twice"]);
    receipt = coherent();
    receipt["provenance"]["steps"][1]["name"] = json!("build");
    receipt["provenance"]["steps"][1]["needs"] = json!([]);
    let problems = sample::read(&receipt).unwrap().problems();
    assert_eq!(
        problems,
        [
            "provenance: step 'build' stands twice",
            "provenance: step 'test' is not declared",
            "step 'build': output_hash is not the hash of no outputs",
        ]
    );
}

/// Renames the two steps wherever they are named.
fn renamed(one: &str, other: &str) -> Value {
    let mut receipt = coherent();
    for (index, name) in [one, other].into_iter().enumerate() {
        receipt["steps"][index]["name"] = json!(name);
        receipt["provenance"]["steps"][index]["name"] = json!(name);
    }
    receipt["provenance"]["steps"][1]["needs"] = json!([one]);
    receipt["provenance"]["artifacts"][0]["step"] = json!(one);
    receipt["isolation"]["capsule_steps"] = json!([one]);
    receipt
}

#[test]
fn a08_names_that_look_alike_are_refused() {
    for (one, other) in [
        ("build", "bu\u{456}ld"),
        ("lint", "\u{217c}int"),
        ("\u{e9}", "e\u{301}"),
        ("a", "\u{430}"),
        ("a", "a "),
        ("a b", "a\u{a0}b"),
        ("a", "a\u{fe0f}"),
    ] {
        let problems = found(&renamed(one, other));
        assert_eq!(problems.len(), 2, "{one} {other}: {problems:?}");
        for (problem, what) in problems.iter().zip(["receipt: ", "provenance: "]) {
            assert!(problem.starts_with(what), "{problem}");
            assert!(problem.contains("' looks like step '"), "{problem}");
            assert!(problem.is_ascii(), "{problem}");
        }
    }
    assert_eq!(
        found(&renamed("build", "bu\u{456}ld"))[0],
        r"receipt: step 'build' looks like step 'bu\u{456}ld'"
    );
}

#[test]
fn a08_names_that_differ_for_every_reader_are_different_steps() {
    for (one, other) in [("a", "A"), ("l1", "11"), ("тест", "test"), ("a b", "ab")] {
        let receipt = renamed(one, other);
        assert_eq!(found(&receipt), Vec::<String>::new(), "{one} {other}");
        let read = sample::read(&receipt).unwrap();
        let signing = String::from_utf8(read.signing_bytes()).unwrap();
        assert!(
            signing.contains(one) && signing.contains(other),
            "{signing}"
        );
    }
}

#[test]
fn a08_names_that_hide_something_or_show_nothing_are_refused() {
    for (name, words) in [
        (
            "a\u{200b}",
            "has the invisible character U+200B in its name",
        ),
        (
            "\u{202e}a",
            "has the invisible character U+202E in its name",
        ),
        (
            "a\u{2066}b",
            "has the invisible character U+2066 in its name",
        ),
        ("", "has a blank name"),
        (" ", "has a blank name"),
        ("\u{3164}", "has a blank name"),
    ] {
        let problems = found(&renamed("build", name));
        assert_eq!(problems.len(), 2, "{name:?}: {problems:?}");
        for problem in problems {
            assert!(problem.ends_with(words), "{problem}");
        }
    }
}

#[test]
fn a_steps_name_has_no_control_character() {
    for c in ['\0', '\n', '\r', '\t', '\u{1b}', '\u{7f}', '\u{85}'] {
        let mut receipt = coherent();
        let name = format!("te{c}st");
        receipt["steps"][1]["name"] = json!(name);
        receipt["provenance"]["steps"][1]["name"] = json!(name);
        let problems = sample::read(&receipt).unwrap().problems();
        assert_eq!(problems.len(), 2, "{problems:?}");
        for problem in problems {
            assert!(problem.contains("control character"), "{problem}");
            assert!(!problem.contains(c), "{problem:?}");
        }
    }
}

#[test]
fn a30_steps_that_were_removed_added_or_renamed_are_noticed() {
    let mut receipt = coherent();
    receipt["steps"] = json!([]);
    receipt["causal_events"] = json!([]);
    receipt["causal_chain_hash"] = json!(null);
    receipt["provenance"] = json!(null);
    receipt["isolation"] = json!(null);
    let problems = sample::read(&receipt).unwrap().problems();
    assert_eq!(problems, ["receipt has no steps"]);
    assert_eq!(
        problems_of_names("/steps/0/name", "other"),
        [
            "provenance: step 'other' is not declared",
            "provenance.artifacts: step 'build' is not in the receipt",
            "step 'test' needs 'build', which is not in the receipt",
            "isolation.capsule_steps: step 'build' is not in the receipt",
        ]
    );
    assert_eq!(
        one_problem("/provenance/steps/1/needs", json!(["zz"])),
        "provenance: step 'test' needs 'zz', which is not declared"
    );
}

#[test]
fn a30_declared_steps_that_need_each_other_are_noticed() {
    assert_eq!(
        problems("/provenance/steps/0/needs", json!(["test"])),
        ["provenance: steps need each other: build -> test -> build"]
    );
    assert_eq!(
        one_problem("/provenance/steps/0/needs", json!(["build"])),
        "provenance: steps need each other: build -> build"
    );
}

#[test]
fn very_many_problems_are_told_in_bounded_words() {
    let events: Vec<String> = (0..100_000).map(|index| index.to_string()).collect();
    let problems = problems("/causal_events", json!(events));
    assert_eq!(problems.len(), 51);
    assert_eq!(problems.last().unwrap(), "and 99951 more");
    let long = "\u{202e}".repeat(100_000);
    let problems = self::problems("/provenance/steps/1/needs", json!([long]));
    assert!(problems[0].len() < 3_000, "{problems:?}");
    assert!(!problems[0].contains('\u{202e}'));
}

fn problems_of_names(pointer: &str, name: &str) -> Vec<String> {
    problems(pointer, json!(name))
}

#[test]
fn a_step_that_was_skipped_is_declared_and_not_in_the_receipt() {
    let mut receipt = coherent();
    receipt["steps"].as_array_mut().unwrap().pop();
    receipt["causal_events"] = json!([HASH]);
    let problems = sample::read(&receipt).unwrap().problems();
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn the_version_of_the_writer_is_not_empty() {
    assert_eq!(
        one_problem("/attest_version", json!("")),
        "attest_version is empty"
    );
}

#[test]
fn all_problems_are_told_and_none_is_about_the_signature() {
    let mut receipt = coherent();
    receipt["signature"] = json!("");
    receipt["signer_public_key"] = json!("x");
    receipt["timestamp_token"] = json!("");
    assert!(sample::read(&receipt).unwrap().problems().is_empty());
    receipt["attest_version"] = json!("");
    receipt["pipeline_hash"] = json!("");
    receipt["steps"][0]["input_hash"] = json!("");
    assert_eq!(
        sample::read(&receipt).unwrap().problems(),
        [
            "attest_version is empty",
            "pipeline_hash is not a 64-char lowercase hex digest",
            "step 'build': input_hash is not a 64-char lowercase hex digest",
        ]
    );
}

#[test]
fn a24_a_steps_artifacts_hash_to_its_output_hash() {
    let words = "step 'build': output_hash is not the hash of its artifacts";
    for (field, value) in [
        ("digest", json!("ff".repeat(32))),
        ("kind", json!("symlink")),
    ] {
        let pointer = format!("/provenance/artifacts/0/{field}");
        assert_eq!(problems(&pointer, value), [words]);
    }
    assert_eq!(problems("/steps/0/output_hash", json!(HASH)), [words]);
    assert_eq!(problems("/steps/0/output_hash", json!(NO_OUTPUTS)), [words]);
    // A second file that the hash does not know.
    let second = |hash: String| {
        after(|receipt| {
            let made = [
                artifact("build", "symlink", "out/b"),
                artifact("build", "file", "out/a"),
            ];
            receipt["provenance"]["artifacts"] = json!(made);
            receipt["provenance"]["steps"][0]["outputs"] = json!(["./out/"]);
            receipt["steps"][0]["output_hash"] = json!(hash);
        })
    };
    assert_eq!(second(outputs(&[("f", "out/a")])), [words]);
    let both = outputs(&[("f", "out/a"), ("l", "out/b")]);
    assert_eq!(second(both), Vec::<String>::new());
    // The original tells no artifacts of a result from its cache.
    let none = problems("/provenance/artifacts", json!([]));
    assert_eq!(none, Vec::<String>::new());
}

#[test]
fn a24_a_step_without_outputs_has_the_hash_of_none() {
    assert_eq!(
        problems("/steps/1/output_hash", json!(HASH)),
        ["step 'test': output_hash is not the hash of no outputs"]
    );
    let problems = after(|receipt| {
        receipt["provenance"]["artifacts"][0]["step"] = json!("test");
        receipt["steps"][1]["output_hash"] = receipt["steps"][0]["output_hash"].clone();
    });
    assert_eq!(
        problems,
        ["artifact 'out/a' lies under no declared output of step 'test'"]
    );
}

#[test]
fn a26_what_a_step_declares_is_clean_and_relative() {
    for role in ["input", "output"] {
        // The step that was skipped has no artifacts, so that nothing else is wrong.
        let declared = |path: &str| {
            after(|receipt| {
                let late = json!({"name": "late", "needs": [], "command_hash": HASH,
                    "inputs": [], "outputs": []});
                let steps = receipt["provenance"]["steps"].as_array_mut().unwrap();
                steps.insert(1, late);
                steps[1][format!("{role}s")] = json!([path]);
            })
        };
        for (path, words) in [
            ("", "is empty"),
            ("/etc/passwd", "is absolute"),
            ("../x", "component"),
            ("a/../b", "component"),
            ("a/./b", "component"),
            ("a//b", "component"),
            ("src//", "component"),
            ("././a", "component"),
            ("a\0b", "control character"),
            ("a\nf:00 b", "control character"),
        ] {
            let problems = declared(path);
            assert_eq!(problems.len(), 1, "{path:?}: {problems:?}");
            let start = format!("provenance: step 'late': {role} '");
            assert!(problems[0].starts_with(&start), "{problems:?}");
            assert!(problems[0].contains(words), "{problems:?}");
            assert!(!problems[0].chars().any(char::is_control), "{problems:?}");
        }
        for path in [".", "./a", "a/", "./a/", "é/ x~/..a", "src/*.txt"] {
            assert_eq!(declared(path), Vec::<String>::new(), "{path}");
        }
    }
}

/// Returns the problems with other artifacts of the step, whose hash fits them.
fn made(declared: &str, files: &[(&str, &str)]) -> Vec<String> {
    after(|receipt| {
        let all = files.iter().map(|(kind, path)| {
            let kind = if *kind == "f" { "file" } else { "symlink" };
            artifact("build", kind, path)
        });
        receipt["provenance"]["artifacts"] = all.collect();
        receipt["provenance"]["steps"][0]["outputs"] = json!([declared]);
        receipt["steps"][0]["output_hash"] = json!(outputs(files));
    })
}

#[test]
fn a26_an_artifact_stands_once_and_under_an_output_of_its_step() {
    assert_eq!(
        made("out", &[("f", "out/a"), ("f", "out/a")]),
        ["artifact 'out/a' of step 'build' stands twice"]
    );
    assert_eq!(
        made("out", &[("f", "out/a"), ("f", "other/x")]),
        [
            "artifact 'other/x' lies under no declared output of step 'build'",
            "step 'build': output_hash is not the hash of its artifacts",
        ]
    );
    for (declared, path) in [
        ("out", "outer"),
        ("out/a", "out"),
        ("out/a", "out/b"),
        ("./out/", "out.d/a"),
    ] {
        let problems = made(declared, &[("f", path)]);
        let words = format!("artifact '{path}' lies under no declared output of step 'build'");
        assert_eq!(problems, [words]);
    }
    for (declared, path) in [(".", "any/where"), ("./out/", "out/a"), ("out", "out")] {
        let problems = made(declared, &[("f", path)]);
        assert_eq!(problems, Vec::<String>::new(), "{declared} {path}");
    }
}

#[test]
fn a26_a_file_is_no_folder_of_another() {
    assert_eq!(
        made("out", &[("f", "out/a"), ("f", "out/a.b"), ("f", "out/a/x")]),
        ["artifact 'out/a' is a file and the folder of 'out/a/x'"]
    );
    // A link may lead to a folder that is declared too.
    let linked = made("out", &[("l", "out/a"), ("f", "out/a/x")]);
    assert_eq!(linked, Vec::<String>::new());
    let beside = made("out", &[("f", "out/a"), ("f", "out/a.b"), ("f", "out/ab")]);
    assert_eq!(beside, Vec::<String>::new());
}

#[test]
fn a28_no_step_takes_longer_than_the_run() {
    assert_eq!(
        one_problem("/steps/0/duration_secs", json!(4)),
        "step 'build': duration_secs is longer than the whole run"
    );
    assert_eq!(
        one_problem("/total_duration_secs", json!(2)),
        "step 'build': duration_secs is longer than the whole run"
    );
    // What the cache tells was measured in another run.
    let cached = problems("/steps/1/duration_secs", json!(u64::MAX));
    assert_eq!(cached, Vec::<String>::new());
}

#[test]
fn a27_only_a_success_comes_from_the_cache() {
    for code in [1, -1, 124] {
        let problems = after(|receipt| {
            receipt["steps"][1]["cache_hit"] = json!(true);
            receipt["steps"][1]["exit_code"] = json!(code);
        });
        let words = format!("step 'test': cache_hit stands with exit code {code}");
        assert_eq!(problems, [words]);
    }
    let ran = problems("/steps/1/cache_hit", json!(false));
    assert_eq!(ran, Vec::<String>::new());
}

#[test]
fn a30_a_wrapped_command_is_never_a_cache_hit() {
    let mut receipt = sample::wrapped();
    receipt["steps"][0]["cache_hit"] = json!(true);
    assert_eq!(
        found(&receipt),
        ["provenance.execution: a wrapped command is never a cache hit"]
    );
}

#[test]
fn a30_a_step_runs_only_when_what_it_needs_has_succeeded() {
    let words = "step 'test' needs 'build', which failed";
    for code in [1, -1, 124] {
        assert_eq!(one_problem("/steps/0/exit_code", json!(code)), words);
    }
    let problems = after(|receipt| {
        receipt["steps"].as_array_mut().unwrap().remove(0);
        receipt["causal_events"] = json!([HASH]);
        receipt["provenance"]["artifacts"] = json!([]);
        receipt["isolation"]["capsule_steps"] = json!([]);
    });
    assert_eq!(
        problems,
        ["step 'test' needs 'build', which is not in the receipt"]
    );
    // The last one may fail, and so may one that nobody needs.
    let last_failed = after(|receipt| {
        receipt["steps"][1]["cache_hit"] = json!(false);
        receipt["steps"][1]["exit_code"] = json!(1);
    });
    assert_eq!(last_failed, Vec::<String>::new());
}

#[test]
fn a30_a_wrapped_command_is_one_step() {
    let execution = sample::full()["provenance"]["execution"].clone();
    assert_eq!(
        problems("/provenance/execution", execution),
        ["provenance.execution: a wrapped command is one step"]
    );
    let mut receipt = sample::wrapped();
    let skipped = json!({"name": "z", "needs": [], "command_hash": HASH, "inputs": [],
        "outputs": []});
    let steps = receipt["provenance"]["steps"].as_array_mut().unwrap();
    steps.push(skipped);
    assert_eq!(
        found(&receipt),
        ["provenance.execution: a wrapped command is one step"]
    );
    let mut receipt = sample::wrapped();
    receipt["provenance"]["execution"]["command"] = json!([]);
    assert_eq!(found(&receipt)[0], "provenance.execution: command is empty");
}

#[test]
fn a31_every_step_has_one_event_or_none_has() {
    assert_eq!(
        one_problem("/causal_events", json!([HASH, HASH])),
        format!("causal_events: '{HASH}' stands twice")
    );
    let events = |count: u8| (0..count).map(|index| format!("{index:02x}").repeat(32));
    for count in [1, 3] {
        let events: Vec<String> = events(count).collect();
        let problems = problems("/causal_events", json!(events));
        let words = format!("causal_events are {count}, and there are 2 steps");
        assert!(problems.contains(&words), "{problems:?}");
    }
    let none = after(|receipt| {
        receipt["causal_events"] = json!([]);
        receipt["causal_chain_hash"] = json!(null);
    });
    assert_eq!(none, Vec::<String>::new());
}

#[test]
fn a31_the_root_stands_with_its_events() {
    assert_eq!(
        one_problem("/causal_chain_hash", json!(null)),
        "causal_chain_hash is missing behind causal_events"
    );
    assert_eq!(
        one_problem("/causal_events", json!([])),
        "causal_chain_hash stands without causal_events"
    );
    // The chain of one event is the event.
    let mut receipt = sample::wrapped();
    receipt["causal_events"] = json!(["ff".repeat(32)]);
    assert_eq!(
        found(&receipt),
        ["causal_chain_hash is not the id of the one event"]
    );
}

#[test]
fn a34_a_wrapped_command_is_the_one_that_is_hashed() {
    for command in [
        json!(["sh", "-c true"]),
        json!(["sh -c true"]),
        json!(["sh", "-c", "true", ""]),
        json!(["rm", "-rf"]),
    ] {
        let mut receipt = sample::wrapped();
        receipt["provenance"]["execution"]["command"] = command;
        assert_eq!(
            found(&receipt),
            [
                "pipeline_hash is not the hash of the wrapped command",
                "provenance: step 'build': command_hash is not the hash of the wrapped command",
            ]
        );
    }
    for (pointer, words) in [
        ("/pipeline_hash", "pipeline_hash is not"),
        ("/provenance/steps/0/command_hash", "command_hash is not"),
    ] {
        let mut receipt = sample::wrapped();
        *receipt.pointer_mut(pointer).unwrap() = json!(HASH);
        let problems = found(&receipt);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains(words), "{problems:?}");
    }
}

#[test]
fn a35_a_comparison_needs_two_runs_and_a_method() {
    for runs in [0, 1] {
        assert_eq!(
            one_problem("/reproducibility/runs", json!(runs)),
            format!("reproducibility: {runs} runs cannot be compared")
        );
    }
    for method in ["", " "] {
        assert_eq!(
            one_problem("/reproducibility/method", json!(method)),
            "reproducibility: method is empty"
        );
    }
    assert!(problems("/reproducibility/runs", json!(3)).is_empty());
}

#[test]
fn a36_a_control_stands_once_and_is_one_that_the_mode_has() {
    let control = |name: &str, status: &str| json!({"name": name, "status": status, "detail": "x"});
    assert_eq!(
        one_problem(
            "/isolation/controls",
            json!([control("cpu", "enforced"), control("cpu", "not-enforced")])
        ),
        "isolation: control 'cpu' stands twice"
    );
    assert_eq!(
        one_problem("/isolation/controls", json!([])),
        "isolation: mode strict-container has no controls"
    );
    let none = |name: &str, status: &str| {
        after(|receipt| {
            receipt["isolation"]["mode"] = json!("none");
            receipt["isolation"]["controls"] = json!([control(name, status)]);
        })
    };
    for name in [
        "network",
        "filesystem",
        "capabilities",
        "memory",
        "open-files",
        "cpu",
        "x",
    ] {
        let words = format!("isolation: mode none cannot enforce the control '{name}'");
        assert_eq!(none(name, "enforced"), [words]);
        assert_eq!(none(name, "not-enforced"), Vec::<String>::new());
    }
    // A comparison fixes the environment, capsules the inputs, and a plain process is killed too.
    for name in ["environment", "inputs", "timeout"] {
        assert_eq!(none(name, "enforced"), Vec::<String>::new());
    }
}
