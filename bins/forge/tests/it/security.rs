//! Foreign pages, hostile texts and secrets, seen from outside of the running programs.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::appliance::{Appliance, FORGE, OWNER_TOKEN, Setup, WORKER_TOKEN, words};

/// Sends one request as it is and answers what comes back.
fn raw(appliance: &Appliance, request: &str) -> String {
    let mut stream = TcpStream::connect(appliance.address()).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    // A reset behind the answer is as good as an end.
    drop(stream.read_to_string(&mut answer));
    answer
}

#[test]
fn r57_requests_of_foreign_pages_change_nothing_and_no_token_of_a_query_is_logged() {
    let setup = Setup {
        gate_variables: vec![("FORGE_LOG", "trace".to_owned())],
        ..Setup::default()
    };
    let mut appliance = Appliance::start(&setup);
    let host = appliance.address();
    let own = format!("Authorization: Bearer {OWNER_TOKEN}");
    let upgrade = format!(
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: Bearer {WORKER_TOKEN}"
    );
    let slot = "GET /v1/workers/connect?worker_id=worker-1&slot=0";
    let body = r#"{"input":"x"}"#;
    let length = format!("Connection: close\r\nContent-Length: {}", body.len());
    for (line, headers, status) in [
        // The right token does not help a foreign page or name.
        (
            "POST /v1/jobs",
            format!("Host: evil.example\r\n{own}"),
            "403",
        ),
        (
            "POST /v1/jobs",
            format!("Host: {host}\r\nOrigin: http://evil.example\r\n{own}"),
            "403",
        ),
        (
            "POST /v1/jobs",
            format!("Host: {host}\r\nOrigin: null\r\n{own}"),
            "403",
        ),
        (slot, format!("Host: evil.example\r\n{upgrade}"), "403"),
        (
            slot,
            format!("Host: {host}\r\nOrigin: http://evil.example\r\n{upgrade}"),
            "403",
        ),
        // A browser sends cookies by itself; a token it does not.
        (
            "POST /v1/jobs",
            format!("Host: {host}\r\nCookie: token={OWNER_TOKEN}"),
            "401",
        ),
        ("POST /v1/jobs", format!("Host: {host}"), "401"),
        // A token in a query is none, and must not get into a log.
        (
            &format!("POST /v1/jobs?token={OWNER_TOKEN}"),
            format!("Host: {host}"),
            "401",
        ),
        (
            &format!("GET /v1/jobs?access_token={OWNER_TOKEN}"),
            format!("Host: {host}"),
            "401",
        ),
        (
            &format!("{slot}&token={WORKER_TOKEN}"),
            format!("Host: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket"),
            "40",
        ),
        (
            &format!("GET /{OWNER_TOKEN}"),
            format!("Host: {host}"),
            "40",
        ),
    ] {
        let request = format!("{line} HTTP/1.1\r\n{headers}\r\n{length}\r\n\r\n{body}");
        let answer = raw(&appliance, &request);
        let expected = format!("HTTP/1.1 {status}");
        assert!(answer.starts_with(&expected), "{line}\n{headers}\n{answer}");
        for token in [OWNER_TOKEN, WORKER_TOKEN] {
            assert!(!answer.contains(token), "{answer}");
        }
    }
    let (_, listed, _) = appliance.forge(&["list", "--format", "json"]);
    assert_eq!(listed.trim(), "", "nothing was accepted");
    appliance.start_worker();
    let job = appliance.submit("an answer", &[]);
    appliance.wait_for_status(&job, &["succeeded", "failed"]);
    let logs = appliance.logs();
    assert!(logs.len() > 1_000);
    for token in [OWNER_TOKEN, WORKER_TOKEN] {
        assert!(!logs.contains(token), "a log holds a token");
    }
}

/// Characters that move the cursor, colour, hide or reorder what a terminal shows.
fn moves(text: &str) -> Vec<char> {
    text.chars()
        .filter(|one| {
            (one.is_control() && *one != '\n')
                || ('\u{200b}'..='\u{200f}').contains(one)
                || ('\u{202a}'..='\u{202e}').contains(one)
                || ('\u{2066}'..='\u{2069}').contains(one)
        })
        .collect()
}

