//! What a denial does, before the work and after it, and who is asked afterwards.

use serde_json::Value;

use crate::bed::Bed;
use crate::plugin::{
    ALL, BOTH, Plugin, TELLS, Way, bed, denies, kinds, receipt, record, records, told,
};

#[test]
fn a_denial_before_anything_runs_leaves_nothing() {
    for way in BOTH {
        for hook in ["pipeline.validate", "step.pre"] {
            let bed = bed(&[denies(hook)]);
            way.run(&bed, &[])
                .expect(1)
                .says(&format!("plugin gate denied: no-go (high): not {hook}"));
            assert!(!bed.path("out").exists() && !bed.path("r.yaml").exists());
        }
    }
}

#[test]
fn each_further_finding_of_a_denial_has_a_line_of_its_own() {
    for way in BOTH {
        let one = |rule, text| {
            format!("{{\"rule\":\"{rule}\",\"severity\":\"high\",\"message\":\"{text}\"}}")
        };
        let (a, b) = (one("a", "one"), one("b", "two"));
        let two = format!("on_request() {{ verdict deny ',\"findings\":[{a},{b}]'; }}");
        for hook in ["pipeline.validate", "step.post"] {
            let bed = bed(&[Plugin::new("gate", &[hook]).body(&two)]);
            let ran = way.run(&bed, &[]).expect(1);
            let error = "error: plugin gate denied: a (high): one\n  b (high): two\n";
            assert!(ran.err.contains(error), "{}", ran.err);
            let more = ran.err.contains("no step was recorded");
            assert_eq!(more, ran.err.contains("two\n  no step"), "{}", ran.err);
        }
    }
}

#[test]
fn a_denial_after_the_work_is_recorded_and_signed() {
    for way in BOTH {
        for hook in ["step.post", "receipt.finalize"] {
            let bed = bed(&[denies(hook)]);
            bed.attest(&["keys", "generate", "--name", "ci"]).expect(0);
            let ran = way
                .run(&bed, &["--sign"])
                .expect(1)
                .says(&format!("plugin gate denied: no-go (high): not {hook}"));
            assert_eq!(ran.err.matches("denied").count(), 1, "{}", ran.err);
            assert_eq!(bed.read("out"), "source");
            assert_eq!(record(&bed, "gate")["decision"], "deny");
            let verified = bed.attest(&["verify", "r.yaml"]).expect(0);
            assert!(verified.out.contains("  plugin: gate 1.2.3 deny\n"));
            bed.attest(&["verify", "--require", "plugins", "r.yaml"])
                .expect(1);
        }
    }
}

#[test]
fn a_denied_step_leaves_a_receipt_of_those_before_it() {
    let gate = Plugin::new("gate", &["step.pre"]).body(
        "on_request() { case $line in *'\"name\":\"b\"'*) verdict deny ;; *) verdict allow ;; esac; }",
    );
    let bed = bed(&[gate]);
    bed.write(
        "attest.yaml",
        "version: '1'\nsteps:\n  a: {run: touch a}\n  b: {run: touch b, needs: [a]}\n  c: {run: touch c, needs: [b]}\n",
    );
    Way::Pipeline
        .run(&bed, &[])
        .expect(1)
        .says("plugin gate denied");
    let steps = receipt(&bed).unwrap()["steps"].clone();
    assert_eq!(steps.as_array().unwrap().len(), 1);
    assert_eq!(steps[0]["name"], "a");
    assert!(bed.path("a").exists() && !bed.path("b").exists() && !bed.path("c").exists());
}

#[test]
fn after_a_denial_nobody_is_asked_and_the_order_is_that_of_the_declaration() {
    let ear = |name: &str| Plugin::new(name, &ALL).body(TELLS);
    let gate = denies("step.post");
    let last = Plugin::new("last", &["receipt.finalize"]).body(TELLS);
    for way in BOTH {
        let bed = bed(&[ear("zeta"), gate.clone(), ear("alpha"), last.clone()]);
        way.run(&bed, &[]).expect(1);
        let asked = |name: &str| kinds(&told(&bed, name));
        assert!(asked("zeta").contains(&"step.post make".to_owned()));
        assert!(!asked("alpha").contains(&"step.post make".to_owned()));
        for name in ["zeta", "alpha", "last"] {
            assert!(!asked(name).contains(&"receipt.finalize".to_owned()));
            assert!(asked(name).contains(&"shutdown".to_owned()), "{name}");
        }
        let records = records(&bed);
        let decisions: Vec<_> = records
            .iter()
            .map(|record| {
                (
                    record["name"].as_str().unwrap(),
                    record["decision"].as_str().unwrap(),
                )
            })
            .collect();
        assert_eq!(
            decisions,
            [
                ("alpha", "allow"),
                ("gate", "deny"),
                ("last", "skipped"),
                ("zeta", "allow")
            ]
        );
    }
}

