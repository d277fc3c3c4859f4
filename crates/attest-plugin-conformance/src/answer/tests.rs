//! The judgement written here and that of the core are the same, answer by answer.

use std::time::{Duration, Instant};

use attest_plugin_protocol::{Expected, Failure, Hook, HostEvent, HostSession, Payload};

use super::*;
use crate::message::{Piece, Splitter};

/// What the core makes of answers to `hello` and to a first request.
fn core(hello_ok: &str, verdict: Option<&str>) -> Result<(), String> {
    #[expect(clippy::disallowed_methods, reason = "any instant does")]
    let now = Instant::now();
    let expected = Expected {
        name: "noop".parse().unwrap(),
        hooks: vec![Hook::ReceiptFinalize],
        deterministic: true,
    };
    let mut session = HostSession::new(expected, "1.0.0", Duration::from_secs(1), now);
    while session.poll_transmit().is_some() {}
    session.receive(now, format!("{hello_ok}\n").as_bytes());
    if let Some(verdict) = verdict {
        let payload = Payload::Receipt(strict_json::Object::default());
        session.request(now, &payload).unwrap();
        while session.poll_transmit().is_some() {}
        session.receive(now, format!("{verdict}\n").as_bytes());
    }
    while let Some(event) = session.poll_event() {
        if let HostEvent::Failed(Failure::Start(reason) | Failure::Broken(reason)) = event {
            return Err(reason);
        }
    }
    Ok(())
}

fn message(line: &str) -> Option<Message> {
    let mut splitter = Splitter::default();
    splitter.push(format!("{line}\n").as_bytes());
    match splitter.next() {
        Some(Piece::Message(message)) => Some(message),
        _ => None,
    }
}

const HELLO_OK: &str = concat!(
    r#"{"v":1,"id":1,"kind":"hello_ok","name":"noop","version":"1","protocol":1,"#,
    r#""hooks":["receipt.finalize"],"deterministic":true}"#
);

#[test]
fn s62_a_hello_ok_is_judged_as_the_core_judges_it() {
    let changes = [
        ("", ""),
        (r#""v":1"#, r#""v":2"#),
        (r#""v":1"#, r#""v":1.0"#),
        (r#""v":1"#, r#""v":"1""#),
        (r#""v":1,"#, ""),
        ("hello_ok", "hello"),
        (r#""name":"noop""#, r#""name":null"#),
        (r#""name":"noop","#, ""),
        (r#""version":"1""#, r#""version":"""#),
        (r#""version":"1""#, r#""version":1"#),
        (r#""version":"1""#, r#""version":null"#),
        (r#""protocol":1"#, r#""protocol":2"#),
        (r#""protocol":1"#, r#""protocol":"1""#),
        (r#""protocol":1"#, r#""protocol":1e0"#),
        (r#""protocol":1,"#, ""),
        (r#"["receipt.finalize"]"#, r#""receipt.finalize""#),
        (r#"["receipt.finalize"]"#, r#"["receipt.finalize",1]"#),
        (r#"["receipt.finalize"]"#, r#"["receipt.finalize","later"]"#),
        (
            r#"["receipt.finalize"]"#,
            r#"["receipt.finalize","receipt.finalize"]"#,
        ),
        (r#""deterministic":true"#, r#""deterministic":"true""#),
        (r#","deterministic":true"#, ""),
        (r#"{"v""#, r#"{"later":{"v":2},"v""#),
        (r#"{"v""#, r#"{"name":"noop","v""#),
        (r#"{"v""#, r#"{ "v""#),
    ];
    let long = format!(r#""version":"{}""#, "x".repeat(257));
    let most = format!(r#""version":"{}""#, "x".repeat(256));
    let more = [
        (r#""version":"1""#, long.as_str()),
        (r#""version":"1""#, most.as_str()),
    ];
    let mut refused = 0;
    for (from, to) in changes.into_iter().chain(more) {
        let line = HELLO_OK.replacen(from, to, 1);
        let core = core(&line, None);
        let ours = hello_ok(&message(&line).unwrap(), None);
        assert_eq!(ours.is_ok(), core.is_ok(), "{line}: {ours:?}, {core:?}");
        refused += usize::from(core.is_err());
    }
    assert_eq!(refused, 19);
}

const VERDICT: &str = concat!(
    r#"{"v":1,"id":2,"kind":"verdict","decision":"warn","findings":["#,
    r#"{"rule":"r","severity":"high","message":"m","resource":"x"}],"annotation":{"a":[1,1.5]}}"#
);

#[test]
fn s64_a_verdict_is_judged_as_the_core_judges_it() {
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes));
    let finding = r#"{"rule":"r","severity":"high","message":"m"}"#;
    let findings = |count: usize| format!("[{}]", vec![finding; count].join(","));
    let nested = |depth: usize| {
        format!(
            "{}{}",
            r#"{"a":"#.repeat(depth - 1) + "{}",
            "}".repeat(depth - 1)
        )
    };
    let annotation = |bytes: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - 8));
    let all = r#"[{"rule":"r","severity":"high","message":"m","resource":"x"}]"#;
    let changes: Vec<(&str, String)> = vec![
        (r#""v":1"#, r#""v":2"#.to_owned()),
        ("verdict", "answer".to_owned()),
        (r#""warn""#, r#""permit""#.to_owned()),
        (r#""warn""#, r#""Warn""#.to_owned()),
        (r#""warn""#, "null".to_owned()),
        (r#""decision":"warn","#, String::new()),
        (r#"{"v""#, r#"{"decision":"deny","v""#.to_owned()),
        (r#"{"v""#, r#"{"later":null,"v""#.to_owned()),
        (r#"{"rule""#, r#"{"later":[null],"rule""#.to_owned()),
        (all, "null".to_owned()),
        (all, "{}".to_owned()),
        (all, "[]".to_owned()),
        (all, "[1]".to_owned()),
        (all, findings(256)),
        (all, findings(257)),
        (r#""rule":"r","#, String::new()),
        (r#""r""#, text(256)),
        (r#""r""#, text(257)),
        (r#""high""#, r#""fatal""#.to_owned()),
        (r#""m""#, text(4_096)),
        (r#""m""#, text(4_097)),
        (r#""m""#, "null".to_owned()),
        (r#""x""#, text(256)),
        (r#""x""#, text(257)),
        (r#""x""#, "null".to_owned()),
        (r#"{"a":[1,1.5]}"#, "null".to_owned()),
        (r#"{"a":[1,1.5]}"#, "[]".to_owned()),
        (r#"{"a":[1,1.5]}"#, r#"{"a":1,"a":1}"#.to_owned()),
        (
            r#"{"a":[1,1.5]}"#,
            r#"{"a":18446744073709551616}"#.to_owned(),
        ),
        (r#"{"a":[1,1.5]}"#, nested(64)),
        (r#"{"a":[1,1.5]}"#, nested(65)),
        (r#"{"a":[1,1.5]}"#, annotation(65_536)),
        (r#"{"a":[1,1.5]}"#, annotation(65_537)),
    ];
    let mut refused = 0;
    for (from, to) in changes {
        let line = VERDICT.replacen(from, &to, 1);
        let core = core(HELLO_OK, Some(&line));
        let told = message(&line).unwrap();
        let ours = verdict(&told).and_then(|()| limits(&told));
        assert_eq!(
            ours.is_ok(),
            core.is_ok(),
            "{line:.200}: {ours:?}, {core:?}"
        );
        refused += usize::from(core.is_err());
    }
    assert_eq!(refused, 23);
}
