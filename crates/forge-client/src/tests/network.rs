//! Gates that are away, deaf, hostile or somebody else.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::sync::mpsc;
use std::time::Duration;

use super::fake_gate::Reply;
use super::*;

fn status(gate: &FakeGate) -> (u8, String, String) {
    forge(gate, &format!("status {JOB}")).failed()
}

#[test]
fn the_token_is_sent_and_never_shown() {
    let gate = FakeGate::new();
    gate.json(&format!("GET /v1/jobs/{JOB}"), 401, "unauthorized\n");
    let done = forge(&gate, &format!("status {JOB}"));
    let (code, message, hints) = done.failed();
    assert_eq!(
        gate.requests()[0].headers["authorization"],
        "Bearer canary-token"
    );
    assert_eq!(code, 2);
    assert!(
        message.contains("refuses the token from file `"),
        "{message}"
    );
    assert!(hints.contains("owner_token_env"), "{hints}");
    let shown = format!("{message}{hints}{}{:?}", done.screen.err(), done.outcome);
    assert!(!shown.contains("canary-token"), "{shown}");
}

#[test]
fn a_gate_that_is_away_is_named_with_what_to_do() {
    // Bound and never accepted from would hang; bound and dropped is refused at once.
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let gate = FakeGate::new();
    let cli = Cli::try_parse_from([
        "forge",
        "status",
        JOB,
        "--gate-url",
        &format!("http://{address}"),
        "--token-file",
        &gate.token_file(),
    ])
    .unwrap();
    let (ui, _) = Ui::captured(&cli.global);
    let error = run(&cli.command, &ui, &HOSTS).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot reach the Gate at `http://{address}/`")
    );
    assert_eq!(error.messages()[1], "Connection refused (os error 111)");
    assert!(error.hints()[0].contains("is `forge-gate` running?"));
    assert_eq!(error.kind().exit_code(), 2);
}

#[test]
fn what_a_job_lacks_is_not_the_job() {
    let gate = FakeGate::new();
    let path = format!("GET /v1/jobs/{JOB}/output");
    let body = "{\"error\":{\"code\":\"no_output\",\"message\":\"a coding job has none\"}}";
    gate.json(&path, 404, body);
    let (code, message, _) = forge(&gate, &format!("output {JOB}")).failed();
    assert_eq!(code, 1);
    assert!(message.contains("a coding job has none"), "{message}");
    let gate = FakeGate::new();
    gate.json(
        &path,
        404,
        "{\"error\":{\"code\":\"job_not_found\",\"message\":\"no\"}}",
    );
    let (code, message, _) = forge(&gate, &format!("output {JOB}")).failed();
    assert_eq!(
        (code, message),
        (2, format!("the Gate knows no job `{JOB}`"))
    );
}

#[test]
fn redirects_are_never_followed() {
    let gate = FakeGate::new();
    let thief = FakeGate::new();
    let to = format!("{}/v1/jobs/{JOB}", thief.url());
    gate.on(&format!("GET /v1/jobs/{JOB}"), Reply::Redirect(to));
    let (code, message, _) = status(&gate);
    assert_eq!(code, 2);
    assert!(message.contains("redirects to"), "{message}");
    assert!(
        thief.requests().is_empty(),
        "the token went to another origin"
    );
}

#[test]
fn bodies_are_bounded() {
    let gate = FakeGate::new();
    let path = format!("GET /v1/jobs/{JOB}");
    let limit = crate::answer::ANSWER_BYTES;
    let mut body = succeeded();
    body.push_str(&" ".repeat(limit - body.len()));
    gate.json(&path, 200, body.clone());
    forge(&gate, &format!("status {JOB}")).ok();
    let gate = FakeGate::new();
    gate.json(&path, 200, body + " ");
    let (_, message, _) = status(&gate);
    assert!(
        message.contains("is longer than 8388608 bytes"),
        "{message}"
    );
}

#[test]
fn what_is_no_gate_is_called_that() {
    for body in [
        "<html>",
        "{\"id\":1}",
        "[]",
        "{\"id\":\"a\",\"id\":\"b\",\"status\":\"c\"}",
    ] {
        let gate = FakeGate::new();
        gate.json(&format!("GET /v1/jobs/{JOB}"), 200, body);
        let (code, message, hints) = status(&gate);
        assert_eq!(code, 2);
        assert!(message.contains("is not that of a Gate"), "{message}");
        assert!(hints.contains("something else listening"), "{hints}");
    }
}

#[test]
fn a_hostile_refusal_cannot_move_the_cursor() {
    let gate = FakeGate::new();
    let body = "{\"error\":\"\\u001b[2J\\u202e\"}";
    gate.json(&format!("GET /v1/jobs/{JOB}"), 500, body);
    let (_, message, _) = status(&gate);
    assert!(message.contains("(HTTP 500)"), "{message}");
    assert!(
        !message.contains('\u{1b}') && !message.contains('\u{202e}'),
        "{message}"
    );
}

#[test]
fn an_unknown_job_and_an_id_that_is_none() {
    let gate = FakeGate::new();
    let (code, message, hints) = status(&gate);
    assert_eq!(
        (code, message),
        (2, format!("the Gate knows no job `{JOB}`"))
    );
    assert!(hints.contains("forge list"));
    let error = Cli::try_parse_from(["forge", "status", "../workers"]).unwrap_err();
    assert_eq!(error.kind(), clap::error::ErrorKind::ValueValidation);
}

