//! What people and programs see.

use super::*;

fn result_body() -> String {
    let job = succeeded();
    format!(
        "{{\"job\":{},\"attempts\":[{{\"id\":\"{ATTEMPT}\",\"ordinal\":1,\"status\":\"succeeded\",\
         \"worker_id\":\"worker-1\",\"candidate_sha\":\"{CANDIDATE}\",\
         \"leased_at\":\"2026-11-30T14:00:01Z\",\"evidence\":[\
         {{\"evidence_id\":\"cc\",\"phase\":\"scoped_check\",\"reason\":\"scoped_check_passed\",\
         \"check_index\":0,\"exit_code\":0,\"duration_ms\":15,\"base_sha\":\"{BASE}\"}},\
         {{\"evidence_id\":\"dd\",\"phase\":\"scoped_check\",\"reason\":\"scoped_check_failed\",\
         \"check_index\":1,\"exit_code\":3,\"duration_ms\":1500,\"base_sha\":\"{BASE}\"}}]}}],\
         \"timeline\":[],\"agent_report\":{{\"summary\":\"All \\u001b[31mgood\\u202e\",\
         \"changes\":[\"{}\"]}}}}",
        job.trim_end(),
        "long words here ".repeat(14).trim_end()
    )
}

#[test]
fn status_for_people_and_for_programs() {
    let gate = FakeGate::new();
    gate.json(&format!("GET /v1/jobs/{JOB}"), 200, succeeded());
    let text = forge(&gate, &format!("status {JOB}")).ok();
    insta::assert_snapshot!(text, @r"
    job         aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
    status      succeeded
    repository  demo
    base        1111111111111111111111111111111111111111
    candidate   2222222222222222222222222222222222222222
    worker      worker-1
    attempt     bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
    pool        coding
    submitted   2026-11-30 14:00:00Z
    changed     2026-11-30 14:00:09Z
    ref
    refs/agent-forge/candidates/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
    ");
    let json = forge(&gate, &format!("status {JOB} --format json")).ok();
    assert_eq!(json, succeeded());
}

#[test]
fn a_result_keeps_checks_and_the_agents_words_apart() {
    let gate = FakeGate::new();
    gate.json(&format!("GET /v1/jobs/{JOB}/result"), 200, result_body());
    let text = forge(&gate, &format!("result {JOB}")).ok();
    let (_, rest) = text.split_once("\n\n").unwrap();
    insta::assert_snapshot!(rest, @r"
    attempt 1 on worker-1: succeeded
      recorded by the Worker:
      check 1 passed, exit 0, 15 ms
      check 2 FAILED, exit 3, 1.5 s

    agent report (self-reported, not verified)
      All \u{1b}[31mgood\u{202e}
      - long words here long words here long words here long words here long words
        here long words here long words here long words here long words here long
        words here long words here long words here long words here long words here
    ");
    let wide = text.lines().filter(|line| line.chars().count() > 80);
    assert!(wide.into_iter().all(|line| line.starts_with("refs/")));
}

#[test]
fn lists_fit_the_screen_and_go_on_page_by_page() {
    let gate = FakeGate::new();
    let page = |cursor: &str| format!("{{\"items\":[{}]{cursor}}}", succeeded().trim_end());
    gate.json("GET /v1/jobs", 200, page(",\"next_cursor\":\"abc\""));
    gate.json("GET /v1/jobs", 200, page(""));
    let text = forge(&gate, "list --status succeeded --repository demo --all").ok();
    insta::assert_snapshot!(text, @r"
    job                              status     repository           changed
    aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa succeeded  demo                 11-30 14:00:09
    aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa succeeded  demo                 11-30 14:00:09
    ");
    let query = "limit=100&status=succeeded&repository_id=demo";
    assert_eq!(
        gate.lines(),
        [
            format!("GET /v1/jobs?{query}"),
            format!("GET /v1/jobs?{query}&cursor=abc")
        ]
    );
}

#[test]
fn one_page_names_the_next_and_json_is_a_record_per_line() {
    let gate = FakeGate::new();
    let item = succeeded().trim_end().to_owned();
    gate.json(
        "GET /v1/jobs",
        200,
        format!("{{\"items\":[{item},{item}],\"next_cursor\":\"n\"}}"),
    );
    let done = forge(&gate, "list --format json");
    assert!(done.screen.err().contains("--cursor n"));
    assert_eq!(done.ok(), format!("{item}\n{item}\n"));
}

#[test]
fn workers_of_either_shape() {
    let gate = FakeGate::new();
    let items = "[{\"id\":\"worker-1\",\"connected\":true,\"last_seen\":\"2026-11-30T14:00:00Z\",\
                 \"pool\":\"coding\"},\
                 {\"id\":\"worker-2\",\"connected\":true,\"last_seen\":\"2026-11-30T14:00:00Z\",\
                 \"pool\":\"coding\",\"state\":\"disk_low\",\
                 \"refuses\":{\"reason\":\"disk_low\",\"since\":\"2026-11-30T13:00:00Z\"}},\
                 {\"id\":\"worker-3\",\"connected\":true,\"pool\":\"coding\",\"state\":\"stopping\"},\
                 {\"id\":\"worker-4\",\"connected\":false,\"pool\":\"coding\",\"state\":\"away\",\
                 \"refuses\":{\"reason\":\"disk_low\",\"since\":\"2026-11-30T13:00:00Z\"}},\
                 {\"id\":\"worker-1#1\",\"connected\":false,\"last_seen\":null}]";
    gate.json("GET /v1/workers", 200, items);
    gate.json("GET /v1/workers", 200, format!("{{\"items\":{items}}}"));
    let first = forge(&gate, "workers").ok();
    assert_eq!(first, forge(&gate, "workers").ok());
    insta::assert_snapshot!(first, @r"
    slot                   pool            state               last seen
    worker-1               coding          connected           2026-11-30 14:00:00Z
    worker-2               coding          disk low            2026-11-30 14:00:00Z
    worker-3               coding          stopping            never
    worker-4               coding          away, left disk low never
    worker-1#1                             away                never
    ");
}

#[test]
fn watching_shows_each_change_once_and_ends_with_the_job() {
    let gate = FakeGate::new();
    let path = format!("GET /v1/jobs/{JOB}");
    let stage = |sequence: u8, stage: &str| {
        format!(
            "{{\"sequence\":{sequence},\"stage\":\"{stage}\",\"received_at\":\"2026-11-30T14:00:0{sequence}Z\"}}"
        )
    };
    let (editing, testing) = (stage(1, "editing"), stage(2, "preparing_\u{202e}result"));
    let attempts = |activity: &str| {
        format!(
            ",\"attempt_id\":\"{ATTEMPT}\",\"attempts\":[{{\"id\":\"{ATTEMPT}\",\"activity\":[{activity}]}}]"
        )
    };
    gate.json(&path, 200, job("pending", ""));
    gate.json(&path, 200, job("pending", ""));
    gate.json(&path, 200, job("leased", &attempts(&editing)));
    // What the Gate has forgotten is not told again when it comes back.
    gate.json(&path, 200, job("leased", &attempts("")));
    let both = format!("{editing},{testing}");
    gate.json(&path, 200, job("leased", &attempts(&both)));
    gate.json(&path, 200, job("leased", &attempts(&both)));
    gate.json(
        &path,
        200,
        job("failed", ",\"failure_code\":\"scoped_test_failed\""),
    );
    let event = |kind: &str, second: u8, more: &str| {
        format!(
            "{{\"id\":{second},\"job_id\":\"{JOB}\",\"kind\":\"{kind}\",\"at\":\"2026-11-30T14:00:0{second}Z\"{more}}}"
        )
    };
    let events = [
        event("submitted", 1, ""),
        event("leased", 2, ""),
        event("failed", 3, ",\"failure_code\":\"scoped_test_failed\""),
    ];
    for known in 1..=3 {
        gate.json(
            &format!("{path}/events"),
            200,
            format!("[{}]", events[..known].join(",")),
        );
    }
    let done = forge(&gate, &format!("watch {JOB} --poll 1ms"));
    let (code, message, hints) = done.failed();
    assert_eq!(code, 1);
    assert_eq!(
        message,
        format!("job `{JOB}` failed (scoped_test_failed: a declared check failed)")
    );
    assert!(hints.contains("forge result"), "{hints}");
    let out = done.screen.out();
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[0], "14:00:01  submitted");
    assert_eq!(lines[1], "14:00:02  leased");
    assert_eq!(lines[2], "14:00:01  editing");
    assert_eq!(lines[3], "14:00:02  preparing \\u{202e}result");
    assert_eq!(
        lines[4],
        "14:00:03  failed - scoped_test_failed: a declared check failed"
    );
    assert!(lines[5].starts_with("job "), "{out}");
}

#[test]
fn watching_gives_programs_a_record_for_each_stage() {
    let gate = FakeGate::new();
    let path = format!("GET /v1/jobs/{JOB}");
    let attempts = format!(
        ",\"attempt_id\":\"{ATTEMPT}\",\"attempts\":[{{\"id\":\"{ATTEMPT}\",\"activity\":[{{\"sequence\":1,\"stage\":\"editing\",\"received_at\":\"2026-11-30T14:00:02Z\"}}]}}]"
    );
    gate.json(&path, 200, job("leased", &attempts));
    gate.json(&path, 200, job("succeeded", ""));
    gate.json(&format!("{path}/events"), 200, "[]");
    let out = forge(&gate, &format!("watch {JOB} --poll 1ms --format json")).ok();
    let first: serde_json::Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    assert_eq!(
        first,
        serde_json::json!({
            "job_id": JOB,
            "attempt_id": ATTEMPT,
            "sequence": 1,
            "stage": "editing",
            "received_at": "2026-11-30T14:00:02Z",
        })
    );
}

#[test]
fn the_text_of_a_job_comes_out_unchanged() {
    let gate = FakeGate::new();
    gate.json(
        &format!("GET /v1/jobs/{JOB}/output"),
        200,
        "FORGE: A\u{202e}B",
    );
    assert_eq!(
        forge(&gate, &format!("output {JOB}")).ok(),
        "FORGE: A\u{202e}B"
    );
    let json = forge(&gate, &format!("output {JOB} --format json")).ok();
    assert!(
        json.starts_with(&format!("{{\"job_id\":\"{JOB}\"")),
        "{json}"
    );
}

#[test]
fn a_cancellation_tells_whether_the_worker_has_stopped() {
    let journal = |kinds: &[&str]| {
        let entry = |kind: &&str| {
            format!(
                "{{\"id\":1,\"job_id\":\"{JOB}\",\"kind\":\"{kind}\",\"at\":\"2026-11-30T14:00:00Z\"}}"
            )
        };
        let entries: Vec<_> = kinds.iter().map(entry).collect();
        format!("[{}]", entries.join(","))
    };
    let running = ["submitted", "leased", "cancelled"];
    let again = ["submitted", "leased", "attempt_reattached", "cancelled"];
    let stopped = ["submitted", "leased", "cancelled", "attempt_stopped"];
    let waited = ["submitted", "leased", "lease_expired", "cancelled"];
    for (journals, words) in [
        (
            vec![journal(&running), journal(&stopped)],
            "the Worker has stopped it",
        ),
        (vec![journal(&again)], "has not said yet"),
        (vec![journal(&waited)], ""),
        (vec![journal(&["submitted", "cancelled"])], ""),
    ] {
        let gate = FakeGate::new();
        let path = format!("/v1/jobs/{JOB}");
        gate.json(&format!("POST {path}/cancel"), 200, job("cancelled", ""));
        for journal in journals {
            gate.json(&format!("GET {path}/events"), 200, journal);
        }
        let done = forge(&gate, &format!("cancel {JOB}"));
        let told = done.screen.err();
        assert!(told.contains(words), "{told}");
        assert_eq!(told.is_empty(), words.is_empty(), "{told}");
        assert!(done.ok().contains("status      cancelled"));
    }
}

#[test]
fn cancelling_and_retrying() {
    let gate = FakeGate::new();
    gate.json(
        &format!("POST /v1/jobs/{JOB}/cancel"),
        200,
        job("cancelled", ""),
    );
    gate.json(
        &format!("POST /v1/jobs/{JOB}/cancel"),
        409,
        "{\"error\":{\"code\":\"job_terminal\",\"message\":\"the job has ended\"}}",
    );
    let text = forge(&gate, &format!("cancel {JOB}")).ok();
    assert!(text.contains("status      cancelled"), "{text}");
    let (code, message, _) = forge(&gate, &format!("cancel {JOB}")).failed();
    assert_eq!(
        (code, message.as_str()),
        (
            1,
            "the Gate refused to cancel the job: the job has ended (HTTP 409)"
        )
    );
    let other = job("pending", &format!(",\"retry_of\":\"{JOB}\"")).replace(
        &format!("\"id\":\"{JOB}\""),
        &format!("\"id\":\"{ATTEMPT}\""),
    );
    let retry = format!("POST /v1/jobs/{JOB}/retry");
    gate.json(&retry, 201, other.clone())
        .json(&retry, 200, job("pending", ""))
        .json(&retry, 201, other);
    let done = forge(&gate, &format!("retry {JOB}"));
    let talk = format!("a new job; follow it with `forge watch {ATTEMPT}`");
    assert!(done.screen.err().contains(&talk));
    assert_eq!(done.ok(), format!("{ATTEMPT}\n"), "the bare id");
    let done = forge(&gate, &format!("retry {JOB}"));
    assert!(done.screen.err().contains("the same job"));
    assert_eq!(done.ok(), format!("{JOB}\n"));
    let json = forge(&gate, &format!("retry --format json {JOB}")).ok();
    assert!(json.contains("\"retry_of\""), "{json}");
}
