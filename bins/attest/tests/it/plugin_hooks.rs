//! When plugins are asked, in what order, what they are told, and what a denial does.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;
use test_case::test_case;

use crate::bed::{Bed, ran};
use crate::plugin::{
    ALL, BOTH, Plugin, TELLS, Way, bed, declare, denies, digest, kinds, program, receipt, record,
    told,
};

#[test]
fn messages_come_in_order_with_rising_ids_to_one_process() {
    for way in BOTH {
        let bed = bed(&[Plugin::new("ear", &ALL).body(TELLS)]);
        way.run(&bed, &[]).expect(0);
        let told = told(&bed, "ear");
        assert_eq!(
            kinds(&told),
            [
                "hello",
                "pipeline.validate",
                "step.pre make",
                "step.post make",
                "receipt.finalize",
                "shutdown",
            ]
        );
        for (place, message) in told.iter().enumerate() {
            assert_eq!(message["id"], place + 1);
            assert_eq!(message["v"], 1);
        }
        let written = receipt(&bed).unwrap();
        let pipeline = &told[1]["payload"]["pipeline"];
        assert_eq!(pipeline["pipeline_hash"], written["pipeline_hash"]);
        let path = pipeline.get("path").and_then(Value::as_str);
        assert_eq!(path, (way == Way::Pipeline).then_some("attest.yaml"));
        assert_eq!(pipeline["steps"][0]["name"], "make");
        assert_eq!(pipeline["steps"][0]["inputs"], serde_json::json!(["in"]));
        let (before, after) = (&told[2]["payload"]["step"], &told[3]["payload"]["step"]);
        assert_eq!(before["input_hash"], written["steps"][0]["input_hash"]);
        assert_eq!(before["cache_hit"], false);
        assert_eq!(after["output_hash"], written["steps"][0]["output_hash"]);
        assert_eq!(after["exit_code"], 0);
        for name in ["stdout", "stderr", "stdout_truncated"] {
            assert_eq!(after.get(name), None, "{name}");
        }
    }
}

#[test]
fn the_worst_decision_and_the_last_annotation_are_recorded() {
    let moody = "on_request() {
  case $kind in
    step.pre) verdict warn ',\"annotation\":{\"b\":1,\"a\":[2.50]}' ;;
    step.post) verdict allow ',\"annotation\":{\"z\":{\"y\":1,\"x\":2}}' ;;
    *) verdict allow ;;
  esac
}";
    for way in BOTH {
        let bed = bed(&[Plugin::new("moody", &ALL).body(moody)]);
        way.run(&bed, &[]).expect(0);
        let record = record(&bed, "moody");
        assert_eq!(record["decision"], "warn");
        assert_eq!(
            record["annotation"].to_string(),
            "{\"z\":{\"x\":2,\"y\":1}}"
        );
    }
}

#[test]
fn a_result_of_the_cache_is_asked_about_like_any_other() {
    let bed = bed(&[Plugin::new("ear", &["step.pre", "step.post"]).body(TELLS)]);
    Way::Pipeline.run(&bed, &[]).expect(0);
    Way::Pipeline
        .run(&bed, &[])
        .expect(0)
        .says("taken from the cache");
    let told = told(&bed, "ear");
    let hits: Vec<_> = told
        .iter()
        .filter_map(|message| message["payload"]["step"].get("cache_hit"))
        .collect();
    assert_eq!(hits, [false, false, true, true]);

    declare(&bed, &[denies("step.pre")]);
    Way::Pipeline
        .run(&bed, &[])
        .expect(1)
        .says("plugin gate denied");
}

