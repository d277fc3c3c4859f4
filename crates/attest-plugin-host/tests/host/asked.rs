//! Questions and answers: table 8, the rows after the first question.

use std::time::Duration;

use attest_plugin_host::{Answer, OnFailure};
use attest_receipt::receipt::Decision;
use tokio::time::Instant;

use crate::support::{
    BOTH, Bench, GOOD, ask, ask_about, before, exists, goes, pid_in, record, runs,
};

/// The run fails under fail-closed. Under fail-open it goes on with a record, the plugin is killed
/// with its descendants and not asked again, and the others are.
async fn breaks(script: &str, reason: &str) {
    for mode in BOTH {
        let mut bench = Bench::new();
        let helper = "setsid sleep 1000 >&- & echo $! > helper\n";
        bench
            .add("p", &format!("echo $$ > pid\n{helper}{script}"))
            .on_failure = mode;
        let other = "hello\nwhile get; do echo $kind >> other; verdict allow; done";
        bench.add("q", other);
        let mut host = bench.host().await;
        let answer = ask(&mut host).await;
        broken(&bench, &mut host, mode, answer, reason).await;
    }
}

async fn broken(
    bench: &Bench,
    host: &mut attest_plugin_host::Host,
    mode: OnFailure,
    answer: Answer,
    reason: &str,
) {
    let records = host.records();
    assert_eq!(records[0].decision, Decision::Error);
    let said = records[0].reason.clone().unwrap();
    assert!(said.contains(reason), "{said}");
    assert!(
        bench.log.has(&format!("p: failed: {said}")),
        "{:?}",
        bench.log.lines()
    );
    assert!(!runs(pid_in(&bench.path("pid"))) && !runs(pid_in(&bench.path("helper"))));
    let asked_again = ask(host).await;
    match mode {
        OnFailure::FailClosed => {
            let plugin = "p".to_owned();
            assert_eq!(
                answer,
                Answer::Failed {
                    plugin,
                    reason: said
                }
            );
            assert_eq!(asked_again, answer, "nobody is asked any more");
            assert_eq!(host.records()[1].decision, Decision::Skipped);
        }
        OnFailure::FailOpen => {
            assert_eq!((answer, asked_again), (Answer::Go, Answer::Go));
            assert_eq!(host.records()[1].decision, Decision::Allow);
            let asked = std::fs::read_to_string(bench.path("other")).unwrap();
            assert_eq!(asked, "step.pre\nstep.pre\n");
        }
    }
    host.shutdown().await;
}

fn answers(line: &str) -> String {
    format!("hello\nget\nprintf '%s\\n' '{line}'\nget\n")
}

#[tokio::test]
async fn t8_no_answer_in_time() {
    for mode in BOTH {
        let mut bench = Bench::new();
        let script =
            "echo $$ > pid\nsleep 1000 & echo $! > helper\nhello\nget\ntouch asked\nsleep 100\n";
        bench.add("p", script).on_failure = mode;
        bench.add(
            "q",
            "hello\nwhile get; do echo $kind >> other; verdict allow; done",
        );
        let mut host = bench.host().await;
        let limit = Duration::from_secs(30);
        let answer = bench.once("asked", limit, ask(&mut host)).await;
        broken(
            &bench,
            &mut host,
            mode,
            answer,
            "no answer to step.pre within 30 s",
        )
        .await;
    }
}

/// The real clock: the limit and a second.
#[tokio::test]
async fn t8_a_time_limit_is_kept_in_real_time() {
    let mut bench = Bench::of("hello\nget\nsleep 100", OnFailure::FailClosed);
    bench.plugins.plugins[0].timeout = Duration::from_secs(1);
    let mut host = bench.host().await;
    let since = Instant::now();
    let answer = ask(&mut host).await;
    assert!(matches!(answer, Answer::Failed { .. }), "{answer:?}");
    let took = since.elapsed();
    assert!(took >= Duration::from_secs(1), "{took:?}");
    assert!(took < Duration::from_secs(2), "{took:?}");
}

/// The plugin gets the answer out after the limit, before it can be killed.
#[tokio::test]
async fn t8_a_late_answer_changes_nothing() {
    for mode in BOTH {
        let script = "hello\nget\ntrap '' TERM\ntouch asked\nwhile ! [ -e late ]; do :; done\nverdict deny\nget";
        let bench = Bench::of(script, mode);
        let mut host = bench.host().await;
        let answer = bench
            .once("asked", Duration::from_secs(30), ask(&mut host))
            .await;
        std::fs::write(bench.path("late"), "").unwrap();
        assert!(!matches!(answer, Answer::Denied { .. }), "{answer:?}");
        let again = ask(&mut host).await;
        assert!(!matches!(again, Answer::Denied { .. }), "{again:?}");
        host.shutdown().await;
        assert_eq!(record(&host).decision, Decision::Error);
    }
}

