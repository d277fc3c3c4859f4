//! How a session ends: every way that was measured on the original, and the limits.

use forge_plugin_host::RunError;
use forge_plugin_protocol::FailureCategory;

use crate::support::{Run, Scratch, runs, told};

#[tokio::test]
async fn ok() {
    let mut run = Run::script("init text read result ok");
    assert_eq!(run.output().await, "ok");
}

#[tokio::test]
async fn ok_exits_a_little_after_the_result() {
    let mut run = Run::script("init text read result ok sleep 60");
    assert_eq!(run.output().await, "ok");
}

#[tokio::test]
async fn h5_exits_400_ms_after_the_result() {
    let (reason, _) = Run::script("init text read result ok sleep 400")
        .broken()
        .await;
    assert!(reason.contains("within 250 ms"), "{reason}");
}

#[tokio::test]
async fn exit_3_after_the_result() {
    let (reason, _) = Run::script("init text read result ok exit 3")
        .broken()
        .await;
    assert!(reason.contains("exit 3"), "{reason}");
}

#[tokio::test]
async fn exit_3_after_a_failure() {
    let (reason, _) = Run::script("init text read failure execution_failed exit 3")
        .broken()
        .await;
    assert!(reason.contains("exit 3"), "{reason}");
}

#[tokio::test]
async fn failure_then_exit_0() {
    for (name, category) in [
        ("invalid_request", FailureCategory::InvalidRequest),
        ("incompatible", FailureCategory::Incompatible),
        ("execution_failed", FailureCategory::ExecutionFailed),
        ("cancelled", FailureCategory::Cancelled),
    ] {
        let end = Run::script(&format!("init text read failure {name}"))
            .end()
            .await;
        assert!(
            matches!(end, Err(RunError::Reported { category: c, .. }) if c == category),
            "{end:?}"
        );
    }
}

#[tokio::test]
async fn a_reported_failure_keeps_the_last_words_of_stderr() {
    let mut run = Run::script("init text read complain no-such-tool failure execution_failed");
    let end = run.end().await;
    let Err(RunError::Reported { stderr_tail, .. }) = end else {
        panic!("{end:?}");
    };
    assert_eq!(stderr_tail, "no-such-tool");
}

#[tokio::test]
async fn a_trailing_byte_after_the_result() {
    for late in ["", "sleep 50 "] {
        let words = format!("init text read result ok {late}raw x");
        let (reason, _) = Run::script(&words).broken().await;
        assert!(reason.contains("`x`"), "{reason}");
    }
}

#[tokio::test]
async fn a_trailing_byte_after_a_failure() {
    let words = "init text read failure execution_failed raw \\n";
    let (reason, _) = Run::script(words).broken().await;
    assert!(reason.contains("nothing may follow"), "{reason}");
}

/// A child in a session of its own; `keep` says what it holds. Returns the words and the file
/// in which it tells its number.
fn with_child(keep: &str, scratch: &Scratch) -> (String, std::path::PathBuf) {
    let path = scratch.path("pid");
    let file = path.display();
    let words =
        format!("init text read bg {keep} pidfile+{file}+sleep+60000 await {file} result ok");
    (words, path)
}

#[tokio::test]
async fn r33_a_child_keeps_stdout() {
    let scratch = Scratch::new();
    let (words, file) = with_child("out", &scratch);
    let (reason, _) = Run::script(&words).broken().await;
    assert!(!cfg!(all(target_os = "linux", not(portable_process))) || reason.contains("holds"));
    end_if_portable(told(&file));
}

#[tokio::test]
async fn r33_a_child_keeps_only_stderr() {
    let scratch = Scratch::new();
    let (words, file) = with_child("err", &scratch);
    let (reason, _) = Run::script(&words).broken().await;
    assert!(reason.contains("holds its output"), "{reason}");
    end_if_portable(told(&file));
}

#[tokio::test]
async fn r30_a_setsid_child_without_the_output_is_killed_in_silence() {
    let scratch = Scratch::new();
    let (words, file) = with_child("none", &scratch);
    assert_eq!(Run::script(&words).output().await, "ok");
    end_if_portable(told(&file));
}

/// Without the wrapper a process that left the group stays; with it, it must be gone by now.
fn end_if_portable(pid: i32) {
    if cfg!(all(target_os = "linux", not(portable_process))) {
        assert!(!runs(pid));
    } else {
        let kill = ["-c".to_owned(), format!("kill -9 {pid}")];
        #[expect(
            clippy::disallowed_methods,
            reason = "cleans up what the test let escape"
        )]
        std::process::Command::new("/bin/sh")
            .args(kill)
            .status()
            .unwrap();
    }
}

