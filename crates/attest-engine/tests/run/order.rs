//! Which step runs when, and what becomes of the others when one fails.

use attest_engine::hooks::NoHooks;

use crate::support::{World, jobs, run, told};

fn names(receipt: &attest_receipt::receipt::Receipt) -> Vec<&str> {
    receipt
        .steps
        .iter()
        .map(|step| step.name.as_str())
        .collect()
}

#[test]
fn one_job_runs_the_steps_in_topological_order_by_name() {
    let world = World::new();
    let (outcome, seen) = world.run(
        "  d: {run: 'true'}\n  c: {run: 'true', needs: [e]}\n  e: {run: 'true', needs: [d]}\n  a: {run: 'true', needs: [e]}\n  b: {run: 'true'}\n",
    );
    assert_eq!(names(&outcome.unwrap().receipt), ["b", "d", "e", "a", "c"]);
    let started: Vec<_> = seen.all().lines().map(str::to_owned).collect();
    assert_eq!(
        started,
        [
            "started b",
            "ended b 0",
            "started d",
            "ended d 0",
            "started e",
            "ended e 0",
            "started a",
            "ended a 0",
            "started c",
            "ended c 0"
        ]
    );
}

#[test]
fn a_failure_stops_its_dependants_and_nobody_else() {
    let world = World::new();
    for count in [1, 4] {
        let mut options = world.options(
            "  a: {run: exit 3}\n  b: {run: 'true', needs: [a]}\n  c: {run: 'true', needs: [b]}\n  d: {run: 'true', cache: false}\n",
        );
        options.jobs = jobs(count);
        let (outcome, seen) = run(&options, &mut NoHooks);
        let outcome = outcome.unwrap();
        assert_eq!(outcome.exit_code(), 1);
        assert_eq!(names(&outcome.receipt), ["a", "d"]);
        assert_eq!(outcome.failed, ["a"]);
        let skipped: Vec<_> = outcome.skipped.iter().map(|s| s.step.as_str()).collect();
        assert_eq!(skipped, ["b", "c"]);
        assert!(
            seen.all()
                .contains("skipped b: a dependency did not succeed")
        );
        assert!(outcome.path.unwrap().exists());
        // What was declared is told in full.
        assert_eq!(outcome.receipt.provenance.unwrap().steps.len(), 4);
        assert_eq!(outcome.receipt.causal_events.len(), 2);
    }
}

#[test]
fn independent_steps_run_at_once_with_jobs_and_not_without() {
    let world = World::new();
    // Each waits for the other, for at most a minute.
    let meet = |own: &str, other: &str| {
        format!(
            "touch {own}; for i in $(seq 6000); do test -e {other} && exit 0; sleep 0.01; done; exit 1"
        )
    };
    let steps = format!(
        "  a: {{run: '{}', cache: false}}\n  b: {{run: '{}', cache: false}}\n",
        meet("here-a", "here-b"),
        meet("here-b", "here-a")
    );
    let mut options = world.options(&steps);
    options.jobs = jobs(2);
    assert_eq!(run(&options, &mut NoHooks).0.unwrap().exit_code(), 0);
    for name in ["here-a", "here-b"] {
        fs_err::remove_file(world.path(name)).unwrap();
    }
    let mut options = world.options(&steps.replace("seq 6000", "seq 10"));
    options.jobs = jobs(1);
    let alone = run(&options, &mut NoHooks).0.unwrap();
    assert_eq!(alone.failed, ["a"]);
}

#[test]
fn at_most_so_many_steps_run_at_once() {
    let world = World::new();
    fs_err::create_dir(world.path("running")).unwrap();
    let mut steps = String::new();
    for number in 0..8 {
        steps.push_str(&format!(
            "  s{number}: {{run: 'touch running/$$; ls running | wc -l; sleep 0.05; rm running/$$'}}\n"
        ));
    }
    let mut options = world.options(&steps);
    options.jobs = jobs(3);
    let receipt = run(&options, &mut NoHooks).0.unwrap().receipt;
    let most = receipt
        .steps
        .iter()
        .map(|step| step.stdout.trim().parse::<usize>().unwrap())
        .max();
    assert!(most <= Some(3), "{most:?}");
}