#[test]
fn r58_hostile_texts_are_shown_as_text() {
    // Markup is a text like any other; what no report may hold ends the attempt.
    let script = r#"cat > answer.txt
case $(cat answer.txt) in
*bidi*) summary=$(printf 'safe \342\200\256evil') ;;
*colour*) summary='\u001b[31mred' ;;
*) summary='<script>alert(1)</script> &amp; \"quoted\"' ;;
esac
printf 'fix: <b>bold</b> & more' > "$FORGE_SUBJECT_FILE"
printf '{"summary":"%s","changes":["<img src=x onerror=alert(1)>"]}' "$summary" > "$FORGE_REPORT_FILE""#;
    let setup = Setup {
        command: words(&["/bin/sh", "-c", script]),
        ..Setup::default()
    };
    let mut appliance = Appliance::start(&setup);
    appliance.start_worker();
    let hostile = "<script>\u{1b}]0;title\u{7}\u{1b}[2J\u{202e}txt\u{9b}31m</script>";
    let job = appliance.submit(hostile, &[]);
    let done = appliance.wait_for_status(&job, &["succeeded", "failed"]);
    assert_eq!(done["status"], "succeeded", "{}", appliance.logs());
    let mut shown = String::new();
    for words in [
        &["status", &job][..],
        &["result", &job],
        &["events", &job],
        &["watch", &job],
        &["list"],
        &["workers"],
    ] {
        let (code, out, err) = appliance.forge(words);
        assert_eq!(code, 0, "{words:?} {out}{err}");
        assert_eq!(moves(&format!("{out}{err}")), [], "{words:?} {out}{err}");
        shown.push_str(&out);
    }
    // Shown as it is, and labelled as the agent's own words.
    assert!(
        shown.contains("<script>alert(1)</script> &amp; \"quoted\""),
        "{shown}"
    );
    assert!(shown.contains("<img src=x onerror=alert(1)>"), "{shown}");
    assert!(shown.contains("self-reported"), "{shown}");
    // A browser that is sent there is told that it is no page.
    let request = format!(
        "GET /v1/jobs/{job}/result HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {OWNER_TOKEN}\r\nConnection: close\r\n\r\n",
        appliance.address()
    );
    let answer = raw(&appliance, &request).to_ascii_lowercase();
    for header in [
        "content-type: application/json",
        "x-content-type-options: nosniff",
    ] {
        assert!(answer.contains(header), "{answer}");
    }

    for kind in ["bidi", "colour"] {
        let job = appliance.submit(kind, &[]);
        let refused = appliance.wait_for_status(&job, &["retry_wait", "failed", "succeeded"]);
        assert_ne!(refused["status"], "succeeded", "{kind}");
        appliance.forge(&["cancel", &job]);
        let (_, out, err) = appliance.forge(&["status", &job]);
        assert_eq!(moves(&format!("{out}{err}")), [], "{kind} {out}{err}");
    }
    assert_eq!(moves(&appliance.logs()), [], "{}", appliance.logs());
}

/// A secret of two lines, as it stands and as tools like to show it.
const FIRST: &str = "canary-first-line-4b1f9d";
const SECOND: &str = "canary-second-line-77e02a";