#[tokio::test]
async fn killed_by_sigkill_after_the_result() {
    let (reason, _) = Run::script("init text read result ok kill-self")
        .broken()
        .await;
    assert!(reason.contains("signal 9"), "{reason}");
}

#[tokio::test]
async fn h5_hangs_before_initialized() {
    Run::script("read sleep 60000")
        .timeout(300)
        .is_cancelled()
        .await;
}

#[tokio::test]
async fn h5_hangs_after_execute() {
    Run::script("init text read sleep 60000")
        .timeout(300)
        .is_cancelled()
        .await;
}

#[tokio::test]
async fn stderr_over_the_limit() {
    let (reason, tail) = Run::script("init text read stderr 100001 result ok")
        .output_bytes(100_000)
        .broken()
        .await;
    assert!(reason.contains("output limit"), "{reason}");
    assert!(tail.ends_with('x'));
}

#[tokio::test]
async fn exits_before_initialized() {
    let mut run = Run::script("read complain too-old exit 2");
    let end = run.end().await;
    let Err(RunError::Protocol {
        reason,
        stderr_tail,
        initialized,
    }) = end
    else {
        panic!("{end:?}");
    };
    assert!(
        reason.contains("exit 2") && reason.contains("`initialized`"),
        "{reason}"
    );
    assert_eq!((stderr_tail.as_str(), initialized), ("too-old", false));
}

#[tokio::test]
async fn p17_two_results() {
    let (reason, _) = Run::script("init text read result ok result ok")
        .broken()
        .await;
    assert!(reason.contains("nothing may follow"), "{reason}");
}

#[tokio::test]
async fn waits_for_the_end_of_its_input() {
    let mut run = Run::script("init text read result ok read-to-end");
    assert_eq!(run.output().await, "ok");
}

#[tokio::test]
async fn stdout_and_stderr_together_may_use_up_the_limit() {
    let id = "0".repeat(32);
    let head = format!(r#"{{"version":"v1","id":"{id}","type":"#);
    let initialized = format!("{head}\"initialized\",\"capabilities\":[\"text\"]}}\n");
    let result = format!("{head}\"result\",\"output\":\"ok\"}}\n");
    let stdout = initialized.len() + result.len();
    for order in ["stderr N result ok", "result ok stderr N"] {
        let words = format!("init text read {}", order.replace('N', "1000"));
        let limit = u64::try_from(stdout + 1_000).unwrap();
        let mut run = Run::script(&words).output_bytes(limit);
        assert_eq!(run.output().await, "ok");
        let (reason, _) = Run::script(&words).output_bytes(limit - 1).broken().await;
        assert!(reason.contains("output limit"), "{reason}");
    }
}

#[tokio::test]
async fn h2_much_stderr_blocks_nobody() {
    let mut run = Run::script("stderr 500000 init text stderr 500000 read stderr 500000 result ok");
    assert_eq!(run.output().await, "ok");
}

#[tokio::test]
async fn progress_arrives_in_order() {
    let mut run = Run::script("init progress,text read progress 1 a progress 2 b result ok");
    assert_eq!(run.output().await, "ok");
    let texts: Vec<_> = run.progress.iter().map(|p| p.text.to_string()).collect();
    assert_eq!(texts, ["a", "b"]);
}

/// The environment is what was named; a secret of the host is not in it.
#[tokio::test]
async fn the_environment_is_exactly_what_was_named() {
    let script = r#"read -r line
        id=${line#*'"id":"'}; id=${id%%'"'*}
        printf '{"version":"v1","id":"%s","type":"initialized","capabilities":["text"]}\n' "$id"
        read -r line
        names=$(tr '\0' '\n' </proc/$$/environ | cut -d= -f1 | sort | tr '\n' ' ')
        printf '{"version":"v1","id":"%s","type":"result","output":"%s"}\n' "$id" "$names"
    "#;
    let mut run = Run::argv(["/bin/sh", "-c", script]);
    run.command.env = vec![
        ("ONE".into(), "1".into()),
        ("PATH".into(), "/bin:/usr/bin".into()),
    ];
    assert_eq!(run.output().await, "ONE PATH ");
}

#[cfg(all(target_os = "linux", not(portable_process)))]
#[tokio::test]
async fn a_killed_wrapper_is_a_failure_of_its_own() {
    let (reason, _) = Run::script("init text read kill-wrapper sleep 60000")
        .broken()
        .await;
    assert!(reason.contains("wrapper was killed"), "{reason}");
}