#[tokio::test]
async fn t8_an_end_before_the_answer() {
    breaks("hello\nget\nexit 5", "exit code 5").await;
    breaks("hello\nget\nexit 0", "exit code 0").await;
    breaks("hello\nget\nkill -9 $$", "signal 9").await;
}

#[tokio::test]
async fn t8_an_end_before_the_question() {
    // It is gone before it is asked; nobody waits for the limit.
    for mode in BOTH {
        let bench = Bench::of("echo $$ > pid\nhello\nexit 4", mode);
        let mut host = bench.host().await;
        exists(&bench.path("pid")).await;
        assert!(goes(pid_in(&bench.path("pid"))).await);
        ask(&mut host).await;
        let reason = record(&host).reason.unwrap();
        assert!(reason.contains("exit code 4"), "{reason}");
    }
}

#[tokio::test]
async fn t8_a_closed_stdout() {
    breaks("hello\nget\nexec >&-\nsleep 100", "closed stdout").await;
}

#[tokio::test]
async fn t8_half_an_answer() {
    breaks("hello\nget\nprintf '{\"v\":1,'\nexit 0", "inside a line").await;
}

#[tokio::test]
async fn t8_lines_that_are_no_message() {
    for line in ["allow", "", "[]", "{", "{} {}", "\"verdict\"", "null"] {
        breaks(&answers(line), "a line is not one JSON object").await;
    }
}

