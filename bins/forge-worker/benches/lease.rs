//! How long a coding lease takes around its plugin, in a repository of 2 000 files.
//!
//! Prints medians in milliseconds: lease to plugin start, plugin end to candidate, candidate to
//! result, with workspaces made when they are needed and made ahead, beside `git clone --shared`
//! of the same repository. Run it on a quiet machine: `cargo bench -p forge-worker`.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a bench starts what it measures, prints what it found and may fail by panicking"
)]
#![allow(
    dead_code,
    reason = "the bed and the Gate of the tests have more than is needed here"
)]

#[path = "../tests/it/bed.rs"]
mod bed;
#[path = "../tests/it/gate.rs"]
mod gate;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;

use crate::bed::{Bed, command, git, until};
use crate::gate::Gate;

const FILES: usize = 2000;
const ROUNDS: usize = 15;

/// Says when it starts and ends, and changes one file; no interpreter that takes its time.
const PLUGIN: &str = r#"#!/bin/sh
date +%s%N > "$BENCH/start"
IFS= read -r init
id=${init#*\"id\":\"}
id=${id%%\"*}
head='{"version":"v1","id":"'$id'","type":'
printf '%s"initialized","capabilities":["workspace_edit"]}\n' "$head"
IFS= read -r execute
workspace=${execute#*\"workspace\":\"}
workspace=${workspace%%\"*}
echo edited > "$workspace/answer.txt"
date +%s%N > "$BENCH/end"
printf '%s"result"}\n' "$head"
"#;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let cold = measure(0).await;
    let ahead = measure(1).await;
    let clone = clone_shared();
    println!("files {FILES}, rounds {ROUNDS}, medians in ms");
    println!(
        "git clone --shared                        {:8.1}",
        ms(clone)
    );
    for (name, [start, candidate, result]) in [("cold", cold), ("ahead", ahead)] {
        println!(
            "{name:5} lease to plugin start              {:8.1}",
            ms(start)
        );
        println!(
            "{name:5} plugin end to candidate            {:8.1}",
            ms(candidate)
        );
        println!(
            "{name:5} candidate to result               {:8.1}",
            ms(result)
        );
    }
}

async fn measure(prepared: u16) -> [Duration; 3] {
    let gate = Gate::new().await;
    let mut bed = Bed::new(&gate.url());
    fill(&mut bed);
    let plugin = bed.root.join("bin/bench");
    fs::write(&plugin, PLUGIN).unwrap();
    fs::set_permissions(&plugin, fs::Permissions::from_mode(0o755)).unwrap();
    bed.config["plugins"][0]["argv"] = json!([plugin]);
    bed.config["environment_allowlist"] = json!(["PATH", "BENCH"]);
    bed.config["prepared_workspaces"] = json!(prepared);
    let root = bed.root.display().to_string();
    bed.set_env("BENCH", Some(&root));
    let worker = bed.start();
    let mut slot = gate.accept().await;
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for round in 0..=ROUNDS {
        let lease = bed.coding_lease("edit", json!([]), |lease| {
            lease["policy"]["execution"]["environment"] = json!(["PATH", "BENCH"]);
            lease["attempt_id"] = json!(gate::ATTEMPT);
        });
        let sent = wall();
        slot.say(lease).await;
        let answer = slot.answer().await;
        let done = wall();
        assert!(answer.contains("candidate_sha"), "{answer}");
        slot.ack().await;
        let reference = format!(
            "refs/agent-forge/candidates/{}/{}",
            gate::JOB,
            gate::ATTEMPT
        );
        bed.git(&["update-ref", "-d", &reference]);
        // The first round warms caches, and makes the first workspace ahead.
        if round > 0 {
            let end = stamp(&bed.root.join("end"));
            let candidate = candidate_made(&worker.log());
            times[0].push(stamp(&bed.root.join("start")).saturating_sub(sent));
            times[1].push(candidate.saturating_sub(end));
            times[2].push(done.saturating_sub(candidate));
        }
        until("the workspace made ahead", || is_ready(&bed, prepared)).await;
        // One that was made ahead has mostly waited longer than a second.
        tokio::time::sleep(Duration::from_millis(1200)).await;
    }
    times.map(median)
}

/// Whether the workspaces made ahead are whole, and nothing is left of the job before.
fn is_ready(bed: &Bed, prepared: u16) -> bool {
    let found = bed.in_folders();
    let whole = found.iter().filter(|path| path.join(".git/HEAD").exists());
    whole.count() == usize::from(prepared) && found.len() == usize::from(prepared) * 2
}

fn fill(bed: &mut Bed) {
    for index in 0..FILES {
        let folder = bed.repository().join(format!("d{}", index % 50));
        fs::create_dir_all(&folder).unwrap();
        fs::write(
            folder.join(format!("f{index}")),
            format!("line of file {index}\n").repeat(40),
        )
        .unwrap();
    }
    bed.git(&["add", "."]);
    bed.git(&["commit", "-q", "-m", "many"]);
    bed.git(&["gc", "-q"]);
    bed.base = bed.git(&["rev-parse", "HEAD"]);
}

fn clone_shared() -> Duration {
    let mut bed = Bed::new("ws://127.0.0.1:1");
    fill(&mut bed);
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        let target = bed.root.join(format!("clone{round}"));
        let since = Instant::now();
        git(
            &bed.root,
            &[
                "clone",
                "-q",
                "--shared",
                "repositories/demo",
                target.to_str().unwrap(),
            ],
        );
        times.push(since.elapsed());
        let removed = command("rm").arg("-rf").arg(&target).status().unwrap();
        assert!(removed.success());
    }
    median(times)
}

fn wall() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

/// When the last candidate was made, by the Worker's log.
fn candidate_made(log: &str) -> Duration {
    let line = log
        .lines()
        .rfind(|line| line.contains("candidate made"))
        .unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    let time: jiff::Timestamp = line["time"].as_str().unwrap().parse().unwrap();
    Duration::try_from(time.duration_since(jiff::Timestamp::UNIX_EPOCH)).unwrap()
}

fn stamp(path: &Path) -> Duration {
    Duration::from_nanos(fs::read_to_string(path).unwrap().trim().parse().unwrap())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
