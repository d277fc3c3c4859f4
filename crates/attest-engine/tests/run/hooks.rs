//! The places where a run asks, their order, and what an answer does.

use std::cell::RefCell;
use std::future::ready;
use std::rc::Rc;

use attest_engine::hooks::{
    AfterStep, Answer, BeforeStep, Farewell, Hooks, PipelineFacts, Stop, StopKind, Verdict,
};
use attest_receipt::receipt::{Decision, PluginRecord, Receipt};

use crate::support::{FakeKey, World, exists, jobs, run, told};

/// Notes what it is asked, and stops at one place.
#[derive(Default)]
struct Asked {
    notes: Rc<RefCell<Vec<String>>>,
    stop_at: Option<(&'static str, StopKind)>,
    receipt: Option<Receipt>,
}

impl Asked {
    fn stopping(at: &'static str, kind: StopKind) -> Self {
        Self {
            stop_at: Some((at, kind)),
            ..Self::default()
        }
    }

    fn answer(&self, note: String) -> Answer<'static> {
        let verdict = match self.stop_at {
            Some((at, kind)) if note.starts_with(at) => Verdict::Stop(Stop {
                plugin: "policy".into(),
                reason: "not today".into(),
                kind,
            }),
            _ => Verdict::Go,
        };
        self.notes.borrow_mut().push(note);
        Box::pin(ready(verdict))
    }

    fn notes(&self) -> Vec<String> {
        self.notes.borrow().clone()
    }
}

impl Hooks for Asked {
    fn pipeline_validate<'a>(&'a mut self, facts: &'a PipelineFacts) -> Answer<'a> {
        let steps: Vec<_> = facts.steps.iter().map(|step| step.name.as_str()).collect();
        let path = facts.path.as_deref().unwrap_or("-");
        self.answer(format!("validate {path} {}", steps.join(",")))
    }

    fn step_pre<'a>(&'a mut self, facts: &'a BeforeStep<'a>) -> Answer<'a> {
        assert_eq!(facts.input_hash.len(), 64);
        assert_eq!(facts.pipeline_hash.len(), 64);
        let hit = if facts.cache_hit { " hit" } else { "" };
        self.answer(format!("pre {}{hit}", facts.step.name))
    }

    fn step_post<'a>(&'a mut self, facts: &'a AfterStep<'a>) -> Answer<'a> {
        let result = facts.result;
        assert_eq!((result.stdout.as_str(), result.stderr.as_str()), ("", ""));
        let said = facts.output.unwrap().stdout.trim();
        let hit = if result.cache_hit { " hit" } else { "" };
        self.answer(format!("post {}{hit} {said}", result.name))
    }

    fn receipt_finalize<'a>(&'a mut self, receipt: &'a Receipt) -> Answer<'a> {
        self.receipt = Some(receipt.clone());
        self.answer("finalize".into())
    }

    fn records(&self) -> Option<Vec<PluginRecord>> {
        let decision = match self.stop_at {
            Some(_) => Decision::Deny,
            None => Decision::Allow,
        };
        let record = |name: &str| PluginRecord {
            name: name.into(),
            version: "1".into(),
            protocol: 1,
            digest: format!("blake3:{}", "0".repeat(64)),
            decision,
            deterministic: true,
            reason: None,
            annotation: None,
        };
        Some(vec![record("policy"), record("audit")])
    }

    fn wants_output(&self) -> bool {
        true
    }

    fn finish(&mut self) -> Farewell<'_> {
        self.notes.borrow_mut().push("finish".into());
        Box::pin(ready(()))
    }
}

const STEPS: &str = "  a: {run: echo one}\n  b: {run: echo two, needs: [a]}\n";

#[test]
fn each_place_is_asked_once_in_its_order_also_about_cached_results() {
    let world = World::new();
    for hit in ["", " hit"] {
        let mut hooks = Asked::default();
        let (outcome, _) = run(&world.options(STEPS), &mut hooks);
        let receipt = outcome.unwrap().receipt;
        assert_eq!(
            hooks.notes(),
            [
                "validate attest.yaml a,b".to_owned(),
                format!("pre a{hit}"),
                format!("post a{hit} one"),
                format!("pre b{hit}"),
                format!("post b{hit} two"),
                "finalize".into(),
                "finish".into(),
            ]
        );
        assert_eq!(receipt.schema_version, Some(3));
        let names: Vec<_> = receipt.plugins.iter().flatten().map(|r| &r.name).collect();
        assert_eq!(names, ["audit", "policy"]);
        let seen = hooks.receipt.unwrap();
        assert_eq!(seen.plugins, None);
        assert_eq!(seen.steps, receipt.steps);
    }
}

#[test]
fn a_denial_before_any_step_leaves_nothing() {
    let world = World::new();
    for (at, asked) in [("validate", 1), ("pre a", 2)] {
        for (kind, no) in [(StopKind::Denied, true), (StopKind::Failed, false)] {
            let mut hooks = Asked::stopping(at, kind);
            let (outcome, seen) = run(&world.options(STEPS), &mut hooks);
            let error = outcome.unwrap_err();
            assert_eq!(error.is_no(), no);
            let how = if no { "denied" } else { "failed" };
            assert_eq!(
                told(&error),
                format!(
                    "plugin policy {how}: not today; no step was recorded, so there is no receipt"
                )
            );
            assert_eq!(hooks.notes().len(), asked);
            assert!(!seen.all().contains("started"));
        }
    }
    assert_eq!(world.receipts(), Vec::<String>::new());
    assert!(!exists(&world.path(".attest/causal_ledger/events")));
}