#[tokio::test]
async fn t8_wrong_fields() {
    for (fields, reason) in [
        (
            r#""v":1,"id":3,"kind":"verdict","decision":"allow""#,
            "`id` must be 2",
        ),
        (
            r#""v":1,"id":1,"kind":"verdict","decision":"allow""#,
            "`id` must be 2",
        ),
        (
            r#""v":1,"id":"2","kind":"verdict","decision":"allow""#,
            "`id`",
        ),
        (
            r#""v":1,"kind":"verdict","decision":"allow""#,
            "`id` is missing",
        ),
        (
            r#""v":1,"id":2,"id":2,"kind":"verdict","decision":"allow""#,
            "duplicate key `id`",
        ),
        (
            r#""v":2,"id":2,"kind":"verdict","decision":"allow""#,
            "`v` must be 1",
        ),
        (
            r#""v":1,"id":2,"kind":"hello_ok","decision":"allow""#,
            "kind `hello_ok`",
        ),
        (
            r#""v":1,"id":2,"kind":"answer","decision":"allow""#,
            "kind `answer`",
        ),
        (
            r#""v":1,"id":2,"kind":"verdict","decision":"maybe""#,
            "`maybe` is no decision; there are allow, warn, deny",
        ),
        (r#""v":1,"id":2,"kind":"verdict""#, "`decision` is missing"),
        (
            r#""v":1,"id":2,"kind":"verdict","decision":"allow","annotation":[]"#,
            "`annotation`",
        ),
        (
            r#""v":1,"id":2,"kind":"verdict","decision":"allow","annotation":null"#,
            "`annotation`",
        ),
    ] {
        breaks(&answers(&format!("{{{fields}}}")), reason).await;
    }
}

/// So many of a character, by programs that any system has.
fn many(count: u32, character: &str) -> String {
    format!("$(yes {character} | head -n {count} | tr -d '\\n')")
}

#[tokio::test]
async fn t8_answers_beyond_the_limits() {
    let quoted = |json: &str| json.replace('"', "\\\"");
    let finding = |rule: &str, resource: &str| {
        let rest = r#""severity":"low","message":"m""#;
        format!(r#"{{"rule":"{rule}","resource":"{resource}",{rest}}}"#)
    };
    let one = finding("r", "s");
    let findings = format!(r#","findings":[{},{one}]"#, "MANY");
    let findings = quoted(&findings).replace(
        "MANY",
        &format!("$(yes '{one}' | head -n 256 | tr '\\n' ',' | sed 's/,$//')"),
    );
    let (long, longer) = (many(257, "a"), many(65_536, "a"));
    for (fields, reason) in [
        (findings, "more than 256 findings"),
        (
            quoted(&format!(r#","findings":[{}]"#, finding(&long, "s"))),
            "`rule` has at most 256",
        ),
        (
            quoted(&format!(r#","findings":[{}]"#, finding("r", &long))),
            "`resource` has at most 256",
        ),
        (
            quoted(&format!(r#","annotation":{{"a":"{longer}"}}"#)),
            "at most 65536 bytes",
        ),
    ] {
        let script = format!("hello\nget\nverdict allow \"{fields}\"\nget");
        breaks(&script, reason).await;
    }
}

#[tokio::test]
async fn t8_more_than_a_mebibyte_without_an_end() {
    breaks(
        "hello\nget\nhead -c 1048577 /dev/zero | tr '\\0' ' '\nget",
        "longer than 1048576 bytes",
    )
    .await;
}

#[tokio::test]
async fn t8_two_answers_to_one_question() {
    breaks(
        "hello\nget\nlate=$(verdict allow)\necho \"$late\n$late\"\nget",
        "while no request was open",
    )
    .await;
}

#[tokio::test]
async fn t8_a_line_without_a_question() {
    for mode in BOTH {
        let bench = Bench::of(
            "hello\nget\nverdict allow\nuntil [ -e go ]; do sleep 0.01; done\necho hi\ntouch said\nget",
            mode,
        );
        let mut host = bench.host().await;
        assert_eq!(ask(&mut host).await, Answer::Go);
        std::fs::write(bench.path("go"), "").unwrap();
        exists(&bench.path("said")).await;
        ask(&mut host).await;
        let record = record(&host);
        assert_eq!(
            record.decision,
            Decision::Error,
            "it replaces the earlier decision"
        );
        assert!(record.reason.unwrap().contains("protocol violation"));
    }
}

#[tokio::test]
async fn t8_a_question_beyond_a_mebibyte_is_not_sent() {
    for mode in BOTH {
        let script = "hello\nwhile get; do echo $kind >> kinds; verdict allow; done";
        let bench = Bench::of(script, mode);
        let mut host = bench.host().await;
        ask_about(&mut host, &"s".repeat(1_048_576)).await;
        assert_eq!(record(&host).reason.unwrap(), "request too large");
        assert!(!bench.path("kinds").exists());
    }
}

#[tokio::test]
async fn t8_a_denial_is_no_failure_in_either_mode() {
    for mode in BOTH {
        let mut bench = Bench::new();
        let findings = r#"',"findings":[{"rule":"no-net","severity":"high","message":"not here","resource":"step:x"}]'"#;
        let script = format!("hello\nget\nverdict deny {findings}\nget\necho $kind > last");
        bench.add("p", &script).on_failure = mode;
        bench.add("q", GOOD);
        let mut host = bench.host().await;
        let denied = Answer::Denied {
            plugin: "p".to_owned(),
            reason: "no-net (high): not here [step:x]".to_owned(),
        };
        assert_eq!(ask(&mut host).await, denied);
        // After a denial no further question goes to anybody.
        assert_eq!(ask(&mut host).await, denied);
        host.shutdown().await;
        let last = std::fs::read_to_string(bench.path("last")).unwrap();
        assert_eq!(last, "shutdown\n");
        let records = host.records();
        assert_eq!(records[0].decision, Decision::Deny);
        assert_eq!(
            (records[0].reason.as_ref(), records[1].decision),
            (None, Decision::Skipped)
        );
        assert!(bench.log.has("p: step.pre: deny"));
        assert!(bench.log.has("p: no-net (high): not here [step:x]"));
    }
}

#[tokio::test]
async fn a_denial_stands_whatever_else_is_said_with_it() {
    for mode in BOTH {
        let script = "hello\nget\nno=$(verdict deny)\nprintf '%s\\nmore\\n' \"$no\"\nget";
        let bench = Bench::of(script, mode);
        let mut host = bench.host().await;
        assert!(matches!(ask(&mut host).await, Answer::Denied { .. }));
        assert_eq!(record(&host).decision, Decision::Deny);
        host.shutdown().await;
    }
}

/// A thousand questions, each with the fields that only another version knows.
#[tokio::test]
async fn unknown_fields_are_ignored_and_ids_rise_by_one() {
    let script = "hello\nn=1\nwhile get; do\nn=$((n+1)); [ $id = $n ] || exit 1\nverdict allow ',\"extra\":{\"v\":null}'\ndone";
    let bench = Bench::of(script, OnFailure::FailClosed);
    let mut host = bench.host().await;
    for _ in 0..1_000 {
        assert_eq!(ask(&mut host).await, Answer::Go);
    }
    host.shutdown().await;
    assert_eq!(record(&host).decision, Decision::Allow);
}

#[tokio::test]
async fn plugins_are_asked_one_at_a_time_in_the_order_of_the_file() {
    let mut bench = Bench::new();
    for name in ["z", "a", "m"] {
        let script = format!(
            "hello\nget\necho {name} asked >> order\nsleep 0.1\necho {name} answers >> order\nverdict allow\nget"
        );
        bench.add(name, &script);
    }
    let mut host = bench.host().await;
    assert_eq!(ask(&mut host).await, Answer::Go);
    let order = std::fs::read_to_string(bench.path("order")).unwrap();
    let expected = "z asked\nz answers\na asked\na answers\nm asked\nm answers\n";
    assert_eq!(order, expected);
    host.shutdown().await;
}

/// It writes a mebibyte before it reads one: whoever wrote all before reading would hang.
#[tokio::test]
async fn a_plugin_that_does_not_read_while_it_writes_blocks_nobody() {
    let script = "hello\ndd bs=1 count=1 of=begun 2>&-\nhead -c 1048000 /dev/zero | tr '\\0' ' '\nget\nverdict allow\nget";
    let bench = Bench::of(script, OnFailure::FailClosed);
    let mut host = bench.host().await;
    let step = "s".repeat(400_000);
    let answer = ask_about(&mut host, &step).await;
    // Blanks before an answer belong to its line.
    assert_eq!(answer, Answer::Go);
    host.shutdown().await;
}

#[tokio::test]
async fn payloads_are_made_for_those_who_want_output_and_for_those_who_do_not() {
    let mut bench = Bench::new();
    for (name, wants) in [("a", true), ("b", false), ("c", true)] {
        let script = "hello\nget\nverdict allow\necho \"$line\" > seen-$ATTEST_PLUGIN_NAME\nget";
        let plugin = bench.add(name, script);
        plugin.wants_output = wants;
    }
    let mut host = bench.host().await;
    assert!(!host.wants_output(), "none of them is asked after a step");
    let mut made = Vec::new();
    let mut payload = |wants: bool| {
        made.push(wants);
        before(if wants { "full" } else { "plain" })
    };
    host.ask(attest_plugin_protocol::Hook::StepPre, &mut payload)
        .await;
    assert_eq!(made, [true, false]);
    host.shutdown().await;
    for (name, step) in [("a", "full"), ("b", "plain"), ("c", "full")] {
        let seen = std::fs::read_to_string(bench.path(&format!("seen-{name}"))).unwrap();
        assert!(seen.contains(step), "{seen}");
    }
}

#[tokio::test]
async fn a_cancelled_question_ends_at_once() {
    let bench = Bench::of(
        "hello\nget\necho $$ > pid\ntouch asked\nsleep 100",
        OnFailure::FailClosed,
    );
    let mut host = bench.host().await;
    let asked = bench.path("asked");
    let (answer, ()) = tokio::join!(ask(&mut host), async {
        exists(&asked).await;
        bench.cancel.cancel();
    });
    assert_eq!(answer, Answer::Cancelled);
    assert_eq!(ask(&mut host).await, Answer::Cancelled);
    let since = Instant::now();
    host.shutdown().await;
    // A second, and one for a loaded machine.
    assert!(since.elapsed() < Duration::from_secs(2));
    assert!(!runs(pid_in(&bench.path("pid"))));
}

#[tokio::test]
async fn a_question_that_was_given_up_leaves_no_plugin_to_ask() {
    let bench = Bench::of("hello\nget\ntouch asked\nsleep 100", OnFailure::FailClosed);
    let mut host = bench.host().await;
    let asked = bench.path("asked");
    tokio::select! {
        _ = ask(&mut host) => panic!("nobody answered"),
        () = exists(&asked) => {}
    }
    let again = ask(&mut host).await;
    assert!(matches!(again, Answer::Failed { .. }), "{again:?}");
}

/// Decision 47. The system tells of every opening.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn s12_rule_and_resource_are_never_opened_as_files() {
    use rustix::fs::inotify;

    let mut bench = Bench::new();
    let (file, fifo) = (bench.path("file"), bench.path("fifo"));
    std::fs::write(&file, "").unwrap();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let (shown, waits) = (file.display(), fifo.display());
    let finding = |rule, resource| {
        format!(
            r#"{{"rule":"{rule}","severity":"low","message":"{rule}","resource":"{resource}"}}"#
        )
    };
    let findings = format!("{},{}", finding(&shown, &waits), finding(&waits, &shown));
    let annotation = format!(r#"{{"file":"{shown}","fifo":"{waits}"}}"#);
    let fields = format!(r#"',"findings":[{findings}],"annotation":{annotation}'"#);
    bench.add("p", &format!("hello\nget\nverdict deny {fields}\nget"));

    let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
    for path in [&file, &fifo] {
        inotify::add_watch(&watch, path, inotify::WatchFlags::OPEN).unwrap();
    }
    let mut host = bench.host().await;
    let answer = ask(&mut host).await;
    assert!(matches!(answer, Answer::Denied { .. }), "{answer:?}");
    host.shutdown().await;
    assert_eq!(host.records()[0].decision, Decision::Deny);
    let mut events = [0; 1024];
    let none = rustix::io::read(&watch, &mut events);
    assert_eq!(
        none,
        Err(rustix::io::Errno::AGAIN),
        "nobody opened anything"
    );
    std::fs::read(&file).unwrap();
    assert!(
        rustix::io::read(&watch, &mut events).is_ok(),
        "the watch works"
    );
}