#[test]
fn steps_that_run_at_once_are_asked_about_in_topological_order() {
    let bed = bed(&[Plugin::new("ear", &["step.pre", "step.post"]).body(TELLS)]);
    let mut text = "version: '1'\nsteps:\n".to_owned();
    for name in ["c", "a", "b"] {
        text += &format!("  {name}: {{run: sleep 0.2, cache: false}}\n");
    }
    bed.write(
        "attest.yaml",
        text + "  d: {run: 'true', needs: [a, b, c]}\n",
    );
    Way::Pipeline.run(&bed, &["--jobs", "4"]).expect(0);
    let kinds = kinds(&told(&bed, "ear"));
    let pre: Vec<_> = kinds
        .iter()
        .filter(|kind| kind.starts_with("step.pre"))
        .collect();
    assert_eq!(
        pre,
        ["step.pre a", "step.pre b", "step.pre c", "step.pre d"]
    );
    let post = kinds.iter().filter(|kind| kind.starts_with("step.post"));
    assert_eq!(post.count(), 4);
}

#[test]
fn both_builds_of_a_comparison_are_asked_about_with_values_that_can_be_compared() {
    let bed = bed(&[Plugin::new("ear", &ALL).body(TELLS)]);
    bed.write(
        "attest.yaml",
        "version: '1'\nsteps:\n  a: {run: sleep 1.1; cat in > out, inputs: [in], outputs: [out]}\n",
    );
    Way::Pipeline
        .run(&bed, &["--check-reproducibility"])
        .expect(0);
    let told = told(&bed, "ear");
    let build = [
        "pipeline.validate",
        "step.pre a",
        "step.post a",
        "receipt.finalize",
    ];
    let all = [&["hello"][..], &build, &build, &["shutdown"]].concat();
    assert_eq!(kinds(&told), all);
    let payloads: Vec<&Value> = told.iter().map(|message| &message["payload"]).collect();
    for place in 1..=build.len() {
        assert_eq!(payloads[place], payloads[place + build.len()]);
    }
    assert_eq!(payloads[3]["step"]["duration_secs"], 0);
    assert_eq!(payloads[1]["pipeline"]["path"], "attest.yaml");
}

#[test]
fn plugins_are_those_of_the_workspace_wherever_state_is_kept() {
    for way in BOTH {
        let bed = bed(&[denies("step.post")]);
        way.run(&bed, &["--state-dir", "state"]).expect(1);
        std::fs::remove_file(bed.path("r.yaml")).unwrap();
        let mut program = bed.program(&way.args(&[]));
        ran(program.env("ATTEST_STATE_DIR", bed.path("other"))).expect(1);
        assert_eq!(record(&bed, "gate")["decision"], "deny");
    }
    let there = bed(&[denies("step.pre")]);
    let here = Bed::new();
    let folder = there.folder().to_str().unwrap();
    let args = [
        "run",
        "--wrap",
        "--name",
        "s",
        "--workspace",
        folder,
        "--",
        "true",
    ];
    here.attest(&args).expect(1).says("plugin gate denied");
    // Nobody is declared there, whatever the folder declares in which one stands.
    let mut args = args;
    args[5] = here.folder().to_str().unwrap();
    there.attest(&args).expect(0);
}

#[test]
fn the_path_of_a_pipeline_is_told_below_the_workspace_alone() {
    let bed = bed(&[Plugin::new("ear", &["pipeline.validate"]).body(TELLS)]);
    let elsewhere = tempfile::NamedTempFile::new().unwrap();
    std::fs::copy(bed.path("attest.yaml"), elsewhere.path()).unwrap();
    bed.write("ci/p.yaml", bed.read("attest.yaml"));
    let outside = elsewhere.path().to_str().unwrap();
    for (file, path) in [
        ("ci/p.yaml", Some("ci/p.yaml")),
        ("ci/../ci/p.yaml", Some("ci/p.yaml")),
        (outside, None),
    ] {
        bed.write("told.ear", "");
        bed.attest(&["run", "-p", file]).expect(0);
        let pipeline = &told(&bed, "ear")[1]["payload"]["pipeline"];
        assert_eq!(pipeline.get("path").and_then(Value::as_str), path);
        assert_eq!(pipeline.get("path").is_some(), path.is_some());
        let folder = bed.folder().to_str().unwrap();
        assert!(!bed.read("told.ear").contains(folder));
    }
}

