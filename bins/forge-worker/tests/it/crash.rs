//! A Worker that is killed without a chance to clean up, and the one that comes after it.

use serde_json::json;

use crate::bed::{Bed, processes_with, unique_sleep, until};

#[tokio::test]
async fn r37_kill_9_leaves_no_process_and_the_next_start_sweeps() {
    let (bed, gate, mut worker, mut slot) = Bed::connected().await;
    let sleep = unique_sleep();
    let late = bed.root.join("late");
    let instruction = format!(
        "setsid sleep {sleep} & (setsid sh -c 'trap \"\" TERM HUP; sleep {sleep}; touch {late}' &) ; sleep {sleep}; touch {late}",
        late = late.display()
    );
    slot.say(bed.coding_lease(&instruction, json!([]), |_| {}))
        .await;
    until("the plugin to run", || processes_with(&sleep).len() >= 5).await;
    worker.kill().await;
    until("all of the plugin to be gone", || {
        processes_with(&sleep).is_empty()
    })
    .await;
    let wrapped = bed.root.join("bin/plugin.py").display().to_string();
    until("the wrapper to be gone", || {
        processes_with(&wrapped).is_empty()
    })
    .await;
    assert_eq!(bed.leftovers().len(), 2, "{:?}", bed.leftovers());

    let second = bed.start();
    let mut slot = gate.accept().await;
    assert!(bed.leftovers().is_empty(), "{:?}", bed.leftovers());
    assert!(
        second.log().contains("removed what a killed Worker left"),
        "{}",
        second.log()
    );
    let lease = bed.coding_lease("echo x > answer.txt", json!([["./check.sh"]]), |_| {});
    let (_, answer) = slot.run(lease).await;
    assert!(answer.contains("candidate_sha"), "{answer}");
    assert!(!late.exists());
}

#[tokio::test]
async fn r37_kill_9_during_a_check_leaves_no_process() {
    let (bed, _gate, mut worker, mut slot) = Bed::connected().await;
    let sleep = unique_sleep();
    let check = format!("setsid sleep {sleep} & sleep {sleep}");
    slot.say(bed.coding_lease("echo x > answer.txt", json!([["sh", "-c", check]]), |_| {}))
        .await;
    until("the check to run", || processes_with(&sleep).len() >= 3).await;
    worker.kill().await;
    until("all of the check to be gone", || {
        processes_with(&sleep).is_empty()
    })
    .await;
    assert_eq!(bed.candidate_refs(), "");
}

#[tokio::test]
async fn a_second_worker_on_the_same_folders_is_refused() {
    let (bed, _gate, mut worker, mut slot) = Bed::connected().await;
    let mut second = bed.start();
    assert_eq!(second.ended().await.code(), Some(2));
    let log = second.log();
    assert!(
        log.contains("another Worker owns") && log.contains("worktrees"),
        "{log}"
    );
    // The first is not disturbed.
    assert_eq!(
        slot.run(bed.text_lease("hello")).await.1,
        crate::gate::result("HELLO")
    );
    worker.kill().await;
}