#[test]
fn r59_a_secret_that_a_plugin_may_have_and_spills_is_kept_nowhere() {
    // What it prints goes to both outputs: whole, over two writes, and encoded.
    let spill = r#"spill() {
printf '%s\n' "$SECRET"; printf '%s' "${SECRET%d*}"; sleep 0.2; printf 'd%s\n' "${SECRET#*d}"
printf '%s' "$SECRET" | base64; printf '%s' "$SECRET" | base64 -w 0; env
}"#;
    let script = format!(
        "{spill}\ncat > answer.txt; spill; spill >&2\n\
         case $(cat answer.txt) in *fails*) exit 3 ;; *breaks*) kill -9 $PPID ;; esac\n\
         rm -f answer.txt; echo done > answer.txt"
    );
    let setup = Setup {
        command: words(&["/bin/sh", "-c", &script]),
        variables: vec![("SECRET", format!("{FIRST}\n{SECOND}"))],
        ..Setup::default()
    };
    let mut appliance = Appliance::start(&setup);
    appliance.start_worker();
    let jobs = ["works", "fails", "breaks"].map(|kind| {
        let job = appliance.submit(kind, &[vec!["sh", "-c", "env; true"]]);
        (kind, job)
    });
    for (kind, job) in &jobs {
        let ended = appliance.wait_for_status(job, &["succeeded", "failed", "retry_wait"]);
        assert_eq!(ended["status"] == "succeeded", *kind == "works", "{ended}");
        appliance.forge(&["cancel", job]);
    }
    let mut kept: Vec<(String, Vec<u8>)> = Vec::new();
    for name in ["gate/gate.db", "gate/gate.db-wal", "gate.log", "worker.log"] {
        let bytes = std::fs::read(appliance.path(name)).unwrap();
        kept.push((name.to_owned(), bytes));
    }
    // The Worker quotes what a failed plugin said last, so there was something to keep.
    let log = appliance.logs();
    assert!(log.matches("[SECRET]").count() >= 2, "{log}");
    for (_, job) in &jobs {
        for words in [["result", job], ["events", job], ["status", job]] {
            let (_, out, err) = appliance.forge(&[words[0], words[1], "--format", "json"]);
            kept.push((format!("{words:?}"), format!("{out}{err}").into_bytes()));
        }
    }
    let encoded = "Y2FuYXJ5LWZpcnN0LWxpbmUtNGIxZjlk";
    for (name, bytes) in &kept {
        for trace in [FIRST, SECOND, &FIRST[..15], &SECOND[8..], encoded] {
            let found = bytes.windows(trace.len()).any(|at| at == trace.as_bytes());
            assert!(!found, "{name} holds `{trace}`");
        }
    }
    let refs = appliance.git(&["log", "--all", "-p", "--format=%B"]);
    assert!(!refs.contains("canary"), "{refs}");
}

/// What a terminal gets to see when `forge WORDS` runs on one.
fn on_a_terminal(appliance: &Appliance, list: &[&str]) -> String {
    let spawn = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)";
    let output = std::process::Command::new("python3")
        .args(["-c", spawn, FORGE, "--color", "never"])
        .args(list)
        .env("FORGE_GATE_URL", format!("http://{}", appliance.address()))
        .env("FORGE_OWNER_TOKEN", OWNER_TOKEN)
        .output()
        .unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{list:?} {shown}");
    // A terminal ends its lines with both.
    shown.replace("\r\n", "\n")
}

#[test]
fn r58_what_a_job_made_does_not_reach_a_terminal_as_it_is() {
    let hostile = "\u{1b}[2Jgone\u{202e}txt\u{9b}31m <b>";
    let script = format!("cat > /dev/null; printf '%s' '{hostile}' > 'file\u{1b}[31m'");
    let setup = Setup {
        command: words(&["/bin/sh", "-c", &script]),
        ..Setup::default()
    };
    let mut appliance = Appliance::start(&setup);
    appliance.start_worker();
    let edit = appliance.submit("edit", &[]);
    let (code, out, err) = appliance.forge(&["submit", "--text", hostile]);
    assert_eq!(code, 0, "{err}");
    let text = out.trim().to_owned();
    for job in [&edit, &text] {
        let done = appliance.wait_for_status(job, &["succeeded", "failed"]);
        assert_eq!(done["status"], "succeeded", "{}", appliance.logs());
    }
    let repository = appliance.repository();
    let diff = ["diff", &edit, "--repo", repository.to_str().unwrap()];
    for list in [&["output", &text][..], &diff] {
        let shown = on_a_terminal(&appliance, list);
        assert!(shown.to_lowercase().contains("gone"), "{list:?} {shown}");
        assert_eq!(moves(&shown.replace('\t', "")), [], "{list:?} {shown:?}");
        // A program that reads it gets the bytes.
        let (_, out, _) = appliance.forge(list);
        assert!(out.contains('\u{202e}'), "{list:?} {out:?}");
    }
}
