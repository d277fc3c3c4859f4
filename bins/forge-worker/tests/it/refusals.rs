//! Leases that this Worker cannot carry out: `invalid_task`, terminal, no evidence.

use serde_json::{Value, json};

use crate::bed::Bed;
use crate::gate::{failed, result};

type Change = fn(&Bed, &mut Value);

/// A name, and what it changes in a lease that would otherwise do.
const REFUSALS: &[(&str, Change)] = &[
    ("no such plugin", |_, lease| {
        lease["policy"]["execution"]["plugin_id"] = json!("other")
    }),
    ("plugin_timeout", |_, lease| {
        lease["policy"]["execution"]["plugin_timeout_nanos"] = json!(900_000_000_001_u64);
    }),
    ("check_timeout", |_, lease| {
        lease["policy"]["execution"]["check_timeout_nanos"] = json!(600_000_000_001_u64);
    }),
    ("git_timeout", |_, lease| {
        lease["policy"]["execution"]["git_timeout_nanos"] = json!(60_000_000_001_u64);
    }),
    ("cleanup_timeout", |_, lease| {
        lease["policy"]["execution"]["cleanup_timeout_nanos"] = json!(10_000_000_001_u64);
    }),
    ("plugin_output_bytes", |_, lease| {
        lease["policy"]["execution"]["plugin_output_bytes"] = json!(1_048_577);
    }),
    ("check_output_bytes", |_, lease| {
        lease["policy"]["execution"]["check_output_bytes"] = json!(2049);
    }),
    ("git_output_bytes", |_, lease| {
        lease["policy"]["execution"]["git_output_bytes"] = json!(1_048_577);
    }),
    ("environment", |_, lease| {
        lease["policy"]["execution"]["environment"] = json!(["SECRET_OF_THE_HOST"]);
    }),
    ("the heartbeat is too slow", |_, lease| {
        lease["policy"]["lease_ttl_nanos"] = json!(1_000_000_000);
    }),
    ("policy of another version", |_, lease| {
        lease["policy"]["version"] = json!(2)
    }),
    ("another repository than the policy's", |_, lease| {
        lease["task"]["repository_id"] = json!("other");
    }),
    ("no such repository", |_, lease| {
        lease["task"]["repository_id"] = json!("other");
        lease["policy"]["execution"]["repository_id"] = json!("other");
    }),
    ("a policy without repository", |_, lease| {
        let execution = lease["policy"]["execution"].as_object_mut().unwrap();
        execution.remove("repository_id");
        execution.remove("default_branch");
    }),
    ("no such base", |_, lease| {
        lease["task"]["base_sha"] = json!("1".repeat(40))
    }),
    ("a base that is a tree", |bed, lease| {
        lease["task"]["base_sha"] = json!(bed.git(&["rev-parse", "HEAD^{tree}"]));
    }),
    ("no such branch", |_, lease| {
        lease["policy"]["execution"]["default_branch"] = json!("other");
    }),
    ("a base on another branch", |bed, lease| {
        bed.git(&["checkout", "-q", "-b", "side"]);
        bed.git(&["commit", "-q", "--allow-empty", "-m", "side"]);
        lease["task"]["base_sha"] = json!(bed.git(&["rev-parse", "HEAD"]));
        bed.git(&["checkout", "-q", "main"]);
        bed.git(&["branch", "-q", "-M", "side", "elsewhere"]);
    }),
    ("a prepared repository that is not there", |_, lease| {
        lease["task"]["repository"] = json!("/nonexistent/repository");
    }),
    ("a prepared repository behind a link", |bed, lease| {
        let link = bed.root.join("link");
        if !link.exists() {
            std::os::unix::fs::symlink(bed.repository(), &link).unwrap();
        }
        lease["task"]["repository"] = json!(link);
    }),
    ("a folder that is no repository", |bed, lease| {
        lease["task"]["repository"] = json!(bed.root.join("bin"));
    }),
];

#[tokio::test]
async fn what_does_not_fit_is_refused_and_the_slot_goes_on() {
    let (bed, _gate, worker, mut slot) = Bed::connected().await;
    for (name, change) in REFUSALS {
        let lease = bed.coding_lease("echo x > answer.txt", json!([]), |lease| {
            change(&bed, lease)
        });
        let (evidence, answer) = slot.run(lease).await;
        assert_eq!(answer, failed("invalid_task", "terminal"), "{name}");
        assert!(evidence.is_empty(), "{name}: {evidence:?}");
    }
    // The unchanged lease would do.
    let (_, answer) = slot
        .run(bed.coding_lease("echo x > answer.txt", json!([]), |_| {}))
        .await;
    assert!(answer.contains("candidate_sha"), "{answer}");
    let said =
        worker.log().matches("lease refused").count() + worker.log().matches("job failed").count();
    assert_eq!(
        said,
        REFUSALS.len(),
        "each refusal is logged once:\n{}",
        worker.log()
    );
}

#[tokio::test]
async fn every_limit_at_its_ceiling_is_accepted() {
    let (bed, _gate, _worker, mut slot) = Bed::connected().await;
    let lease = bed.coding_lease("echo x > answer.txt", json!([["./check.sh"]]), |lease| {
        let execution = &mut lease["policy"]["execution"];
        execution["plugin_timeout_nanos"] = json!(900_000_000_000_u64);
        execution["check_timeout_nanos"] = json!(600_000_000_000_u64);
    });
    let (_, answer) = slot.run(lease).await;
    assert!(answer.contains("candidate_sha"), "{answer}");
}

#[tokio::test]
async fn a_text_job_whose_policy_names_a_repository_is_refused() {
    let (bed, _gate, _worker, mut slot) = Bed::connected().await;
    let mut lease: Value = serde_json::from_str(&bed.text_lease("hello")).unwrap();
    lease["policy"]["execution"]["repository_id"] = json!("demo");
    lease["policy"]["execution"]["default_branch"] = json!("main");
    assert_eq!(
        slot.run(lease.to_string()).await.1,
        failed("invalid_task", "terminal")
    );
    assert_eq!(slot.run(bed.text_lease("hello")).await.1, result("HELLO"));
}

#[tokio::test]
async fn a_moved_root_stops_all_work() {
    let (bed, _gate, _worker, mut slot) = Bed::connected().await;
    let (runtime, elsewhere) = (bed.root.join("runtime"), bed.root.join("elsewhere"));
    std::fs::rename(&runtime, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &runtime).unwrap();
    assert_eq!(
        slot.run(bed.text_lease("hello")).await.1,
        failed("invalid_task", "terminal")
    );
    std::fs::remove_file(&runtime).unwrap();
    std::fs::rename(&elsewhere, &runtime).unwrap();
    assert_eq!(slot.run(bed.text_lease("hello")).await.1, result("HELLO"));
}
