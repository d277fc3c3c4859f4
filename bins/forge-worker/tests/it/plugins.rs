//! Plugins that fail, hang, are missing, or are older than a capability.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use crate::bed::{Bed, processes_with, unique_sleep};
use crate::gate::failed;

fn assert_plugin_evidence(evidence: &[Value], reason: &str) {
    assert_eq!(evidence.len(), 1, "{evidence:?}");
    assert_eq!(evidence[0]["phase"], "plugin");
    assert_eq!(evidence[0]["reason"], reason);
}

#[tokio::test]
async fn a_reported_failure_is_retryable_and_its_category_stays_here() {
    let (bed, _gate, worker, mut slot) = Bed::connected().await;
    let (evidence, answer) = slot.run(bed.coding_lease("#fail", json!([]), |_| {})).await;
    assert_eq!(answer, failed("execution_failed", "retryable"));
    assert_plugin_evidence(&evidence, "plugin_reported_failure");
    assert!(
        worker
            .log()
            .contains("the plugin reported `execution_failed`"),
        "{}",
        worker.log()
    );
    assert!(bed.leftovers().is_empty());
}

#[tokio::test]
async fn a_plugin_out_of_time_is_killed_with_all_it_started() {
    let (bed, _gate, worker, mut slot) = Bed::connected().await;
    let sleep = unique_sleep();
    let instruction = format!("setsid sleep {sleep} & sleep {sleep}");
    let lease = bed.coding_lease(&instruction, json!([]), |lease| {
        lease["policy"]["execution"]["plugin_timeout_nanos"] = json!(1_000_000_000);
    });
    let (evidence, answer) = slot.run(lease).await;
    assert_eq!(answer, failed("execution_failed", "retryable"));
    assert_plugin_evidence(&evidence, "plugin_protocol_failed");
    assert_eq!(
        evidence[0]["duration_ms"], 1000,
        "cut to the policy's limit"
    );
    assert_eq!(processes_with(&sleep), Vec::<String>::new());
    assert!(bed.leftovers().is_empty());
    let log = worker.log();
    assert!(
        log.contains("no end within the plugin_timeout of 1s"),
        "{log}"
    );
}

#[tokio::test]
async fn a_daemon_of_a_plugin_is_gone_before_the_result() {
    let (bed, _gate, _worker, mut slot) = Bed::connected().await;
    let sleep = unique_sleep();
    let started = bed.root.join("started");
    let instruction = format!(
        "(setsid sleep {sleep} &) ; echo x > answer.txt; touch {}",
        started.display()
    );
    slot.run(bed.coding_lease(&instruction, json!([]), |_| {}))
        .await;
    assert!(started.exists());
    assert_eq!(processes_with(&sleep), Vec::<String>::new());
}

#[tokio::test]
async fn a_plugin_that_went_away_after_the_start_cannot_be_started() {
    let (bed, _gate, _worker, mut slot) = Bed::connected_with(|bed| {
        let path = bed.root.join("bin/going");
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        bed.config["plugins"][0]["argv"] = json!([path]);
    })
    .await;
    fs::remove_file(bed.root.join("bin/going")).unwrap();
    let (evidence, answer) = slot.run(bed.coding_lease("x", json!([]), |_| {})).await;
    assert_eq!(answer, failed("execution_failed", "retryable"));
    assert_plugin_evidence(&evidence, "plugin_start_failed");
}

#[tokio::test]
async fn a_plugin_that_breaks_the_protocol_is_named_in_the_log_only() {
    let (bed, _gate, worker, mut slot) = Bed::connected_with(|bed| {
        bed.config["plugins"][0]["argv"] = json!([
            "/bin/sh",
            "-c",
            "echo private words >&2; echo a banner; cat >/dev/null"
        ]);
    })
    .await;
    let (evidence, answer) = slot.run(bed.coding_lease("x", json!([]), |_| {})).await;
    assert_eq!(answer, failed("execution_failed", "retryable"));
    assert_plugin_evidence(&evidence, "plugin_protocol_failed");
    assert!(!format!("{evidence:?}").contains("banner"));
    let log = worker.log();
    assert!(
        log.contains("a banner") && log.contains("private words"),
        "{log}"
    );
}

#[tokio::test]
async fn an_old_strict_plugin_needs_capabilities_and_the_log_says_so() {
    let old = |bed: &Bed| {
        json!([
            "/usr/bin/python3",
            bed.root.join("bin/plugin.py"),
            "--strict-old"
        ])
    };
    let (bed, _gate, worker, mut slot) = Bed::connected_with(|bed| {
        bed.config["plugins"][0]["argv"] = old(bed);
    })
    .await;
    let lease = bed.coding_lease("echo x > answer.txt", json!([]), |_| {});
    let (evidence, answer) = slot.run(lease).await;
    assert_eq!(answer, failed("execution_failed", "retryable"));
    assert_plugin_evidence(&evidence, "plugin_protocol_failed");
    assert!(
        worker.log().contains("`capabilities` of its entry"),
        "{}",
        worker.log()
    );

    let (bed, _gate, _worker, mut slot) = Bed::connected_with(|bed| {
        bed.config["plugins"][0]["argv"] = old(bed);
        bed.config["plugins"][0]["capabilities"] = json!(["workspace_edit", "commit_subject"]);
    })
    .await;
    let instruction = "#subject feat: by an old plugin\necho x > answer.txt";
    let (_, answer) = slot
        .run(bed.coding_lease(instruction, json!([]), |_| {}))
        .await;
    assert!(answer.contains("candidate_sha"), "{answer}");
}

#[tokio::test]
async fn a_switched_link_takes_effect_at_the_next_attempt() {
    let script = |text: &str| {
        format!(
            "#!/usr/bin/python3\nimport json,os,sys\ni=json.loads(sys.stdin.readline())['id']\n\
             def send(**f): print(json.dumps(dict(version='v1',id=i,**f),separators=(',',':')),flush=True)\n\
             send(type='initialized',capabilities=['text'])\nsys.stdin.readline()\n\
             send(type='result',output='{text}')\nos._exit(0)\n"
        )
    };
    let (bed, _gate, worker, mut slot) = Bed::connected_with(|bed| {
        for name in ["one", "two"] {
            let path = bed.root.join("bin").join(name);
            fs::write(&path, script(name)).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let current = bed.root.join("bin/current");
        symlink("one", &current).unwrap();
        bed.config["plugins"][0]["argv"] = json!([current]);
    })
    .await;
    assert_eq!(
        slot.run(bed.text_lease("x")).await.1,
        crate::gate::result("one")
    );
    symlink("two", bed.root.join("bin/next")).unwrap();
    fs::rename(bed.root.join("bin/next"), bed.root.join("bin/current")).unwrap();
    assert_eq!(
        slot.run(bed.text_lease("x")).await.1,
        crate::gate::result("two")
    );
    let log = worker.log();
    for name in ["bin/one", "bin/two"] {
        assert!(
            log.lines()
                .any(|line| line.contains(name) && line.contains("blake3:")),
            "{log}"
        );
    }
}
