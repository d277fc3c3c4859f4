//! From the declarations to running plugins: table 8, the rows before the first question.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use attest_plugin_host::{Command, OnFailure, StartError};
use attest_plugin_protocol::Hook;
use attest_receipt::receipt::Decision;

use crate::support::{BOTH, Bench, GOOD, ask, goes, pid_in, record};

/// A script whose `hello_ok` is this line; `NAME` stands for its name.
fn greets_with(line: &str) -> String {
    format!("get\nprintf '%s\\n' '{line}'\nget\n")
}

async fn misconfigured(script: &str, part: &str) {
    for mode in BOTH {
        let bench = Bench::of(script, mode);
        match bench.start().await {
            Err(StartError::Misconfigured { plugin, reason }) => {
                assert_eq!(plugin, "p");
                assert!(reason.contains(part), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
}

/// The run does not begin under fail-closed; it goes on with a record under fail-open.
async fn start_fails(bench: impl Fn(OnFailure) -> Bench, reason: &str) {
    let closed = bench(OnFailure::FailClosed);
    let error = closed.start().await.unwrap_err();
    assert!(error.to_string().starts_with("plugin p "), "{error}");
    assert!(closed.log.has("p: failed: "), "{:?}", closed.log.lines());

    let open = bench(OnFailure::FailOpen);
    let mut host = open.host().await;
    assert_eq!(ask(&mut host).await, attest_plugin_host::Answer::Go);
    let record = record(&host);
    assert_eq!(record.decision, Decision::Error);
    let said = record.reason.unwrap();
    assert!(said.contains(reason), "{said}");
    assert!(!said.contains('/'), "no path: {said}");
    // Decision 39: what is known before `hello_ok`.
    assert_eq!((record.version.as_str(), record.protocol), ("", 1));
    assert!(record.deterministic);
    let declared = open.plugins.plugins[0].digest.unwrap().to_string();
    assert_eq!(record.digest, declared);
    assert!(open.log.has("; the run goes on without it"));
    host.shutdown().await;
}

#[tokio::test]
async fn t8_another_digest_is_refused_in_both_modes_and_nothing_has_started() {
    for mode in BOTH {
        let mut bench = Bench::new();
        let first = bench.path("first-ran");
        bench.add("a", &format!("touch {}", first.display()));
        let second = bench.path("second-ran");
        bench
            .add("b", &format!("touch {}", second.display()))
            .on_failure = mode;
        let wrong = format!("blake3:{}", "0".repeat(64)).parse().unwrap();
        let right = bench.plugins.plugins[1].digest.replace(wrong).unwrap();
        let error = bench.start().await.unwrap_err();
        assert!(matches!(error, StartError::DigestMismatch(_)));
        let text = error.to_string();
        assert!(text.contains(&right.to_string()) && text.contains(&wrong.to_string()));
        assert!(!first.exists() && !second.exists());
    }
}

#[tokio::test]
async fn t8_another_name_is_refused_in_both_modes() {
    let line = r#"{"v":1,"id":1,"kind":"hello_ok","name":"q","version":"1","protocol":1,"hooks":["step.pre"],"deterministic":true}"#;
    misconfigured(&greets_with(line), "`q`").await;
}

#[tokio::test]
async fn t8_another_determinism_is_refused_in_both_modes() {
    let line = r#"{"v":1,"id":1,"kind":"hello_ok","name":"p","version":"1","protocol":1,"hooks":["step.pre"],"deterministic":false}"#;
    misconfigured(&greets_with(line), "deterministic").await;
}

#[tokio::test]
async fn t8_a_declared_hook_that_is_not_announced_is_refused_in_both_modes() {
    let line = r#"{"v":1,"id":1,"kind":"hello_ok","name":"p","version":"1","protocol":1,"hooks":["step.post"],"deterministic":true}"#;
    misconfigured(&greets_with(line), "step.pre").await;
}

#[tokio::test]
async fn t8_a_command_that_is_not_there() {
    let bench = |mode| {
        let bench = Bench::of(GOOD, mode);
        std::fs::remove_file(bench.path("plugin-p")).unwrap();
        bench
    };
    start_fails(bench, "not found").await;
    let bench = |mode| {
        let mut bench = Bench::of(GOOD, mode);
        bench.plugins.plugins[0].command = Command::Bare("no-such-plugin".to_owned());
        bench
    };
    start_fails(bench, "not found").await;
}

#[tokio::test]
async fn t8_a_command_that_cannot_be_executed() {
    let bench = |mode| {
        let bench = Bench::of(GOOD, mode);
        let file = bench.path("plugin-p");
        std::fs::set_permissions(file, PermissionsExt::from_mode(0o644)).unwrap();
        bench
    };
    start_fails(bench, "not executable").await;
}

#[tokio::test]
async fn t8_a_command_that_the_system_does_not_start() {
    for (text, reason) in [
        ("#!/no/such/interpreter\n", "interpreter"),
        ("neither a binary nor a script\n", "format"),
    ] {
        let bench = |mode| {
            let mut bench = Bench::of(GOOD, mode);
            std::fs::write(bench.path("plugin-p"), text).unwrap();
            let digest = format!("blake3:{}", blake3::hash(text.as_bytes()));
            bench.plugins.plugins[0].digest = Some(digest.parse().unwrap());
            bench
        };
        start_fails(bench, reason).await;
        // The file is told, and not the descriptor that it is started from.
        let bench = bench(OnFailure::FailClosed);
        let error = bench.start().await.unwrap_err();
        let why = std::error::Error::source(&error).unwrap().to_string();
        let file = bench.path("plugin-p");
        assert!(why.contains(file.to_str().unwrap()), "{why}");
        assert!(!why.contains("/proc/"), "{why}");
    }
}

#[tokio::test]
async fn t8_no_hello_ok() {
    for (script, reason) in [
        ("exit 3", "exit code 3"),
        ("kill -9 $$", "signal 9"),
        ("get; exec 1>&-; sleep 100", "closed stdout"),
        ("printf '{\"v\":1'; exit 0", "inside a line"),
    ] {
        start_fails(|mode| Bench::of(script, mode), reason).await;
    }
}

#[tokio::test]
async fn t8_a_late_hello_ok() {
    for mode in BOTH {
        let bench = Bench::of("get; echo $$ > pid; touch read; sleep 100; hello_ok", mode);
        let late = Duration::from_secs(30);
        let started = bench.once("read", late, bench.start()).await;
        match (mode, started) {
            (OnFailure::FailClosed, Err(StartError::Hello { reason, .. })) => {
                assert_eq!(reason, "no hello_ok within 30 s");
            }
            (OnFailure::FailOpen, Ok(host)) => {
                let reason = record(&host).reason.unwrap();
                assert_eq!(reason, "no hello_ok within 30 s");
            }
            other => panic!("{other:?}"),
        }
        assert!(goes(pid_in(&bench.path("pid"))).await);
    }
}

#[tokio::test]
async fn t8_a_wrong_hello_ok() {
    for line in [
        "ready",
        "{}",
        r#"{"v":2,"id":1,"kind":"hello_ok","name":"p","version":"1","protocol":1,"hooks":["step.pre"],"deterministic":true}"#,
        r#"{"v":1,"id":2,"kind":"hello_ok","name":"p","version":"1","protocol":1,"hooks":["step.pre"],"deterministic":true}"#,
        r#"{"v":1,"id":1,"kind":"verdict","decision":"allow"}"#,
        r#"{"v":1,"id":1,"kind":"hello_ok","name":"p","version":"1","protocol":1,"hooks":null,"deterministic":true}"#,
    ] {
        let script = greets_with(line);
        start_fails(|mode| Bench::of(&script, mode), "protocol violation").await;
    }
}

#[tokio::test]
async fn t8_a_line_before_hello() {
    let script = "echo banner\nhello\nget";
    start_fails(|mode| Bench::of(script, mode), "protocol violation").await;
}

#[tokio::test]
async fn t8_an_incompatible_protocol() {
    let line = r#"{"v":1,"id":1,"kind":"hello_ok","name":"p","version":"1","protocol":2,"hooks":["step.pre"],"deterministic":true}"#;
    let script = greets_with(line);
    start_fails(|mode| Bench::of(&script, mode), "protocol 2").await;
}

#[tokio::test]
async fn plugins_start_in_the_order_of_the_file_each_once_the_one_before_has_greeted() {
    let mut bench = Bench::new();
    for name in ["z", "a", "m"] {
        let script = format!(
            "echo {name} starts >> order\nget\nsleep 0.1\necho {name} greets >> order\nhello_ok\nget"
        );
        bench.add(name, &script);
    }
    let mut host = bench.host().await;
    let order = std::fs::read_to_string(bench.path("order")).unwrap();
    let expected = "z starts\nz greets\na starts\na greets\nm starts\nm greets\n";
    assert_eq!(order, expected);
    host.shutdown().await;
}

#[tokio::test]
async fn a_start_that_fails_ends_those_that_had_started() {
    let mut bench = Bench::new();
    let polite = "hello\necho $$ > pid\nget\n[ $kind = shutdown ] && touch told";
    bench.add("a", polite);
    bench.add("b", "exit 1");
    bench.add("c", "touch third");
    assert!(bench.start().await.is_err());
    assert!(goes(pid_in(&bench.path("pid"))).await);
    assert!(bench.path("told").exists() && !bench.path("third").exists());
}

#[tokio::test]
async fn a_hook_that_is_announced_and_not_declared_is_never_sent() {
    let script = "hello\nwhile get; do echo $kind >> kinds; verdict allow; done";
    let bench = Bench::of(script, OnFailure::FailClosed);
    let mut host = bench.host().await;
    let finalize = || attest_plugin_protocol::Payload::Receipt(strict_json::Object::default());
    let answer = host.ask(Hook::ReceiptFinalize, &mut |_| finalize()).await;
    assert_eq!(answer, attest_plugin_host::Answer::Go);
    assert_eq!(record(&host).decision, Decision::Skipped);
    ask(&mut host).await;
    host.shutdown().await;
    let kinds = std::fs::read_to_string(bench.path("kinds")).unwrap();
    assert_eq!(kinds, "step.pre\nshutdown\n");
}

#[tokio::test]
async fn a_cancelled_start_ends_at_once() {
    let bench = Bench::of(
        "get; echo $$ > pid; touch read; sleep 100",
        OnFailure::FailOpen,
    );
    let cancel = bench.cancel.clone();
    let read = bench.path("read");
    let (started, ()) = tokio::join!(bench.start(), async {
        crate::support::exists(&read).await;
        cancel.cancel();
    });
    assert!(matches!(started, Err(StartError::Cancelled)));
    assert!(goes(pid_in(&bench.path("pid"))).await);
}