#[test]
fn a_step_that_is_skipped_sends_no_hooks() {
    let bed = bed(&[Plugin::new("ear", &["step.pre", "step.post"]).body(TELLS)]);
    bed.write(
        "attest.yaml",
        "version: '1'\nsteps:\n  a: {run: exit 3}\n  b: {run: 'true', needs: [a]}\n",
    );
    Way::Pipeline.run(&bed, &[]).expect(1);
    assert_eq!(
        kinds(&told(&bed, "ear")),
        ["hello", "step.pre a", "step.post a", "shutdown"]
    );
}

#[test]
fn a_hook_that_is_announced_and_not_declared_is_never_sent() {
    for way in BOTH {
        let mut plugin = Plugin::new("ear", &["step.post"]).body(TELLS);
        plugin.announces = Some(ALL.to_vec());
        let bed = bed(&[plugin]);
        way.run(&bed, &[]).expect(0);
        assert_eq!(
            kinds(&told(&bed, "ear")),
            ["hello", "step.post make", "shutdown"]
        );
    }
}

#[test]
fn outputs_are_sent_to_those_who_want_them_and_cut_at_64_kib() {
    let writes = "printf '\\303\\244%.0s' $(seq 40000); echo done >&2";
    for record in ["tail", "none"] {
        let wants = Plugin::new("wants", &ALL)
            .body(TELLS)
            .more("wants_output = true");
        let bed = bed(&[wants, Plugin::new("plain", &ALL).body(TELLS)]);
        bed.write(
            "attest.yaml",
            format!("version: '1'\nsteps:\n  make:\n    run: |\n      {writes}\n"),
        );
        Way::Pipeline
            .run(&bed, &["-q", "--record-output", record])
            .expect(0);
        let told = |name: &str| {
            let told = told(&bed, name);
            let post = told.iter().find(|message| message["kind"] == "step.post");
            post.unwrap()["payload"]["step"].clone()
        };
        let step = told("wants");
        let stdout = step["stdout"].as_str().unwrap();
        assert!(
            stdout.len() <= 65_536 && stdout.len() > 65_000,
            "{}",
            stdout.len()
        );
        assert!(stdout.chars().all(|c| c == 'ä'));
        assert_eq!(step["stdout_truncated"], true);
        assert_eq!(step["stderr"], "done\n");
        assert_eq!(step["stderr_truncated"], false);
        assert_eq!(told("plain").get("stdout"), None);
    }
}

#[test]
fn a_run_that_fails_shuts_its_plugins_down_all_the_same() {
    let missing = "version: '1'\nsteps:\n  a: {run: 'true', inputs: [absent]}\n";
    let bed = bed(&[Plugin::new("ear", &["receipt.finalize"]).body(TELLS)]);
    bed.write("attest.yaml", missing);
    Way::Pipeline.run(&bed, &[]).expect(1).says("absent");
    assert_eq!(kinds(&told(&bed, "ear")), ["hello", "shutdown"]);
    bed.attest(&["run", "--wrap", "--name", "s", "--", "/nonexistent/x"])
        .expect(127);
    assert_eq!(kinds(&told(&bed, "ear")).len(), 4);
}

#[test]
fn a_plugin_that_fails_to_start_ends_those_that_were_started() {
    let bad = Plugin::new("bad", &["step.pre"]).body("on_hello() { echo no; }");
    for way in BOTH {
        let bed = bed(&[Plugin::new("ear", &ALL).body(TELLS), bad.clone()]);
        way.run(&bed, &[]).expect(2).says("bad");
        let kinds = kinds(&told(&bed, "ear"));
        assert!(!kinds.iter().any(|kind| kind.contains('.')), "{kinds:?}");
        assert!(!bed.path("out").exists());
    }
}