#[test]
fn steps_that_share_a_written_path_never_run_side_by_side() {
    let world = World::new();
    // Whoever finds the lock taken was run beside another one.
    let body = "mkdir lock || exit 9; sleep 0.05; rmdir lock";
    let steps = format!(
        "  a: {{run: '{body}; echo a > out/x', outputs: [out], cache: false}}\n  b: {{run: '{body}; echo b > out/x', outputs: [out/x], cache: false}}\n  c: {{run: '{body}; cat out/x', inputs: [out/x], cache: false}}\n"
    );
    fs_err::create_dir(world.path("out")).unwrap();
    let mut options = world.options(&steps);
    options.jobs = jobs(4);
    for _ in 0..3 {
        let outcome = run(&options, &mut NoHooks).0.unwrap();
        assert_eq!(outcome.exit_code(), 0, "{:?}", outcome.receipt.steps);
        // In topological order, so that the same step always has the last word.
        assert_eq!(outcome.receipt.steps[2].stdout, "b\n");
    }
}

#[test]
fn the_receipt_does_not_depend_on_who_was_first() {
    let world = World::new();
    let steps = |a: &str, b: &str| {
        format!(
            "  a: {{run: '{a}; echo a | tee a.out', outputs: [a.out], cache: false}}\n  b: {{run: '{b}; echo b | tee b.out', outputs: [b.out], cache: false}}\n  c: {{run: cat a.out b.out, inputs: [a.out, b.out], needs: [a, b], cache: false}}\n"
        )
    };
    let texts = [("sleep 0.2", "true"), ("true", "sleep 0.2")].map(|(a, b)| {
        let mut options = world.options(&steps(
            "test -n \"$SLOW_A\" && { while ! test -e b.out; do sleep 0.01; done; sleep 0.2; }",
            "test -n \"$SLOW_B\" && { while ! test -e a.out; do sleep 0.01; done; sleep 0.2; }",
        ));
        options.jobs = jobs(2);
        for name in ["a.out", "b.out"] {
            fs_err::remove_file(world.path(name)).ok();
        }
        let slow = if a == "true" { "SLOW_B" } else { "SLOW_A" };
        options.environment.0.push((slow.into(), b.into()));
        options.environment.0.push((slow.into(), "yes".into()));
        let (outcome, seen) = run(&options, &mut NoHooks);
        let mut receipt = outcome.unwrap().receipt;
        receipt.provenance.as_mut().unwrap().invocation_id = None;
        let ended: Vec<_> = seen
            .all()
            .lines()
            .filter(|line| line.starts_with("ended"))
            .map(str::to_owned)
            .collect();
        (ended[0].clone(), receipt.to_yaml().unwrap())
    });
    assert_ne!(texts[0].0, texts[1].0);
    assert_eq!(texts[0].1, texts[1].1);
}

#[test]
fn an_error_ends_the_steps_that_run_beside_it() {
    let world = World::new();
    let mut options = world.options(
        "  a: {run: 'echo $$ > pid; exec sleep 300'}\n  b: {run: 'while ! test -s pid; do sleep 0.01; done', outputs: [missing]}\n",
    );
    options.jobs = jobs(2);
    let error = run(&options, &mut NoHooks).0.unwrap_err();
    assert!(error.is_no());
    assert_eq!(told(&error), "step 'b': declared output not found: missing");
    let pid: i32 = world.read("pid").trim().parse().unwrap();
    let gone = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None);
    assert_eq!(gone, Err(nix::errno::Errno::ESRCH));
    assert_eq!(world.receipts(), Vec::<String>::new());
}
