//! What a Gate that selects live activity hears, and what one that does not.

use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::bed::{Bed, Worker};
use crate::gate::{Gate, Slot, failed, message};

fn activity(sequence: usize, stage: &str) -> String {
    message("activity", ",\"worker_id\":\"worker-1\"").replacen(
        '{',
        &format!(
            "{{\"activity_version\":\"live_activity/v1\",\"activity\":{{\"sequence\":{sequence},\"stage\":\"{stage}\"}},"
        ),
        1,
    )
}

fn activities(stages: &[&str]) -> Vec<String> {
    let numbered = stages.iter().enumerate();
    numbered
        .map(|(index, stage)| activity(index + 1, stage))
        .collect()
}

/// A Worker whose plugin reports the progress that the instruction names.
async fn telling() -> (Bed, Gate, Worker, Slot<TcpStream>) {
    let change = |bed: &mut Bed| {
        let plugin = bed.root.join("bin/plugin.py");
        bed.config["plugins"][0]["argv"] = json!(["/usr/bin/python3", plugin, "--progress"]);
    };
    Bed::connected_with(change).await
}

/// The same under a lease that selects activity.
fn selecting(bed: &Bed, instruction: &str, tests: Value) -> String {
    bed.coding_lease(instruction, tests, |lease| {
        lease["activity_version"] = json!("live_activity/v1");
    })
}

/// Runs a lease to its result. Returns the activity messages, all of which must come before
/// anything else, the number of evidence records, and the result.
async fn run(slot: &mut Slot<TcpStream>, lease: String) -> (Vec<String>, usize, String) {
    slot.say(lease).await;
    let mut said = Vec::new();
    let mut records = 0;
    loop {
        let answer = slot.answer().await;
        if answer.contains("\"type\":\"activity\"") {
            assert_eq!(records, 0, "activity after the execution: {answer}");
            said.push(answer);
            continue;
        }
        slot.ack().await;
        if !answer.contains("\"type\":\"evidence\"") {
            return (said, records, answer);
        }
        let batch: Value = serde_json::from_str(&answer).unwrap();
        records += batch["evidence"].as_array().unwrap().len();
    }
}

const WORK: &str = "#progress started canary of the plugin\n#progress working canary\n\
    #progress working canary\n#progress started canary\n#progress finalizing canary\n\
    echo x > answer.txt";

#[tokio::test]
async fn a_plugin_and_two_checks_give_four_stages_in_their_order() {
    let (bed, _gate, worker, mut slot) = telling().await;
    let lease = selecting(&bed, WORK, json!([["./check.sh"], ["true"]]));
    let (said, records, answer) = run(&mut slot, lease).await;
    // Byte for byte: nothing of the plugin's words, of the checks or of the task.
    let all = ["analyzing", "editing", "testing", "preparing_result"];
    assert_eq!(said, activities(&all));
    assert_eq!(records, 2);
    assert!(answer.contains("candidate_sha"), "{answer}");
    // The next lease starts again.
    let lease = selecting(&bed, WORK, json!([["true"]]));
    assert_eq!(run(&mut slot, lease).await.0, activities(&all));
    assert!(!worker.log().contains("canary of the plugin"));
}

#[tokio::test]
async fn an_empty_list_of_checks_has_no_testing_stage() {
    for tests in [json!([]), json!(null)] {
        let (bed, _gate, _worker, mut slot) = telling().await;
        let (said, records, answer) = run(&mut slot, selecting(&bed, WORK, tests)).await;
        assert_eq!(
            said,
            activities(&["analyzing", "editing", "preparing_result"])
        );
        assert_eq!(records, 0);
        assert!(answer.contains("candidate_sha"), "{answer}");
    }
}

#[tokio::test]
async fn a_failing_check_stops_the_list_and_the_result_is_prepared_all_the_same() {
    let (bed, _gate, _worker, mut slot) = telling().await;
    let lease = selecting(&bed, WORK, json!([["true"], ["false"], ["true"]]));
    let (said, records, answer) = run(&mut slot, lease).await;
    let all = ["analyzing", "editing", "testing", "preparing_result"];
    assert_eq!(said, activities(&all));
    assert_eq!(records, 2);
    assert_eq!(answer, failed("scoped_test_failed", "terminal"));
}

#[tokio::test]
async fn finalizing_is_no_stage_and_progress_never_goes_back() {
    let (bed, _gate, _worker, mut slot) = telling().await;
    let work = "#progress finalizing x\n#progress working x\n#progress started x\n\
        echo x > answer.txt";
    let (said, _, _) = run(&mut slot, selecting(&bed, work, json!([]))).await;
    assert_eq!(said, activities(&["editing", "preparing_result"]));
    let work = "#progress finalizing x\necho x > answer.txt";
    let (said, _, _) = run(&mut slot, selecting(&bed, work, json!([["true"]]))).await;
    assert_eq!(said, activities(&["testing", "preparing_result"]));
}

#[tokio::test]
async fn a_plugin_that_reports_128_times_fills_no_more_than_its_two_stages() {
    let (bed, _gate, _worker, mut slot) = telling().await;
    let mut work = "#progress started x\n#progress working x\n".repeat(64);
    work.push_str("echo x > answer.txt");
    let (said, _, _) = run(&mut slot, selecting(&bed, &work, json!([]))).await;
    assert_eq!(
        said,
        activities(&["analyzing", "editing", "preparing_result"])
    );
}

#[tokio::test]
async fn a_plugin_without_progress_has_the_stages_of_the_worker() {
    let (bed, _gate, _worker, mut slot) = Bed::connected().await;
    let lease = selecting(&bed, "echo x > answer.txt", json!([["true"]]));
    let (said, _, answer) = run(&mut slot, lease).await;
    assert_eq!(said, activities(&["testing", "preparing_result"]));
    assert!(answer.contains("candidate_sha"), "{answer}");
}

#[tokio::test]
async fn a_plugin_that_fails_reaches_no_stage_of_the_worker() {
    let (bed, _gate, _worker, mut slot) = telling().await;
    let lease = selecting(&bed, "#progress started x\n#fail", json!([["true"]]));
    let (said, _, answer) = run(&mut slot, lease).await;
    assert_eq!(said, activities(&["analyzing"]));
    assert_eq!(answer, failed("execution_failed", "retryable"));
}

#[tokio::test]
async fn a_text_job_has_no_stages() {
    let (bed, _gate, _worker, mut slot) = telling().await;
    let mut lease: Value = serde_json::from_str(&bed.text_lease("x")).unwrap();
    lease["activity_version"] = json!("live_activity/v1");
    let (said, _, answer) = run(&mut slot, lease.to_string()).await;
    assert!(said.is_empty(), "{said:?}");
    assert_eq!(answer, crate::gate::result("X"));
}

#[tokio::test]
async fn activity_is_offered_and_a_gate_that_does_not_select_it_hears_none() {
    let (bed, _gate, _worker, mut slot) = telling().await;
    assert_eq!(
        slot.target,
        "/v1/workers/connect?worker_id=worker-1&slot=0&activity_version=live_activity%2Fv1&control_version=job_control%2Fv1"
    );
    let lease = bed.coding_lease(WORK, json!([["true"]]), |_| {});
    let (said, records, answer) = run(&mut slot, lease).await;
    assert!(said.is_empty(), "{said:?}");
    assert_eq!(records, 1);
    assert!(answer.contains("candidate_sha"), "{answer}");
}
