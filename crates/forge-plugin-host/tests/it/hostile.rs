//! Plugins that do not speak the protocol, seen through real pipes.

use forge_plugin_host::RunError;

use crate::support::Run;

#[tokio::test]
async fn p01_h1_a_banner_is_shown_with_the_end_of_stderr() {
    let mut run = Run::words([
        "complain",
        "starting\n\u{1b}[31mup",
        "raw",
        "Welcome!\\n",
        "sleep",
        "60000",
    ]);
    let (reason, tail) = run.broken().await;
    assert!(reason.contains("`Welcome!"), "{reason}");
    assert!(tail.contains("starting") && tail.contains("up"));
    assert!(!tail.contains('\u{1b}'));
}

/// Exit code 0 after a broken rule is still an error.
#[tokio::test]
async fn h6_every_line_that_is_no_frame_breaks_the_session() {
    let result = r#"{"version":"v1","id":"@","type":"result","output":"ok"}"#;
    for line in [
        "\\n".to_owned(),
        "\\xef\\xbb\\xbf".to_owned() + result + "\\n",
        result.to_owned() + "\\r\\n",
        result.to_owned() + " \\n",
        result.to_owned(),
        result.to_owned() + result + "\\n",
        "{\\x00}\\n".to_owned(),
        "{\\xff}\\n".to_owned(),
        result.replace("result", "initialized") + "\\n",
        result.replace('@', &"f".repeat(32)) + "\\n",
        result.replace("output", "outputs") + "\\n",
    ] {
        let mut run = Run::words(["init", "text", "read", "raw", &line]);
        let end = run.end().await;
        assert!(
            matches!(
                end,
                Err(RunError::Protocol {
                    initialized: true,
                    ..
                })
            ),
            "{line}: {end:?}"
        );
    }
}

#[tokio::test]
async fn p16_failure_before_initialized_is_no_failure_frame() {
    let words = r#"{"version":"v1","id":"@","type":"failure","category":"incompatible"}\n"#;
    let (reason, _) = Run::words(["raw", words, "read"]).broken().await;
    assert!(!reason.is_empty());
}

#[tokio::test]
async fn p13_h3_one_byte_at_a_time_with_characters_split() {
    let mut run = Run::words([
        "drip",
        "init",
        "progress,text",
        "read",
        "progress",
        "1",
        "𝄞é",
        "result",
        "𝄞é",
    ]);
    assert_eq!(run.output().await, "𝄞é");
    assert_eq!(run.progress.len(), 1);
}

#[tokio::test]
async fn p14_ten_frames_in_one_write() {
    let mut all = String::new();
    for sequence in 1..=9 {
        all += &format!(
            r#"{{"version":"v1","id":"@","type":"progress","sequence":{sequence},"stage":"started","text":""}}\n"#
        );
    }
    all += r#"{"version":"v1","id":"@","type":"result","output":"ok"}\n"#;
    let mut run = Run::words(["init", "text,progress", "read", "raw", &all]);
    assert_eq!(run.output().await, "ok");
    assert_eq!(run.progress.len(), 9);
}

#[tokio::test]
async fn p15_a_second_frame_late_in_the_window() {
    for late in ["1", "100"] {
        let words = format!("init text read result ok sleep {late} result ok");
        let (reason, _) = Run::script(&words).broken().await;
        assert!(reason.contains("nothing may follow"), "{reason}");
    }
}

#[tokio::test]
async fn closes_its_output_and_stays() {
    let script = "exec 1>&-; exec sleep 60";
    let mut run = Run::argv(["/bin/sh", "-c", script]).timeout(600);
    run.command.env = vec![("PATH".into(), "/bin:/usr/bin".into())];
    // Under the wrapper nothing tells the host before the time limit; without it the end of
    // output does.
    assert!(run.end().await.is_err());
}

/// A plugin that never reads keeps its pipe full; what it writes decides.
#[tokio::test]
async fn r34_an_endless_flood_ends_at_the_budget() {
    let script = "while :; do echo x >&2; done";
    let (reason, _) = Run::argv(["/bin/sh", "-c", script])
        .output_bytes(50_000)
        .broken()
        .await;
    assert!(reason.contains("output limit"), "{reason}");
}
