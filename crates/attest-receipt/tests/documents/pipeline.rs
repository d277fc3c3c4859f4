//! Pipeline files: what each key may be, what is refused, and the hash.

use attest_receipt::pipeline::{self, Pipeline, PipelineError};

use crate::vectors::{bytes, receipt};

/// Written by hand; its hash is that of the original's own run of it.
const SPELLINGS: &str = include_str!("../data/spellings.attest.yaml");
const SPELLINGS_HASH: &str = "0fe0f496f74b54680bea18275c70597b20ed1dd82eef01f96b02b3d8e4f725af";

fn read(text: &str) -> Pipeline {
    Pipeline::read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn refusal(text: &str) -> String {
    match Pipeline::read(text.as_bytes()) {
        Ok(_) => panic!("was read:\n{text}"),
        Err(error) => error.to_string(),
    }
}

/// Returns a pipeline of one step with further lines of the step.
fn with_step(lines: &str) -> String {
    format!("version: 1\nsteps:\n  a:\n    run: \"true\"\n    {lines}\n")
}

/// Returns a pipeline of one step with further lines at the top.
fn with_top(lines: &str) -> String {
    format!("version: 1\nsteps: {{a: {{run: x}}}}\n{lines}\n")
}

#[test]
fn the_originals_pipeline_has_its_canonical_form_and_its_hash() {
    let pipeline = Pipeline::read(&bytes("workspace/attest.yaml")).unwrap();
    assert_eq!(
        pipeline.canonical().unwrap().as_bytes(),
        bytes("pipeline.canonical.yaml")
    );
    let receipt = receipt("r1_pipeline_signed.yaml");
    assert_eq!(pipeline.hash().unwrap(), receipt.pipeline_hash);
    let names: Vec<&str> = receipt
        .steps
        .iter()
        .map(|step| step.name.as_str())
        .collect();
    assert_eq!(pipeline.order(), names);
    for declared in receipt.provenance.unwrap().steps {
        let step = &pipeline.steps[&declared.name];
        assert_eq!(step.command_hash(), declared.command_hash);
    }
}

#[test]
fn texts_without_quotes_hash_as_the_original_hashes_them() {
    let pipeline = read(SPELLINGS);
    assert_eq!(pipeline.hash().unwrap(), SPELLINGS_HASH);
    assert_eq!(pipeline.version, "1.0");
    assert_eq!(pipeline.name, None);
    let env: Vec<(&str, &str)> = pipeline
        .env
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert!(env.contains(&("PORT", "8080")) && env.contains(&("TILDE", "~")));
    assert!(env.contains(&("ZERO", "007")) && env.contains(&("NOTHING", "")));
    assert_eq!(pipeline.order(), ["2", "10"]);
    let canonical = pipeline.canonical().unwrap();
    assert_eq!(read(&canonical), pipeline);
}

#[test]
fn defaults_are_what_the_format_says() {
    let pipeline = read("version: '1'\nsteps:\n  a:\n    run: x\n");
    let step = &pipeline.steps["a"];
    assert!(step.cache);
    assert_eq!(step.needs, None);
    assert!(step.inputs.is_empty() && step.outputs.is_empty());
    assert_eq!(pipeline.schema_version, None);
    assert!(pipeline.secrets.is_empty() && pipeline.env.is_empty());
    // What is absent and what is empty is the same pipeline.
    let empty = "inputs:\n    outputs: []\n    needs: null\n    env: ~\n    timeout_secs:";
    let other = with_step(empty).replace("\"true\"", "x");
    assert_eq!(read(&other).hash().unwrap(), pipeline.hash().unwrap());
    let empty = "env:\nattestation:\nname: null\nschema_version: null\nsecrets: []";
    assert_eq!(
        read(&with_top(empty)).hash().unwrap(),
        pipeline.hash().unwrap()
    );
}

#[test]
fn an_unknown_key_is_named_with_its_place_at_every_level() {
    for (text, words) in [
        (with_top("results: []"), "line 3: unknown field `results`"),
        (
            with_step("results: []"),
            "line 5: steps.a: unknown field `results`",
        ),
        (
            with_step("attestation: {type: x, slsa: true}"),
            "line 5: steps.a.attestation: unknown field `slsa`",
        ),
        (
            with_top("attestation: {sign: true}"),
            "line 3: attestation: unknown field `sign`",
        ),
        (with_top("\"a\\nb\": 1"), "line 3: unknown field `a\\nb`"),
    ] {
        assert_eq!(refusal(&text), words);
    }
}

#[test]
fn what_is_required_is_named() {
    for (text, words) in [
        ("steps: {a: {run: x}}", "line 1: missing field `version`"),
        ("version: 1", "line 1: missing field `steps`"),
        (
            "version: 1\nsteps:\n  a: {inputs: []}",
            "line 3: steps.a: missing field `run`",
        ),
        (
            "version: 1\nsteps: {a: {run: x, attestation: {}}}",
            "line 2: steps.a.attestation: missing field `type`",
        ),
        (
            "version: ''\nsteps: {a: {run: x}}",
            "Pipeline version is required",
        ),
        (
            "version:\nsteps: {a: {run: x}}",
            "Pipeline version is required",
        ),
        (
            "version: 1\nsteps: {}",
            "Pipeline must contain at least one step",
        ),
        (
            "version: 1\nsteps:",
            "Pipeline must contain at least one step",
        ),
    ] {
        assert_eq!(refusal(text), words);
    }
}

#[test]
fn a_later_version_of_the_format_says_upgrade() {
    for version in ["2", "99", "4294967295"] {
        let text = with_top(&format!("schema_version: {version}\nlater: key"));
        assert_eq!(
            refusal(&text),
            format!(
                "line 3: attest.yaml declares schema_version {version} but this attest supports \
                 up to 1; upgrade attest to use this file"
            )
        );
    }
    for version in ["0", "1"] {
        read(&with_top(&format!("schema_version: {version}")));
    }
    for version in [
        "-1",
        "1.0",
        "\"1\"",
        "0x1",
        "01",
        "4294967296",
        "one",
        "[1]",
    ] {
        refusal(&with_top(&format!("schema_version: {version}")));
    }
}

#[test]
fn numbers_and_switches_are_plain() {
    for right in [
        "timeout_secs: 1",
        "timeout_secs: 18446744073709551615",
        "cache: true",
    ] {
        read(&with_step(right));
    }
    for wrong in [
        "timeout_secs: 0",
        "timeout_secs: -1",
        "timeout_secs: 1.0",
        "timeout_secs: 0x5",
        "timeout_secs: +5",
        "timeout_secs: 05",
        "timeout_secs: 1_0",
        "timeout_secs: \"5\"",
        "timeout_secs: 18446744073709551616",
        "timeout_secs: soon",
        "timeout_secs: []",
        "cache: True",
        "cache: yes",
        "cache: \"true\"",
        "cache: 1",
        "cache: null",
        "cache:",
        "attestation: {type: x, reproducible: on}",
    ] {
        let error = refusal(&with_step(wrong));
        assert!(
            error.contains("steps.a") || error.contains("Step 'a'"),
            "{error}"
        );
    }
}

#[test]
fn lists_and_mappings_are_what_they_are() {
    for wrong in [
        "inputs: a",
        "inputs: null",
        "inputs: \"\"",
        "inputs: {a: b}",
        "inputs: [[a]]",
        "inputs: [{a: b}]",
        "needs: b",
        "env: [A]",
        "env: \"\"",
        "env: {A: [b]}",
        "working_dir: [a]",
        "attestation: x",
        "attestation: {type: [x]}",
    ] {
        let error = refusal(&with_step(wrong));
        assert!(error.starts_with("line 5: steps.a."), "{wrong}: {error}");
    }
    for wrong in [
        "- a",
        "text",
        "1",
        "steps: []",
        "version: 1\nsteps: [a]",
        "version: [1]",
    ] {
        refusal(wrong);
    }
    assert_eq!(
        refusal("version: 1\nsteps:\n  a: x"),
        "line 3: steps.a: must be a mapping"
    );
    assert_eq!(refusal(""), "line 1: must be a mapping");
}

#[test]
fn a30_unknown_steps_and_cycles_are_named() {
    let graph = |edges: &[(&str, &str)]| {
        let steps: String = edges
            .iter()
            .map(|(name, needs)| format!("  {name}: {{run: x, needs: [{needs}]}}\n"))
            .collect();
        format!("version: 1\nsteps:\n{steps}")
    };
    assert_eq!(
        refusal(&graph(&[("a", "zz")])),
        "line 3: Step 'a' depends on unknown step 'zz'"
    );
    for (edges, cycle) in [
        (&[("a", "b"), ("b", "a")][..], "a -> b -> a"),
        (&[("a", "a")], "a -> a"),
        (
            &[("a", ""), ("b", "a, d"), ("c", "b"), ("d", "c")],
            "b -> c -> d -> b",
        ),
        (
            &[("a", "c"), ("b", "a"), ("c", "b"), ("d", "")],
            "a -> b -> c -> a",
        ),
    ] {
        assert_eq!(
            refusal(&graph(edges)),
            format!("Cycle detected in pipeline dependencies: {cycle}")
        );
    }
    let diamond = read(&graph(&[
        ("d", "b, c, b"),
        ("b", "a"),
        ("c", "a"),
        ("a", ""),
        ("e", ""),
    ]));
    assert_eq!(diamond.order(), ["a", "b", "c", "d", "e"]);
}

#[test]
fn very_long_chains_cost_no_stack() {
    let chain = |last: &str| {
        let mut text = String::from("version: 1\nsteps:\n  s0: {run: x, needs: [");
        text.push_str(last);
        text.push_str("]}\n");
        for index in 1..20_000 {
            text.push_str(&format!(
                "  s{index}: {{run: x, needs: [s{}]}}\n",
                index - 1
            ));
        }
        text
    };
    assert_eq!(read(&chain("")).order().len(), 20_000);
    assert!(refusal(&chain("s19999")).starts_with("Cycle detected"));
}

#[test]
fn blank_commands_and_absolute_paths_are_refused() {
    for run in ["''", "' '", "\"\\n\\t \"", ""] {
        assert_eq!(
            refusal(&format!("version: 1\nsteps:\n  a:\n    run: {run}\n")),
            "line 4: Step 'a' has empty run command"
        );
    }
    assert_eq!(
        refusal(&with_step("inputs: [b, /etc/passwd]")),
        "line 4: Step 'a' has absolute input path: /etc/passwd"
    );
    assert_eq!(
        refusal(&with_step("outputs: [/tmp/x]")),
        "line 4: Step 'a' has absolute output path: /tmp/x"
    );
}

#[test]
fn a26_control_characters_that_would_forge_a_record_are_refused() {
    for text in [
        with_step("inputs: [\"a\\nf:0 b\"]"),
        with_step("outputs: [\"a\\0\"]"),
        with_step("outputs: [\"a\\x7f\"]"),
        with_step("working_dir: \"a\\x85\""),
        "version: 1\nsteps: {\"a\\nb\": {run: x}}".to_owned(),
        "version: 1\nsteps: {\"\\e[1m\": {run: x}}".to_owned(),
    ] {
        let error = refusal(&text);
        assert!(error.contains("has a control character"), "{error}");
        assert!(!error.chars().any(char::is_control), "{error:?}");
    }
    let error = refusal("version: 1\nsteps: {a: {run: \"x\\0\"}}");
    assert!(error.contains("has a NUL in its run command"), "{error}");
    // A step's name is otherwise the user's own.
    for name in ["é x", "a/b", "'..'", "'-'", "\u{1f600}"] {
        read(&format!("version: 1\nsteps:\n  {name}: {{run: x}}\n"));
    }
}

#[test]
fn a08_names_that_a_receipt_could_not_hold_are_refused_before_a_step_runs() {
    for (one, other, words) in [
        (
            "build",
            "bu\u{456}ld",
            r"line 3: Step 'build' looks like step 'bu\u{456}ld'",
        ),
        (
            "e\u{301}",
            "\u{e9}",
            r"line 4: Step '\u{e9}' looks like step 'e\u{301}'",
        ),
        (
            "build",
            "'build '",
            "line 4: Step 'build ' looks like step 'build'",
        ),
        (
            "a",
            "'a\u{2060}'",
            "has the invisible character U+2060 in its name",
        ),
        (
            "a",
            "'\u{202e}b'",
            "has the invisible character U+202E in its name",
        ),
        ("a", "''", "has a blank name"),
        ("a", "'  '", "has a blank name"),
    ] {
        let error = refusal(&format!(
            "version: 1\nsteps:\n  {one}: {{run: x}}\n  {other}: {{run: x}}\n"
        ));
        assert!(error.ends_with(words), "{error}");
        assert!(error.is_ascii(), "{error}");
    }
    for (one, other) in [("build", "Build"), ("l1", "'11'"), ("тест", "test")] {
        read(&format!(
            "version: 1\nsteps:\n  {one}: {{run: x}}\n  {other}: {{run: x}}\n"
        ));
    }
}

#[test]
fn a26_declared_paths_that_no_receipt_could_hold_are_refused_before_a_step_runs() {
    for role in ["input", "output"] {
        for (path, words) in [
            ("''", format!("has an empty {role} path")),
            (
                "/etc/passwd",
                format!("has absolute {role} path: /etc/passwd"),
            ),
            (
                "../x",
                format!("has an empty, `.` or `..` component in its {role} path: ../x"),
            ),
            (
                "a/./b",
                format!("has an empty, `.` or `..` component in its {role} path: a/./b"),
            ),
            (
                "a//",
                format!("has an empty, `.` or `..` component in its {role} path: a//"),
            ),
        ] {
            let error = refusal(&with_step(&format!("{role}s: [{path}]")));
            assert!(error.ends_with(&words), "{error}");
        }
        for path in [".", "./a", "a/", "./a/", "src/*.txt"] {
            read(&with_step(&format!("{role}s: [{path}]")));
        }
    }
}

#[test]
fn variables_that_no_process_can_have_are_refused() {
    for env in ["{'': x}", "{A=B: x}", "{\"A\\0\": x}", "{A: \"x\\0\"}"] {
        assert!(refusal(&with_step(&format!("env: {env}"))).contains("env"));
        assert!(refusal(&with_top(&format!("env: {env}"))).contains("env"));
    }
    read(&with_step("env: {a.b-c: \"x=\\ny\", '1': ''}"));
}

#[test]
fn a_capsule_is_a_plain_name() {
    read(&with_step("capsule: build-1.x"));
    for name in ["../x", "a/b", "'..'", "'.'", "''", "\"a\\nb\""] {
        let error = refusal(&with_step(&format!("capsule: {name}")));
        assert!(error.contains("has a capsule that is no name"), "{error}");
    }
}

#[test]
fn secrets_are_names_of_variables_and_each_stands_once() {
    let pipeline = read(&with_top("secrets: [TOKEN, _a1]"));
    assert_eq!(pipeline.secrets, ["TOKEN", "_a1"]);
    assert_ne!(
        pipeline.hash().unwrap(),
        read(&with_top("")).hash().unwrap()
    );
    assert!(
        pipeline
            .canonical()
            .unwrap()
            .ends_with("secrets:\n- TOKEN\n- _a1\n")
    );
    for (secrets, words) in [
        ("[TOKEN, TOKEN]", "secrets: 'TOKEN' stands twice"),
        ("[1A]", "secrets: '1A' is no name of a variable"),
        ("['']", "secrets: '' is no name of a variable"),
        ("[A-B]", "secrets: 'A-B' is no name of a variable"),
        ("[É]", "secrets: 'É' is no name of a variable"),
        ("[\"A\\n\"]", "secrets: 'A\\n' is no name of a variable"),
    ] {
        assert_eq!(refusal(&with_top(&format!("secrets: {secrets}"))), words);
    }
    refusal(&with_top("secrets: TOKEN"));
    refusal(&with_top("secrets: {TOKEN: x}"));
}

#[test]
fn a10_what_is_more_than_plain_yaml_is_refused() {
    for text in [
        "version: &v 1\nsteps: {a: {run: x}}",
        "version: !!str 1\nsteps: {a: {run: x}}",
        "version: 1\nsteps: {a: {run: x}, a: {run: y}}",
        "version: 1\nversion: 1\nsteps: {a: {run: x}}",
        "version: 1\nsteps: {a: {<<: {run: x}}}",
        "%YAML 1.2\n---\nversion: 1\nsteps: {a: {run: x}}",
        "version: 1\nsteps: {a: {run: x}}\n---\nversion: 1",
        "version: [1",
    ] {
        let error = Pipeline::read(text.as_bytes()).unwrap_err();
        assert!(matches!(error, PipelineError::Unreadable(_)), "{error}");
        assert!(error.to_string().starts_with("line "), "{error}");
    }
    let long = vec![b' '; pipeline::MAX_BYTES + 1];
    assert!(Pipeline::read(&long).is_err());
}

#[test]
fn a_pipeline_in_json_is_the_same_pipeline() {
    let pipeline = read(SPELLINGS);
    let json = serde_json::to_string(&pipeline).unwrap();
    assert_eq!(read(&json), pipeline);
}
