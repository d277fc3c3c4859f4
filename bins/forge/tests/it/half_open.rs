//! R19: a network that drops everything without a word. Both sides notice within their bounds, the
//! slot is free again, and the work goes on over a new connection.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::appliance::{Appliance, Setup, wait_until};
use crate::faults::{mark, running, waiting};
use crate::relay::Relay;

/// A Gate pings every 10 s and waits 30 s for the answer; a loaded machine gets half a minute more.
const NOTICED: Duration = Duration::from_secs(70);

/// The appliance with a relay between the Worker and its Gate.
fn behind_a_relay(setup: &Setup) -> (Appliance, Relay) {
    let appliance = Appliance::start(setup);
    let relay = Relay::to(&appliance.address());
    let path = appliance.path("worker.json");
    let mut worker: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    worker["gate_url"] = json!(format!("ws://{}", relay.address()));
    fs::write(&path, worker.to_string()).unwrap();
    (appliance, relay)
}

#[test]
fn r19_half_open_in_the_middle_of_a_job_ends_the_attempt_on_both_sides() {
    let mark = mark("half-open");
    let (mut appliance, relay) = behind_a_relay(&waiting(&mark));
    appliance.start_worker();
    let job = appliance.submit("an answer", &[vec!["true"]]);
    wait_until("the plugin and its children run", || running(&mark) >= 3);
    let first = appliance.job(&job)["attempt_id"].clone();
    relay.silence();
    // The Worker cannot renew, so it ends the attempt before the Gate could give it to another.
    let fell_silent = Instant::now();
    wait_until("nothing of the attempt runs", || running(&mark) == 0);
    assert!(fell_silent.elapsed() < Duration::from_secs(20));
    fs::write(appliance.path("go"), "").unwrap();
    let start = Instant::now();
    wait_until("the Worker has given the connection up", || {
        relay.given_up().0 == 1
    });
    let done = loop {
        let seen = appliance.job(&job);
        if seen["status"] == "succeeded" || seen["status"] == "failed" {
            break seen;
        }
        assert!(start.elapsed() < NOTICED, "{seen}{}", appliance.logs());
        std::thread::sleep(Duration::from_millis(100));
    };
    assert_eq!(done["status"], "succeeded", "{}", appliance.logs());
    let result = appliance.result(&job);
    let attempts = result["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 2, "{result}");
    assert_eq!(attempts[0]["id"], first);
    assert_eq!(attempts[0]["status"], "expired");
    assert_eq!(relay.given_up().1, 1, "the Gate has let go, too");
    wait_until("nothing of either attempt runs", || running(&mark) == 0);
}

#[test]
fn r19_half_open_while_idle_is_noticed_and_the_slot_works_again() {
    let (mut appliance, relay) = behind_a_relay(&Setup::default());
    appliance.start_worker();
    let first = appliance.submit("an answer", &[]);
    appliance.wait_for_status(&first, &["succeeded"]);
    relay.silence();
    let start = Instant::now();
    let second = appliance.submit("another answer", &[]);
    loop {
        let seen = appliance.job(&second);
        if seen["status"] == "succeeded" {
            break;
        }
        assert!(start.elapsed() < NOTICED * 2, "{seen}{}", appliance.logs());
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(relay.given_up(), (1, 1), "both sides have let go");
}
