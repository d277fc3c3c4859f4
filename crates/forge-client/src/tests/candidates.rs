//! Candidates in real repositories.

use std::path::Path;

use super::*;

#[expect(
    clippy::disallowed_methods,
    reason = "the test makes its repositories with the git that users have"
)]
fn git(folder: &Path, words: &str) -> String {
    let output = std::process::Command::new("git")
        .args([
            "-c",
            "user.name=Test",
            "-c",
            "user.email=test@example.invalid",
        ])
        .args(words.split(' '))
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {words}: {stderr}");
    String::from_utf8(output.stdout)
        .unwrap()
        .trim_end()
        .to_owned()
}

/// A Worker's repository with a base and a candidate, and a clone without the candidate.
struct Repositories {
    dir: tempfile::TempDir,
    base: String,
    candidate: String,
    reference: String,
}

impl Repositories {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let worker = dir.path().join("worker");
        fs_err::create_dir(&worker).unwrap();
        git(&worker, "init -q -b main .");
        fs_err::write(worker.join("a.txt"), "old\n").unwrap();
        git(&worker, "add .");
        git(&worker, "commit -q -m base");
        let base = git(&worker, "rev-parse HEAD");
        git(dir.path(), "clone -q worker mine");
        fs_err::write(worker.join("a.txt"), "new \u{202e}\n").unwrap();
        git(&worker, "commit -q -a -m candidate");
        let candidate = git(&worker, "rev-parse HEAD");
        let reference = format!("refs/agent-forge/candidates/{JOB}/{ATTEMPT}");
        git(&worker, &format!("update-ref {reference} {candidate}"));
        git(&worker, &format!("reset -q --hard {base}"));
        Self {
            dir,
            base,
            candidate,
            reference,
        }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    fn gate(&self, candidate: &str) -> FakeGate {
        let gate = FakeGate::new();
        let body = succeeded()
            .replace(BASE, &self.base)
            .replace(CANDIDATE, candidate);
        gate.json(&format!("GET /v1/jobs/{JOB}"), 200, body);
        gate
    }
}

#[test]
fn a_candidate_is_fetched_under_its_ref_and_shown() {
    let there = Repositories::new();
    let gate = there.gate(&there.candidate);
    let (from, mine) = (there.path("worker"), there.path("mine"));
    let missing = forge(&gate, &format!("diff {JOB} --repo {mine}")).failed();
    assert!(missing.2.contains("forge fetch"), "{missing:?}");

    let before = git(Path::new(&mine), "for-each-ref");
    let text = forge(&gate, &format!("fetch {JOB} --from {from} --into {mine}")).ok();
    assert_eq!(text, format!("{}\n", there.reference));
    let after = git(Path::new(&mine), "for-each-ref");
    let new: Vec<&str> = after
        .lines()
        .filter(|line| !before.contains(line))
        .collect();
    assert_eq!(
        new,
        [format!("{} commit\t{}", there.candidate, there.reference)]
    );
    assert_eq!(git(Path::new(&mine), "status --porcelain"), "");

    let diff = forge(&gate, &format!("diff {JOB} --repo {mine}")).ok();
    assert!(
        diff.contains("-old\n+new \u{202e}\n"),
        "a program gets it unchanged: {diff}"
    );
    let json = forge(&gate, &format!("diff {JOB} --repo {mine} --format json")).ok();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["candidate_sha"], there.candidate.as_str());
}

#[test]
fn a_ref_that_was_moved_is_refused() {
    let there = Repositories::new();
    let gate = there.gate(CANDIDATE);
    let line = format!(
        "fetch {JOB} --from {} --into {}",
        there.path("worker"),
        there.path("mine")
    );
    let (code, message, hints) = forge(&gate, &line).failed();
    assert_eq!(code, 2);
    assert!(
        message.contains(&format!("the Gate recorded {CANDIDATE}")),
        "{message}"
    );
    assert!(hints.contains("do not use it"), "{hints}");
}

#[test]
fn a_job_without_candidate_is_an_honest_no() {
    let there = Repositories::new();
    let gate = FakeGate::new();
    gate.json(&format!("GET /v1/jobs/{JOB}"), 200, job("failed", ""));
    let line = format!(
        "fetch {JOB} --from {} --into {}",
        there.path("worker"),
        there.path("mine")
    );
    let (code, message, _) = forge(&gate, &line).failed();
    assert_eq!(code, 1);
    assert_eq!(
        message,
        format!("job `{JOB}` is `failed` and has no candidate commit")
    );
}

#[test]
fn the_base_of_a_task_comes_from_a_local_clone() {
    let there = Repositories::new();
    let gate = FakeGate::new();
    gate.json("POST /v1/jobs", 201, job("pending", ""));
    let mine = there.path("mine");
    let line = format!("submit --repository demo --instruction x --repo-path {mine}");
    forge(&gate, &line).ok();
    forge(&gate, &format!("{line} --rev main")).ok();
    for request in gate.requests() {
        assert!(
            request
                .body
                .contains(&format!("\"base_sha\":\"{}\"", there.base))
        );
    }
    let (code, message, _) = forge(&gate, &format!("{line} --rev nowhere")).failed();
    assert_eq!(code, 2);
    assert!(
        message.contains("cannot find `nowhere` in repository"),
        "{message}"
    );
    assert_eq!(gate.requests().len(), 2);
}