#[test]
fn addresses_that_leak_or_mislead_are_refused() {
    let gate = FakeGate::new();
    for (url, expected) in [
        ("http://gate.example", "cannot use the address"),
        ("http://user:pw@127.0.0.1:1", "must not carry a user"),
        ("https://gate.example/v1", "must not have a path"),
        ("ws://127.0.0.1:1", "must start with http://"),
        ("gate", "is not the address of a Gate"),
    ] {
        let args = [
            "forge",
            "status",
            JOB,
            "--gate-url",
            url,
            "--token-file",
            &gate.token_file(),
        ];
        let cli = Cli::try_parse_from(args).unwrap();
        let (ui, _) = Ui::captured(&cli.global);
        let error = run(&cli.command, &ui, &HOSTS).unwrap_err();
        assert!(error.to_string().contains(expected), "{url}: {error}");
        assert!(!error.hints().is_empty(), "{url}");
    }
    let args = [
        "forge",
        "status",
        JOB,
        "--gate-url",
        "http://gate.invalid",
        "--allow-plain",
        "--token-file",
        &gate.token_file(),
    ];
    let cli = Cli::try_parse_from(args).unwrap();
    let (ui, screen) = Ui::captured(&cli.global);
    let error = run(&cli.command, &ui, &HOSTS).unwrap_err();
    assert!(error.to_string().contains("cannot reach"), "{error}");
    assert!(screen.err().contains("clear text"), "{}", screen.err());
}

#[test]
fn a_missing_token_names_the_place() {
    let args = [
        "forge",
        "status",
        JOB,
        "--token-env",
        "FORGE_SURELY_UNSET_3",
    ];
    let cli = Cli::try_parse_from(args).unwrap();
    let (ui, _) = Ui::captured(&cli.global);
    let error = run(&cli.command, &ui, &HOSTS).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no owner token in variable `FORGE_SURELY_UNSET_3`"
    );
    assert_eq!(error.kind(), cli_shell::ErrorKind::Config);
}

#[test]
fn a_gate_of_the_other_scheme_is_told_apart_from_one_that_is_away() {
    // What a TLS server says to plain HTTP (an alert), and a plain one to a TLS greeting.
    let alert: &[u8] = &[21, 3, 3, 0, 2, 2, 70];
    let refusal: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    for (scheme, answer, other) in [
        ("http", alert, "`https://`"),
        ("https", refusal, "`http://`"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("{scheme}://{}", listener.local_addr().unwrap());
        let (served, end) = mpsc::channel();
        std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut seen = [0; 4096];
            assert!(socket.read(&mut seen).unwrap() > 0);
            socket.write_all(answer).unwrap();
            socket.shutdown(Shutdown::Write).unwrap();
            let _rest = socket.read_to_end(&mut Vec::new());
            served.send(()).unwrap();
        });
        let gate = FakeGate::new();
        let cli = Cli::try_parse_from([
            "forge",
            "status",
            JOB,
            "--gate-url",
            &url,
            "--token-file",
            &gate.token_file(),
        ])
        .unwrap();
        let (ui, _) = Ui::captured(&cli.global);
        let error = run(&cli.command, &ui, &HOSTS).unwrap_err();
        assert_eq!(error.kind().exit_code(), 2, "{url}: {error}");
        let [hint] = error.hints() else {
            panic!("{url}: {:?}", error.hints());
        };
        assert!(hint.contains(other), "{url}: {hint}");
        // Last and bounded: a client that never came must not keep the test waiting.
        end.recv_timeout(Duration::from_secs(60)).unwrap();
    }
}

#[test]
fn an_empty_journal_is_that_of_no_job() {
    let gate = FakeGate::new();
    gate.json(&format!("GET /v1/jobs/{JOB}/events"), 200, "[]");
    let (code, message, hints) = forge(&gate, &format!("events {JOB}")).failed();
    assert_eq!(code, 2);
    assert_eq!(message, format!("the Gate knows no job `{JOB}`"));
    assert!(hints.contains("forge list"), "{hints}");
}

#[test]
fn watching_survives_an_outage_and_says_so_once() {
    let gate = FakeGate::new();
    let path = format!("GET /v1/jobs/{JOB}");
    gate.json(&path, 200, job("pending", ""));
    gate.on(&path, Reply::HangUp).on(&path, Reply::HangUp);
    gate.json(&path, 503, "");
    gate.json(&path, 200, succeeded());
    gate.json(&format!("{path}/events"), 200, "[]");
    let done = forge(&gate, &format!("watch {JOB} --poll 1ms"));
    let talk = done.screen.err();
    assert_eq!(talk.matches("still trying").count(), 1, "{talk}");
    assert_eq!(talk.matches("answers again").count(), 1, "{talk}");
    done.ok();
}

#[test]
fn waiting_ends_at_its_limit_and_the_job_goes_on() {
    let gate = FakeGate::new();
    let path = format!("GET /v1/jobs/{JOB}");
    gate.json(&path, 200, job("pending", ""));
    gate.json(&format!("{path}/events"), 200, "[]");
    let (code, message, hints) =
        forge(&gate, &format!("wait {JOB} -timeout 30ms -poll=1ms")).failed();
    assert_eq!(code, 2);
    assert_eq!(
        message,
        format!("job `{JOB}` is still `pending` after 30ms")
    );
    assert!(hints.contains("forge watch"), "{hints}");
}