#[test]
fn what_runs_when_a_step_is_denied_ends_and_is_recorded_unasked() {
    let gate = Plugin::new("gate", &["step.pre", "step.post"]).body(&format!(
        "{TELLS}\non_request() {{ on_any; case $line in *'\"name\":\"b\"'*) : > b.denied; verdict deny ;; *) verdict allow ;; esac; }}"
    ));
    let bed = bed(&[gate]);
    let waits = "n=0; while [ ! -e b.denied ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n + 1)); done; sleep 0.3";
    let steps =
        format!("  a: {{run: '{waits}; touch a'}}\n  b: {{run: touch b}}\n  c: {{run: touch c}}\n");
    bed.write("attest.yaml", format!("version: '1'\nsteps:\n{steps}"));
    Way::Pipeline
        .run(&bed, &["--jobs", "3"])
        .expect(1)
        .says("plugin gate denied");
    assert!(bed.path("a").exists() && !bed.path("b").exists() && !bed.path("c").exists());
    let steps = receipt(&bed).unwrap()["steps"].clone();
    assert_eq!(steps.as_array().unwrap().len(), 1, "{steps}");
    assert_eq!(steps[0]["name"], "a");
    let kinds = kinds(&told(&bed, "gate"));
    assert_eq!(kinds, ["hello", "step.pre a", "step.pre b", "shutdown"]);
}

#[test]
fn the_code_of_a_wrapped_command_comes_first_and_the_report_tells_who_was_against_it() {
    let report = |bed: &Bed| -> Value { serde_json::from_str(&bed.read("report")).unwrap() };
    let run = |bed: &Bed, script: &str| {
        let args = [
            "run", "--wrap", "--name", "s", "--report", "report", "--", "sh", "-c",
        ];
        bed.attest(&[&args[..], &[script]].concat())
    };
    for (hook, script, code, there) in [
        ("step.post", "exit 5", 5, true),
        ("receipt.finalize", "exit 0", 1, true),
        ("step.pre", "touch ran", 1, false),
    ] {
        let bed = bed(&[denies(hook)]);
        run(&bed, script).expect(code).says("plugin gate denied");
        let report = report(&bed);
        assert_eq!(report["receipt"].is_string(), there, "{report}");
        let error = report["error"].as_str().unwrap();
        assert!(error.starts_with("plugin gate denied: no-go"), "{error}");
        assert!(!bed.path("ran").exists());
    }
    let bad = Plugin::new("gate", &["step.pre"]).body("on_hello() { exit 1; }");
    let bed = bed(&[bad]);
    run(&bed, "touch ran").expect(2);
    assert_eq!(report(&bed)["build_exit_code"], Value::Null);
    assert!(report(&bed)["error"].as_str().unwrap().contains("gate"));
    assert!(!bed.path("ran").exists());
}

#[test]
fn consent_is_that_of_every_plugin_and_can_be_required_of_one() {
    let step = |name: &str, decision: &str| {
        Plugin::new(name, &["step.post"])
            .body(&format!("on_request() {{ verdict {decision}; }}"))
            .fail_open()
    };
    let verify = |bed: &Bed, require: &str, code: i32| {
        let args = [
            "verify",
            "--check-signatures",
            "false",
            "--require",
            require,
            "r.yaml",
        ];
        bed.attest(&args).expect(code);
    };
    for way in BOTH {
        let agreed = bed(&[step("one", "allow"), step("two", "warn")]);
        way.run(&agreed, &[]).expect(0);
        verify(&agreed, "plugins", 0);
        verify(&agreed, "plugin:two", 0);
        verify(&agreed, "plugin:three", 1);
        let failed = bed(&[step("one", "allow"), step("two", "maybe")]);
        way.run(&failed, &[]).expect(0);
        verify(&failed, "plugins", 1);
        verify(&failed, "plugin:one", 0);
        verify(&failed, "plugin:two", 1);
        // A record of whatever kind changes no verdict that does not ask for it.
        verify(&failed, "success", 0);
        let none = bed(&[]);
        way.run(&none, &[]).expect(0);
        assert_eq!(receipt(&none).unwrap()["schema_version"], 2);
        verify(&none, "plugins", 1);
    }
}