#[test]
fn a_denial_after_a_step_is_in_a_signed_receipt_and_nothing_more_is_asked() {
    let world = World::new();
    for (at, asked, steps) in [
        ("post a", 3, vec!["a"]),
        ("pre b", 4, vec!["a"]),
        ("post b", 5, vec!["a", "b"]),
        ("finalize", 6, vec!["a", "b"]),
    ] {
        for (kind, code) in [(StopKind::Denied, 1), (StopKind::Failed, 2)] {
            let mut hooks = Asked::stopping(at, kind);
            let key = FakeKey::new(String::new);
            let mut options = world.options(STEPS);
            options.signing = Some(&key);
            let outcome = run(&options, &mut hooks).0.unwrap();
            assert_eq!(outcome.exit_code(), code, "{at}");
            let notes = hooks.notes();
            assert_eq!(notes.len(), asked + 1, "{at}");
            assert!(notes[asked - 1].starts_with(at), "{at}");
            assert_eq!(notes[asked], "finish", "{at}");
            let names: Vec<_> = outcome
                .receipt
                .steps
                .iter()
                .map(|s| s.name.as_str())
                .collect();
            assert_eq!(names, steps, "{at}");
            assert!(outcome.receipt.signature.is_some());
            assert_eq!(outcome.skipped.len(), 2 - steps.len(), "{at}");
            let denied = &outcome.receipt.plugins.unwrap()[0];
            assert_eq!(denied.decision, Decision::Deny);
        }
    }
}

#[test]
fn what_runs_when_somebody_denies_ends_and_is_recorded_without_being_asked_about() {
    let world = World::new();
    let mut options = world.options(
        "  a: {run: 'while ! test -e go; do sleep 0.01; done; echo slow'}\n  b: {run: touch go}\n  c: {run: 'true'}\n",
    );
    options.jobs = jobs(2);
    let mut hooks = Asked::stopping("post b", StopKind::Denied);
    let outcome = run(&options, &mut hooks).0.unwrap();
    assert_eq!(
        hooks.notes(),
        [
            "validate attest.yaml a,b,c",
            "pre a",
            "pre b",
            "post b ",
            "finish"
        ]
    );
    let names: Vec<_> = outcome
        .receipt
        .steps
        .iter()
        .map(|s| s.name.as_str())
        .collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(outcome.receipt.steps[0].stdout, "slow\n");
    assert_eq!(outcome.skipped[0].step, "c");
    assert_eq!(
        outcome.skipped[0].why,
        "the run was stopped by plugin policy"
    );
}

#[test]
fn steps_are_asked_about_in_topological_order_whatever_could_start() {
    let world = World::new();
    // `c` could start at once, and yet `b` is asked about before it.
    let mut options = world
        .options("  a: {run: sleep 0.1}\n  b: {run: 'true', needs: [a]}\n  c: {run: 'true'}\n");
    options.jobs = jobs(3);
    let mut hooks = Asked::default();
    run(&options, &mut hooks).0.unwrap();
    let before: Vec<_> = hooks.notes();
    let before: Vec<_> = before.iter().filter(|n| n.starts_with("pre")).collect();
    assert_eq!(before, ["pre a", "pre b", "pre c"]);
}

#[test]
fn the_key_is_loaded_after_the_last_step_and_the_last_answer() {
    let world = World::new();
    let mut hooks = Asked::default();
    let notes = Rc::clone(&hooks.notes);
    let events = world.path(".attest/causal_ledger/events");
    let key = FakeKey::new(move || {
        let last = notes.borrow().last().cloned().unwrap_or_default();
        format!("{last} {}", exists(&events))
    });
    let mut options = world.options(STEPS);
    options.signing = Some(&key);
    let receipt = run(&options, &mut hooks).0.unwrap().receipt;
    // No event was written yet either, since events are signed too.
    assert_eq!(*key.loaded.borrow(), ["finish false"]);
    assert_eq!(receipt.signer_public_key, Some("ab".repeat(32)));
}

#[test]
fn values_of_secrets_are_not_told() {
    struct Facts(String);
    impl Hooks for Facts {
        fn pipeline_validate<'a>(&'a mut self, facts: &'a PipelineFacts) -> Answer<'a> {
            self.0 = format!("{facts:?}");
            Box::pin(ready(Verdict::Go))
        }
        fn step_pre<'a>(&'a mut self, facts: &'a BeforeStep<'a>) -> Answer<'a> {
            self.0.push_str(&format!("{facts:?}"));
            Box::pin(ready(Verdict::Go))
        }
        fn step_post<'a>(&'a mut self, facts: &'a AfterStep<'a>) -> Answer<'a> {
            self.0.push_str(&format!("{facts:?}"));
            Box::pin(ready(Verdict::Go))
        }
        fn receipt_finalize<'a>(&'a mut self, receipt: &'a Receipt) -> Answer<'a> {
            self.0.push_str(&format!("{receipt:?}"));
            Box::pin(ready(Verdict::Go))
        }
        fn records(&self) -> Option<Vec<PluginRecord>> {
            Some(Vec::new())
        }
        fn wants_output(&self) -> bool {
            true
        }
        fn finish(&mut self) -> Farewell<'_> {
            Box::pin(ready(()))
        }
    }
    let world = World::new();
    let options = world.options_of(
        "version: '1'\nsecrets: [TOKEN]\nenv: {TOKEN: hunter2}\nsteps:\n  a: {run: echo $TOKEN hunter2}\n",
    );
    let mut hooks = Facts(String::new());
    // An empty list of records is no receipt that anybody would read.
    run(&options, &mut hooks).0.unwrap_err();
    assert!(hooks.0.contains("[redacted TOKEN]"));
    assert!(!hooks.0.contains("hunter2"), "{}", hooks.0);
}