#[test_case(Way::Pipeline, "on_hello", 2; "of a pipeline while it starts")]
#[test_case(Way::Wrap, "on_hello", 130; "of a wrapped command while it starts")]
#[test_case(Way::Pipeline, "on_request", 2; "of a pipeline while it is asked")]
#[test_case(Way::Wrap, "on_request", 130; "of a wrapped command while it is asked")]
fn an_interrupt_ends_the_plugins_and_the_run(way: Way, place: &str, code: i32) {
    let slow = Plugin::new("slow", &["step.pre"])
        .body(&format!("{place}() {{ note asked $$; exec sleep 7777; }}"));
    let bed = bed(&[slow]);
    let mut child = bed
        .program(&way.args(&[]))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap()).lines();
    let asked = err.find_map(|line| {
        let line = line.unwrap();
        line.strip_prefix("plugin slow: asked ").map(str::to_owned)
    });
    let plugin = asked.expect("a plugin that was asked");
    let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::SIGINT).unwrap();
    let rest: Vec<String> = err.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(code), "{rest:?}");
    assert!(
        rest.iter()
            .any(|line| line.starts_with("error: interrupted; ")),
        "{rest:?}"
    );
    let left = std::fs::read_to_string(format!("/proc/{plugin}/cmdline"));
    assert!(!left.is_ok_and(|left| left.contains("7777")));
    assert!(!bed.path("r.yaml").exists() && !bed.path("out").exists());
}

/// The plugin that the protocol's document shows, in words of our own.
const MINIMAL: &str = r#"#!/bin/sh
# Says yes to whatever it is asked, and asks to be told of one hook.
field() { printf '%s' "$line" | jq -r ".$1"; }
while IFS= read -r line; do
  case "$(field kind)" in
    hello)
      jq -cn --argjson id "$(field id)" '{v: 1, id: $id, kind: "hello_ok", name: "noop",
        version: "0.1.0", protocol: 1, hooks: ["step.pre"], deterministic: true}'
      ;;
    shutdown) exit 0 ;;
    *)
      jq -cn --argjson id "$(field id)" \
        '{v: 1, id: $id, kind: "verdict", decision: "allow", findings: []}'
      ;;
  esac
done
"#;

#[test]
fn the_minimal_plugin_of_the_document_runs_here() {
    let there = std::process::Command::new("jq").arg("--version").output();
    assert!(
        there.is_ok(),
        "jq is missing; `cargo xtask ci` installs it (package jq)"
    );
    for way in BOTH {
        let bed = bed(&[]);
        let noop = Plugin::new("noop", &["step.pre"]);
        program(&bed, "plugins/noop", MINIMAL);
        let declaration = noop.declaration(&noop.command(&bed), &digest(MINIMAL));
        bed.write(
            ".attest/plugins.toml",
            format!("schema_version = 1\n{declaration}"),
        );
        way.run(&bed, &[]).expect(0);
        let record = record(&bed, "noop");
        assert_eq!(record["decision"], "allow");
        assert_eq!(record["version"], "0.1.0");
        assert_eq!(record["digest"], digest(MINIMAL));
    }
}

#[test]
fn many_steps_are_asked_about_in_one_process() {
    let ear = Plugin::new("ear", &["step.pre", "step.post"])
        .body("on_hello() { echo . >> \"$ATTEST_WORKSPACE/started\"; hello_ok; }")
        .body("n=0\non_request() { n=$((n + 1)); verdict allow \",\\\"annotation\\\":{\\\"n\\\":$n}\"; }");
    let bed = bed(&[ear]);
    let steps: String = (0..20)
        .map(|n| format!("  s{n}: {{run: ':', cache: false}}\n"))
        .collect();
    bed.write("attest.yaml", format!("version: '1'\nsteps:\n{steps}"));
    let twice = ["--check-reproducibility"];
    for (more, asked) in [(&[][..], 40), (&twice[..], 80)] {
        bed.write("started", "");
        // A count is no pure function of what is asked, so that two builds of it differ.
        Way::Pipeline.run(&bed, more);
        assert_eq!(bed.read("started"), ".\n");
        assert_eq!(record(&bed, "ear")["annotation"]["n"], asked);
    }
}
