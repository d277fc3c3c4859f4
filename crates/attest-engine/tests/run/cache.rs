//! What an entry of the cache is worth: never more than what is on disk.

use attest_engine::hooks::NoHooks;

use crate::support::{Seen, World, run, step};

const BUILD: &str = "  build:\n    run: cat in > out; echo built; echo x >> count\n    inputs: [in]\n    outputs: [out]\n";

struct Built {
    world: World,
}

impl Built {
    fn new() -> Self {
        let world = World::new();
        world.write("in", "one");
        Self { world }
    }

    /// Runs, and tells whether the result came from the cache.
    fn hit(&self, steps: &str) -> (bool, Seen) {
        let (outcome, seen) = run(&self.world.options(steps), &mut NoHooks);
        let receipt = outcome.unwrap().receipt;
        (step(&receipt, "build").cache_hit, seen)
    }

    fn entry(&self) -> String {
        let files = self.world.files(".attest/cache");
        assert_eq!(files.len(), 1, "{files:?}");
        format!(".attest/cache/{}", files[0])
    }
}

#[test]
fn a_hit_records_the_same_facts_and_artifacts_and_runs_nothing() {
    let built = Built::new();
    let first = run(&built.world.options(BUILD), &mut NoHooks).0.unwrap();
    let second = run(&built.world.options(BUILD), &mut NoHooks).0.unwrap();
    assert_eq!(built.world.read("count"), "x\n");
    let (one, two) = (&first.receipt.steps[0], &second.receipt.steps[0]);
    assert!(!one.cache_hit);
    assert!(two.cache_hit);
    assert_eq!(one.stdout, "built\n");
    assert_eq!(
        (&one.stdout, &one.output_hash),
        (&two.stdout, &two.output_hash)
    );
    let artifacts = |receipt: &attest_receipt::receipt::Receipt| {
        receipt.provenance.as_ref().unwrap().artifacts.clone()
    };
    assert_eq!(artifacts(&first.receipt).len(), 1);
    assert_eq!(artifacts(&first.receipt), artifacts(&second.receipt));
    assert_eq!(second.outputs["build"].len(), 1);
}

#[test]
fn a_change_of_anything_the_step_depends_on_is_a_miss() {
    let built = Built::new();
    assert!(!built.hit(BUILD).0);
    assert!(built.hit(BUILD).0);
    built.world.write("in", "two");
    assert!(!built.hit(BUILD).0);
    for changed in [
        format!("{BUILD}    env: {{A: b}}\n"),
        format!("{BUILD}    timeout_secs: 60\n"),
        format!("{BUILD}    working_dir: .\n"),
        BUILD.replace("echo built", "echo  built"),
    ] {
        assert!(!built.hit(&changed).0, "{changed}");
        assert!(built.hit(&changed).0, "{changed}");
    }
}

#[test]
fn a25_outputs_that_are_gone_or_changed_are_made_again() {
    let built = Built::new();
    assert!(!built.hit(BUILD).0);
    fs_err::remove_file(built.world.path("out")).unwrap();
    assert!(!built.hit(BUILD).0);
    built.world.write("out", "forged");
    assert!(!built.hit(BUILD).0);
    assert_eq!(built.world.read("out"), "one");
    fs_err::remove_file(built.world.path("out")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", built.world.path("out")).unwrap();
    let steps = BUILD.replace("cat in > out", "rm -f out; cat in > out");
    assert!(!built.hit(&steps).0);
    assert_eq!(built.world.read("out"), "one");
}

#[test]
fn a_step_may_refuse_the_cache_and_failures_are_never_kept() {
    let built = Built::new();
    let refuses = format!("{BUILD}    cache: false\n");
    for _ in 0..2 {
        assert!(!built.hit(&refuses).0);
    }
    assert_eq!(built.world.files(".attest/cache"), Vec::<String>::new());
    let (outcome, _) = built.world.run("  build: {run: exit 1}\n");
    assert_eq!(outcome.unwrap().exit_code(), 1);
    assert_eq!(built.world.files(".attest/cache"), Vec::<String>::new());
}

#[test]
fn a_damaged_or_foreign_entry_is_passed_over_with_a_warning() {
    let built = Built::new();
    assert!(!built.hit(BUILD).0);
    let entry = built.entry();
    let good = built.world.read(&entry);
    let step_of_another = good.replace("name: build", "name: other");
    let key_of_another = good.replacen("content_hash: ", "content_hash: 0", 1);
    let failed = good.replace("exit_code: 0", "exit_code: 1");
    let inputs = good.replace("input_hash: ", "input_hash: 0");
    let cut = good.get(..good.len() / 2).unwrap();
    for (what, bad) in [
        ("empty", ""),
        ("no YAML", "{{{"),
        ("a list", "- 1\n"),
        ("an alias", "a: &a 1\nb: *a\n"),
        ("cut", cut),
        ("another step's", &step_of_another),
        ("another key's", &key_of_another),
        ("a failure", &failed),
        ("other inputs", &inputs),
    ] {
        assert_ne!(bad, good, "{what}");
        built.world.write(&entry, bad);
        let (hit, seen) = built.hit(BUILD);
        assert!(!hit, "{what}");
        assert!(
            seen.all()
                .contains("warning step 'build': a cache entry is passed over"),
            "{what}: {}",
            seen.all()
        );
        // The good result is there again.
        assert!(built.hit(BUILD).0, "{what}");
    }
    fs_err::remove_file(built.world.path(&entry)).unwrap();
    nix::unistd::mkfifo(
        &built.world.path(&entry),
        nix::sys::stat::Mode::from_bits_truncate(0o600),
    )
    .unwrap();
    assert!(!built.hit(BUILD).0);
}

#[test]
fn an_entry_cannot_forge_what_is_on_disk() {
    let built = Built::new();
    assert!(!built.hit(BUILD).0);
    let entry = built.entry();
    let good = built.world.read(&entry);
    let honest = good
        .lines()
        .find_map(|line| line.trim().strip_prefix("output_hash: "))
        .unwrap()
        .to_owned();
    // Claims outputs that are not there: a miss.
    let forged = "f".repeat(64);
    built.world.write(&entry, &good.replace(&honest, &forged));
    assert!(!built.hit(BUILD).0);
    // Claims a duration and words: they are taken over, the hashes are those of the disk.
    built.world.write(
        &entry,
        &good.replace("cache_hit: false", "cache_hit: false\n  artifacts: []"),
    );
    let (outcome, _) = run(&built.world.options(BUILD), &mut NoHooks);
    let receipt = outcome.unwrap().receipt;
    let step = step(&receipt, "build");
    assert!(step.cache_hit);
    assert_eq!(step.output_hash, honest);
    assert_eq!(receipt.provenance.unwrap().artifacts.len(), 1);
}

#[test]
fn a_cache_that_cannot_be_written_costs_only_time() {
    let built = Built::new();
    fs_err::create_dir_all(built.world.path(".attest/cache")).unwrap();
    assert!(!built.hit(BUILD).0);
    let entry = built.entry();
    fs_err::remove_file(built.world.path(&entry)).unwrap();
    fs_err::create_dir(built.world.path(&entry)).unwrap();
    let (hit, seen) = built.hit(BUILD);
    assert!(!hit);
    assert!(
        seen.all().contains(&format!(
            "step 'build': its result cannot be cached: cannot write into `{}`: is a directory",
            built.world.path(".attest/cache").display()
        )),
        "{}",
        seen.all()
    );
    assert_eq!(built.world.files(".attest/cache").len(), 1);
}
