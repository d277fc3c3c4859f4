//! Live activity from the plugin to the screen of the operator, and nowhere else.

use std::fs;

use serde_json::Value;

use crate::appliance::{Appliance, Setup, wait_for, wait_until, words};

#[test]
fn watch_shows_the_stages_of_a_running_attempt_and_nothing_keeps_them() {
    let wait = "while [ ! -e @FOLDER@/edited ]; do sleep 0.02; done; cat > answer.txt";
    let setup = Setup {
        command: words(&["/bin/sh", "-c", wait]),
        ..Setup::default()
    };
    let mut appliance = Appliance::start(&setup);
    appliance.start_worker();
    let tested = appliance.path("tested");
    let check = format!(
        "while [ ! -e {} ]; do sleep 0.02; done # canary-of-the-check",
        tested.display()
    );
    let job = appliance.submit("canary of the task", &[vec!["sh", "-c", &check]]);
    let watch = ["watch", &job, "--poll", "20ms"];
    let json = ["watch", &job, "--poll", "20ms", "--format", "json"];
    let mut people = appliance.forge_into(&watch, "people");
    let mut programs = appliance.forge_into(&json, "programs");
    let read = |name: &str| fs::read_to_string(appliance.path(name)).unwrap();
    let both_show = |stage: &str| {
        wait_until(stage, || {
            ["people", "programs"]
                .iter()
                .all(|name| read(name).contains(stage))
        });
    };

    both_show("editing");
    let live = appliance.job(&job);
    let events = live["attempts"][0]["activity"].as_array().unwrap();
    assert_eq!(events.len(), 2, "{live}");
    for (index, (event, stage)) in events.iter().zip(["analyzing", "editing"]).enumerate() {
        assert_eq!(event["run_id"], job.as_str());
        assert_eq!(event["attempt_id"], live["attempt_id"]);
        assert_eq!(event["attempt_ordinal"], 1);
        assert_eq!(event["worker_id"], "worker-1");
        assert_eq!(event["sequence"], index + 1);
        assert_eq!(event["stage"], stage);
        assert!(event["received_at"].is_string());
        assert_eq!(event.as_object().unwrap().len(), 7, "{event}");
    }
    let (_, shown, _) = appliance.forge(&["status", &job]);
    assert!(shown.contains("stage       editing"), "{shown}");

    fs::write(appliance.path("edited"), "").unwrap();
    both_show("testing");
    fs::write(&tested, "").unwrap();
    let done = appliance.wait_for_status(&job, &["succeeded", "failed"]);
    assert_eq!(done["status"], "succeeded", "{}", appliance.logs());
    for child in [&mut people, &mut programs] {
        let status = wait_for("watch has ended", || child.try_wait().unwrap());
        assert!(status.success());
    }

    // One line a stage, in order, for people and for programs; the last may be too short-lived.
    let lines = read("people");
    let stages: Vec<&str> = lines
        .lines()
        .filter_map(|line| line.split_once("  "))
        .map(|(_, text)| text)
        .filter(|text| ["analyzing", "editing", "testing"].contains(text))
        .collect();
    assert_eq!(stages, ["analyzing", "editing", "testing"], "{lines}");
    let records: Vec<Value> = read("programs")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let stages: Vec<&str> = records
        .iter()
        .filter_map(|record| record["stage"].as_str())
        .filter(|stage| *stage != "preparing_result")
        .collect();
    assert_eq!(stages, ["analyzing", "editing", "testing"]);
    for text in [&lines, &read("programs")] {
        assert!(!text.contains("canary"), "{text}");
    }

    // Transient: the job, its result, its journal, its evidence and the database have none of it.
    assert!(done.get("attempts").is_none(), "{done}");
    let result = appliance.result(&job);
    let evidence = result["attempts"][0]["evidence"].as_array().unwrap();
    assert_eq!(evidence.len(), 1, "{result}");
    assert_eq!(evidence[0]["reason"], "scoped_check_passed");
    let (_, journal, _) = appliance.forge(&["events", &job, "--format", "json"]);
    let mut kept = vec![
        ("result", result.to_string().into_bytes()),
        ("journal", journal.into_bytes()),
    ];
    for name in ["gate.db", "gate.db-wal"] {
        let bytes = fs::read(appliance.path("gate").join(name)).unwrap_or_default();
        kept.push((name, bytes));
    }
    for (name, bytes) in kept {
        for word in ["live_activity", "analyzing", "editing", "preparing_result"] {
            let found = bytes.windows(word.len()).any(|at| at == word.as_bytes());
            assert!(!found, "{name} holds {word}");
        }
    }
}
