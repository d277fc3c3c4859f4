//! What an operator asks when jobs wait: why, in which pool, and whether it is paused.

use super::*;

fn waiting(reason: &str, message: &str) -> String {
    job(
        "pending",
        &format!(",\"waiting\":{{\"reason\":\"{reason}\",\"message\":\"{message}\"}}"),
    )
}

#[test]
fn why_a_job_waits_is_said_by_status_and_fits_the_screen() {
    let gate = FakeGate::new();
    let message = "pool `coding` is paused since 2026-11-30 13:00:00Z: the disk of the second \
                   machine is swapped\\u001b[2J";
    let path = format!("GET /v1/jobs/{JOB}");
    gate.json(&path, 200, waiting("pool_paused", message));
    let text = forge(&gate, &format!("status {JOB}")).ok();
    insta::assert_snapshot!(text, @r"
    job         aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
    status      pending
    waiting     pool `coding` is paused since 2026-11-30 13:00:00Z: the disk of the
                second machine is swapped\u{1b}[2J
    submitted   2026-11-30 14:00:00Z
    changed     2026-11-30 14:00:07Z
    ");
}

#[test]
fn watching_tells_a_new_reason_once_and_no_number_that_changes() {
    let gate = FakeGate::new();
    let path = format!("GET /v1/jobs/{JOB}");
    for answer in [
        waiting("no_worker_connected", "no Worker of pool `a` is connected"),
        waiting("no_worker_connected", "no Worker of pool `a` is connected"),
        waiting(
            "slots_busy",
            "all slots have a job; 2 jobs come before this one",
        ),
        waiting(
            "slots_busy",
            "all slots have a job; 1 job comes before this one",
        ),
        waiting("starting", "a slot is free"),
        succeeded(),
    ] {
        gate.json(&path, 200, answer);
    }
    gate.json(&format!("GET /v1/jobs/{JOB}/events"), 200, "[]");
    let text = forge(&gate, &format!("watch {JOB} --poll 1ms")).ok();
    let told: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_once("  waiting: "))
        .map(|(_, told)| told)
        .collect();
    assert_eq!(
        told,
        [
            "no Worker of pool `a` is connected",
            "all slots have a job; 2 jobs come before this one"
        ]
    );
}

#[test]
fn waiting_for_the_end_tells_it_on_standard_error() {
    let gate = FakeGate::new();
    let path = format!("GET /v1/jobs/{JOB}");
    gate.json(
        &path,
        200,
        waiting("no_worker_connected", "nobody is there"),
    );
    gate.json(
        &path,
        200,
        waiting("no_worker_connected", "nobody is there"),
    );
    gate.json(&path, 200, succeeded());
    gate.json(&format!("GET /v1/jobs/{JOB}/events"), 200, "[]");
    let done = forge(&gate, &format!("wait {JOB} --poll 1ms --format json"));
    assert_eq!(
        done.screen
            .err()
            .matches("waiting: nobody is there")
            .count(),
        1
    );
    assert_eq!(done.ok(), succeeded());
}

fn pool_body(more: &str) -> String {
    format!(
        "{{\"id\":\"coding\",\"paused\":{},\"slots\":4,\"connected\":3,\"working\":2,\"refusing\":0,\
         \"ready\":12,\"oldest_ready_at\":\"2020-11-30T14:00:00Z\",\"retrying\":1,\"leased\":2{more}}}",
        !more.is_empty()
    )
}

const PAUSED: &str =
    ",\"paused_since\":\"2026-11-30T13:00:00Z\",\"pause_reason\":\"the \\u202edisk is swapped\"";

#[test]
fn pools_for_people_and_for_programs() {
    let gate = FakeGate::new();
    let items = format!("{},{}", pool_body(""), pool_body(PAUSED));
    gate.json("GET /v1/pools", 200, format!("{{\"items\":[{items}]}}"));
    let text = forge(&gate, "pools").ok();
    let text = without_days(&text);
    insta::assert_snapshot!(text, @r"
    pool                   state  slots      working waiting  retrying oldest
    coding                 open   3 of 4     2       12       1 N days
    coding                 paused 3 of 4     2       12       1 N days
      paused since 2026-11-30 13:00:00Z: the \u{202e}disk is swapped
    ");
    let json = forge(&gate, "pools --format json").ok();
    // As the Gate sent it: what no terminal should obey stays an escape.
    assert_eq!(json, format!("{}\n{}\n", pool_body(""), pool_body(PAUSED)));
}

/// The age of what is old grows while this test exists.
fn without_days(text: &str) -> String {
    text.lines()
        .map(|line| match line.strip_suffix(" days") {
            Some(rest) => format!(
                "{} N days\n",
                rest.trim_end_matches(|c: char| c.is_ascii_digit())
                    .trim_end()
            ),
            None => format!("{line}\n"),
        })
        .collect()
}

#[test]
fn a_pause_carries_its_reason_and_a_resume_nothing() {
    let gate = FakeGate::new();
    gate.json("POST /v1/pools/coding/pause", 200, pool_body(PAUSED));
    gate.json("POST /v1/pools/coding/resume", 200, pool_body(""));
    gate.json(
        "POST /v1/pools/nobody/pause",
        404,
        "{\"error\":{\"code\":\"pool_not_found\",\"message\":\"no pool has this id\"}}",
    );
    let paused = forge(&gate, "pause coding --reason the~disk~is~swapped");
    assert!(paused.screen.err().contains("2 running jobs go on"));
    assert_eq!(
        paused.ok(),
        "pool coding is paused since 2026-11-30 13:00:00Z: the \\u{202e}disk is swapped\n"
    );
    assert_eq!(
        forge(&gate, "resume coding").ok(),
        "pool coding gives out work\n"
    );
    let bodies: Vec<String> = gate.requests().into_iter().map(|one| one.body).collect();
    assert_eq!(bodies, ["{\"reason\":\"the disk is swapped\"}", ""]);
    let (code, message, hint) = forge(&gate, "pause nobody").failed();
    assert_eq!(
        (code, message.as_str()),
        (2, "the Gate knows no pool `nobody`")
    );
    assert!(hint.contains("`forge pools`"), "{hint}");
}
