//! The real Codex CLI: what it does when all goes well, when nobody answers, and when it is told
//! to stop.

use std::net::TcpListener;
use std::time::Duration;

use serde_json::json;

use crate::provider::{KEY, Provider, configure, real_codex};
use crate::repository::{git, repository};
use crate::support::{OFFER, Place, Session, eventually, now};

const FINAL: &str = r#"{"commit_subject":"feat: answer","summary":"Wrote the answer.","changes":["answer.txt is new"]}"#;

#[test]
fn an_edit_by_the_real_cli_succeeds_with_error_items_on_its_way() {
    let provider = Provider::start("printf 'forty-two\\n' >answer.txt && git diff", FINAL);
    let place = place(provider.port);
    let end = place.run(&[]);
    assert_eq!(
        end.answer(),
        json!({
            "type": "result", "commit_subject": "feat: answer", "summary": "Wrote the answer.",
            "changes": ["answer.txt is new"]
        }),
        "{}",
        end.stderr
    );
    assert_eq!(end.stderr, "");
    assert_eq!(
        std::fs::read_to_string(place.workspace().join("answer.txt")).unwrap(),
        "forty-two\n"
    );
}

#[test]
fn prose_from_the_real_cli_is_refused() {
    let provider = Provider::start("true", "I am done.");
    place(provider.port)
        .run(&[])
        .failed("execution_failed", "final message");
}

#[test]
fn the_real_cli_keeps_its_commands_from_the_repository() {
    let command = "git -c user.name=x -c user.email=x@example.invalid commit --allow-empty -m mine";
    let provider = Provider::start(command, FINAL);
    let place = place(provider.port);
    let before = git(&place.workspace(), &["rev-parse", "HEAD"]);
    let end = place.run(&[]);
    assert_eq!(end.answer()["type"], "result", "{}", end.stderr);
    assert_eq!(git(&place.workspace(), &["rev-parse", "HEAD"]), before);
}

#[test]
fn a_provider_that_cannot_be_reached_is_ended_by_the_timeout() {
    // Nothing listens on port 1; connections to the other port are taken and never answered.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    for port in [1, silent.local_addr().unwrap().port()] {
        let place = place(port);
        let begin = now();
        Session::start(&place, &[], &OFFER, 3_000, "edit", &place.workspace())
            .end()
            .failed("execution_failed", "3s");
        let took = begin.elapsed();
        assert!(took >= Duration::from_secs(3), "{took:?}");
    }
}

#[test]
fn a_cancel_ends_the_real_cli_with_everything_that_it_started() {
    // Lengths that no other process sleeps for name the children in the process table.
    let unique = std::process::id();
    let sleeps = ["1", "2", "3"].map(|kind| format!("86399.{kind}{unique}"));
    let command = format!(
        "setsid sleep {} & sleep {} & : >started; sleep {}",
        sleeps[0], sleeps[1], sleeps[2]
    );
    let provider = Provider::start(&command, FINAL);
    let place = place(provider.port);
    let mut session = place.session(&[]);
    eventually("all three children run", || {
        sleeps.iter().all(|text| running(text))
    });
    session.cancel();
    session.end().failed("cancelled", "");
    eventually("no child is left", || {
        !sleeps.iter().any(|text| running(text))
    });
    let workspace = place.workspace();
    eventually("the CLI itself is gone", || {
        !running(workspace.to_str().unwrap())
    });
}

/// Whether a process has this argument.
fn running(argument: &str) -> bool {
    let needle = format!("\0{argument}\0");
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .any(|process| {
            std::fs::read(process.path().join("cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains(&needle))
        })
}

/// Folders in which the real CLI works with a provider on this port.
fn place(port: u16) -> Place {
    let mut place = Place::new();
    repository(&place.workspace());
    let home = place.start().join("codex-home");
    configure(&home, port);
    // The CLI runs the login shell of whoever runs the tests; what that starts is not for us to end.
    place.set("HOME", place.start());
    place.set("CODEX_BIN", real_codex());
    place.set("CODEX_HOME", home);
    place.set(KEY, "any");
    place
}
