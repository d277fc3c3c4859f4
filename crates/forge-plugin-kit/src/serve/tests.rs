//! Whole sessions over pipes in memory: what the host would read, to the byte.

use std::io::{PipeWriter, pipe};
use std::sync::Mutex;
use std::time::Instant;

use super::*;
use crate::Stage;

const ID: &str = "0123456789abcdef0123456789abcdef";

/// An output that can be read while the session runs.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'), "{text}");
        text.lines().map(str::to_owned).collect()
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn frame(kind: &str, rest: &str) -> String {
    format!("{{\"version\":\"v1\",\"id\":\"{ID}\",\"type\":\"{kind}\"{rest}}}\n")
}

fn initialize(offer: &str) -> String {
    let limits = "{\"frame_bytes\":1048576,\"progress_frames\":128,\"text_bytes\":65536,\"progress_text_bytes\":1024,\"commit_subject_bytes\":256}";
    let offer: Vec<String> = offer.split(' ').map(|one| format!("\"{one}\"")).collect();
    frame(
        "initialize",
        &format!(
            ",\"capabilities\":[{}],\"limits\":{limits}",
            offer.join(",")
        ),
    )
}

fn execute_text(input: &str) -> String {
    frame(
        "execute",
        &format!(",\"operation\":\"text\",\"input\":\"{input}\""),
    )
}

fn execute_edit() -> String {
    frame(
        "execute",
        ",\"operation\":\"workspace_edit\",\"workspace\":\"/work\",\"instruction\":\"edit\",\"timeout_ms\":1500",
    )
}

/// Runs a session whose host writes everything at once and closes.
fn session(plugin: Plugin, wire: &str) -> (Result<(), ServeError>, Vec<String>) {
    let output = Sink::default();
    let served = plugin.serve_on(
        io::Cursor::new(wire.to_owned().into_bytes()),
        output.clone(),
    );
    (served, output.lines())
}

/// Runs a session and returns its last frame without what all frames share.
fn answer(plugin: Plugin, wire: &str) -> String {
    let (served, lines) = session(plugin, wire);
    served.unwrap();
    assert_eq!(
        lines
            .iter()
            .filter(|line| line.contains("\"type\":\"initialized\""))
            .count(),
        1
    );
    let last = lines.last().unwrap();
    last.strip_prefix(&format!("{{\"version\":\"v1\",\"id\":\"{ID}\",\"type\":"))
        .unwrap()
        .to_owned()
}

fn text(
    handler: impl FnOnce(String, &Context) -> Result<String, Failure> + Send + 'static,
) -> Plugin {
    Plugin::new("test").text(handler)
}

#[test]
fn a_text_session_is_exact_to_the_byte() {
    let plugin = text(|input, _| Ok(input.to_uppercase()));
    let (served, lines) = session(plugin, &(initialize("text") + &execute_text("hello")));
    served.unwrap();
    assert_eq!(
        lines,
        [
            frame("initialized", ",\"capabilities\":[\"text\"]").trim_end(),
            frame("result", ",\"output\":\"HELLO\"").trim_end(),
        ]
    );
}

#[test]
fn the_selection_is_what_both_know_in_the_plugins_order() {
    let initialized = |plugin: Plugin, offer: &str, execute: &str| {
        let (served, lines) = session(plugin, &(initialize(offer) + execute));
        served.unwrap();
        let (_, rest) = lines[0].split_once("\"capabilities\":").unwrap();
        rest.to_owned()
    };
    let edit = || Plugin::new("test").workspace(|_, _| Ok(Edit::new()));
    assert_eq!(
        initialized(
            edit(),
            "agent_report commit_subject cancel progress workspace_edit text",
            &execute_edit()
        ),
        "[\"workspace_edit\",\"progress\",\"cancel\",\"commit_subject\",\"agent_report\"]}"
    );
    assert_eq!(
        initialized(edit(), "workspace_edit cancel", &execute_edit()),
        "[\"workspace_edit\",\"cancel\"]}"
    );
    let narrow = edit().features([
        Capability::CommitSubject,
        Capability::Text,
        Capability::Progress,
    ]);
    assert_eq!(
        initialized(
            narrow,
            "workspace_edit progress cancel commit_subject agent_report",
            &execute_edit()
        ),
        "[\"workspace_edit\",\"commit_subject\",\"progress\"]}"
    );
    let all = "agent_report commit_subject cancel progress workspace_edit text";
    assert_eq!(
        initialized(text(|input, _| Ok(input)), all, &execute_text("x")),
        "[\"text\",\"progress\",\"cancel\"]}"
    );
}

#[test]
fn an_offer_without_a_supported_operation_gets_no_answer() {
    let (served, lines) = session(
        text(|input, _| Ok(input)),
        &(initialize("workspace_edit") + &execute_edit()),
    );
    assert!(matches!(served, Err(ServeError::Protocol(_))));
    assert_eq!(lines, [""; 0]);
    assert!(matches!(
        session(Plugin::new("test"), "").0,
        Err(ServeError::Capabilities(_))
    ));
}

#[test]
fn failures_errors_and_panics_are_answered() {
    let wire = initialize("text") + &execute_text("x");
    let failed =
        |handler: fn(String, &Context) -> Result<String, Failure>| answer(text(handler), &wire);
    assert_eq!(
        failed(|_, _| Err(Failure::invalid_request("no"))),
        "\"failure\",\"category\":\"invalid_request\"}"
    );
    assert_eq!(
        failed(|_, _| Err(Failure::incompatible("no"))),
        "\"failure\",\"category\":\"incompatible\"}"
    );
    assert_eq!(
        failed(|_, _| Err(Failure::cancelled())),
        "\"failure\",\"category\":\"cancelled\"}"
    );
    assert_eq!(
        failed(|_, _| Err(io::Error::other("disk on fire").into())),
        "\"failure\",\"category\":\"execution_failed\"}"
    );
    assert_eq!(
        failed(|_, _| panic!("expected by the test")),
        "\"failure\",\"category\":\"execution_failed\"}"
    );
}

#[test]
fn a_result_of_65536_bytes_passes_and_one_more_fails() {
    let of = |bytes: usize| {
        answer(
            text(move |_, _| Ok("x".repeat(bytes))),
            &(initialize("text") + &execute_text("")),
        )
    };
    assert_eq!(
        of(65_536),
        format!("\"result\",\"output\":\"{}\"}}", "x".repeat(65_536))
    );
    assert_eq!(of(65_537), "\"failure\",\"category\":\"execution_failed\"}");
}

#[test]
fn subject_and_report_are_sent_only_where_selected() {
    let edit = |offer: &str, edit: Edit| {
        let plugin = Plugin::new("test").workspace(move |task, _| {
            assert_eq!(task.workspace.to_str(), Some("/work"));
            assert_eq!(
                (task.instruction.as_str(), task.timeout),
                ("edit", Duration::from_millis(1_500))
            );
            Ok(edit)
        });
        answer(plugin, &(initialize(offer) + &execute_edit()))
    };
    let full = || {
        Edit::new()
            .commit_subject("feat: x")
            .report("done", ["one", "two"])
    };
    assert_eq!(
        edit("workspace_edit commit_subject agent_report", full()),
        "\"result\",\"commit_subject\":\"feat: x\",\"summary\":\"done\",\"changes\":[\"one\",\"two\"]}"
    );
    assert_eq!(
        edit("workspace_edit commit_subject", full()),
        "\"result\",\"commit_subject\":\"feat: x\"}"
    );
    assert_eq!(edit("workspace_edit", full()), "\"result\"}");
    assert_eq!(
        edit("workspace_edit commit_subject agent_report", Edit::new()),
        "\"result\"}"
    );
    let failed = "\"failure\",\"category\":\"execution_failed\"}";
    assert_eq!(
        edit(
            "workspace_edit commit_subject",
            Edit::new().commit_subject(" x")
        ),
        failed
    );
    assert_eq!(
        edit(
            "workspace_edit agent_report",
            Edit::new().report("s", [""; 0])
        ),
        failed
    );
    assert_eq!(
        edit(
            "workspace_edit agent_report",
            Edit::new().report("s", ["c"; 13])
        ),
        failed
    );
}

#[test]
fn a_broken_execute_gets_initialized_and_no_handler() {
    let plugin = text(|_, _| panic!("must not be called"));
    let (served, lines) = session(
        plugin,
        &(initialize("text") + &execute_text("x").replace("\"input\"", "\"inputs\"")),
    );
    assert!(matches!(served, Err(ServeError::Protocol(_))));
    assert_eq!(lines.len(), 1);
    let (served, lines) = session(
        text(|_, _| panic!("must not be called")),
        &initialize("text"),
    );
    assert!(
        matches!(served, Err(ServeError::Protocol(_))),
        "the end of input before execute"
    );
    assert_eq!(lines.len(), 1);
}

#[test]
fn a_session_comes_in_pieces_of_any_size() {
    struct Dripping(io::Cursor<Vec<u8>>);
    impl Read for Dripping {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read(&mut buffer[..1])
        }
    }
    let output = Sink::default();
    let wire = initialize("text") + &execute_text("größe");
    let input = Dripping(io::Cursor::new(wire.into_bytes()));
    text(|input, _| Ok(input))
        .serve_on(input, output.clone())
        .unwrap();
    assert!(output.lines()[1].ends_with("\"output\":\"größe\"}"));
}

#[test]
fn progress_from_many_threads_is_consecutive_bounded_and_ends_with_the_result() {
    let (sender, kept) = mpsc::channel();
    let plugin = text(move |_, context| {
        let sent: usize = thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        (0..50)
                            .filter(|_| context.progress(Stage::Working, "step"))
                            .count()
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum()
        });
        assert_eq!(sent, 128);
        sender.send(context.clone()).unwrap();
        Ok(String::new())
    });
    let output = Sink::default();
    let wire = initialize("text progress") + &execute_text("x");
    plugin
        .serve_on(io::Cursor::new(wire.into_bytes()), output.clone())
        .unwrap();
    let lines = output.lines();
    assert_eq!(lines.len(), 1 + 128 + 1);
    for (index, line) in lines[1..=128].iter().enumerate() {
        assert!(
            line.contains(&format!("\"sequence\":{},", index + 1)),
            "{line}"
        );
    }
    let context = kept.recv().unwrap();
    assert!(!context.progress(Stage::Finalizing, "too late"));
    assert_eq!(output.lines().len(), lines.len());
}

#[test]
fn progress_text_is_cut_between_characters() {
    let plugin = text(|_, context| {
        assert!(context.progress(Stage::Started, &"€".repeat(400)));
        Ok(String::new())
    });
    let output = Sink::default();
    let wire = initialize("text progress") + &execute_text("x");
    plugin
        .serve_on(io::Cursor::new(wire.into_bytes()), output.clone())
        .unwrap();
    assert!(output.lines()[1].ends_with(&format!("\"text\":\"{}\"}}", "€".repeat(341))));
}

#[test]
fn progress_that_was_not_negotiated_is_not_sent() {
    let plugin = text(|_, context| {
        assert!(!context.selected(Capability::Progress));
        assert!(!context.progress(Stage::Started, "x"));
        Ok(String::new())
    });
    let (served, lines) = session(plugin, &(initialize("text") + &execute_text("x")));
    served.unwrap();
    assert_eq!(lines.len(), 2);
}

/// A session whose host keeps the input open; what it says later goes to the handler's token.
struct Live {
    host: PipeWriter,
    output: Sink,
    session: thread::JoinHandle<Result<(), ServeError>>,
}

fn live(plugin: Plugin) -> Live {
    let (input, mut host) = pipe().unwrap();
    let output = Sink::default();
    host.write_all((initialize("text cancel") + &execute_text("x")).as_bytes())
        .unwrap();
    let session = thread::spawn({
        let output = output.clone();
        move || plugin.serve_on(input, output)
    });
    Live {
        host,
        output,
        session,
    }
}

impl Live {
    fn ends_with(mut self, wire: &str) -> (Result<(), ServeError>, Vec<String>) {
        self.host.write_all(wire.as_bytes()).unwrap();
        let served = self.session.join().unwrap();
        (served, self.output.lines())
    }
}

#[test]
fn a_cancelled_handler_answers_cancelled() {
    let stops = || {
        text(|_, context| {
            assert!(context.cancel().wait_timeout(Duration::from_secs(60)));
            Err(Failure::execution_failed("stopped half way"))
        })
    };
    let (served, lines) = live(stops()).ends_with(&frame("cancel", ""));
    served.unwrap();
    assert_eq!(
        lines[1],
        frame("failure", ",\"category\":\"cancelled\"").trim_end()
    );
    // The same when it comes in one piece with `execute`.
    let wire = initialize("text cancel") + &execute_text("x") + &frame("cancel", "");
    assert_eq!(
        answer(stops(), &wire),
        "\"failure\",\"category\":\"cancelled\"}"
    );
}

#[test]
fn a_result_under_way_survives_a_cancellation() {
    let plugin = text(|_, context| {
        assert!(context.cancel().wait_timeout(Duration::from_secs(60)));
        Ok("done".to_owned())
    });
    let (served, lines) = live(plugin).ends_with(&frame("cancel", ""));
    served.unwrap();
    assert_eq!(lines[1], frame("result", ",\"output\":\"done\"").trim_end());
    // The end of the input behind it cuts nothing short.
    let (release, held) = mpsc::channel::<()>();
    let plugin = text(move |_, context| {
        assert!(context.cancel().wait_timeout(Duration::from_secs(60)));
        assert!(held.recv_timeout(CANCEL_GRACE / 4).is_err());
        Ok("done".to_owned())
    });
    let wire = initialize("text cancel") + &execute_text("x") + &frame("cancel", "");
    assert_eq!(answer(plugin, &wire), "\"result\",\"output\":\"done\"}");
    drop(release);
}

#[test]
fn a_handler_that_does_not_stop_is_answered_for_in_time() {
    let (release, held) = mpsc::channel::<()>();
    let plugin = text(move |_, _| {
        assert!(held.recv().is_err(), "released by the end of the test");
        Ok(String::new())
    });
    let session = live(plugin);
    #[expect(
        clippy::disallowed_methods,
        reason = "the one test of the real time that an answer takes"
    )]
    let begin = Instant::now();
    let (served, lines) = session.ends_with(&frame("cancel", ""));
    served.unwrap();
    assert!(begin.elapsed() < CANCEL_GRACE + Duration::from_secs(1));
    assert_eq!(
        lines[1],
        frame("failure", ",\"category\":\"cancelled\"").trim_end()
    );
    drop(release);
}

#[test]
fn anything_but_cancel_after_execute_breaks_the_session() {
    let waits = || {
        text(|_, context| {
            assert!(context.cancel().wait_timeout(Duration::from_secs(60)));
            Ok(String::new())
        })
    };
    for wire in [
        execute_text("again"),
        "\n".to_owned(),
        frame("cancel", ",\"reason\":\"x\""),
    ] {
        let (served, lines) = live(waits()).ends_with(&wire);
        assert!(matches!(served, Err(ServeError::Protocol(_))), "{wire}");
        assert_eq!(lines.len(), 1, "nothing follows initialized");
    }
}

#[test]
fn the_end_of_input_before_the_answer_stops_the_handler() {
    let plugin = text(|_, context| {
        assert!(context.cancel().wait_timeout(Duration::from_secs(60)));
        Err(Failure::execution_failed("stopped half way"))
    });
    let Live {
        host,
        output,
        session,
    } = live(plugin);
    drop(host);
    session.join().unwrap().unwrap();
    assert_eq!(
        output.lines()[1],
        frame("failure", ",\"category\":\"execution_failed\"").trim_end(),
        "nobody has sent `cancel`"
    );
    // One that has its result is not told to throw it away.
    let plugin = text(|_, context| {
        assert!(context.cancel().wait_timeout(Duration::from_secs(60)));
        Ok("done".to_owned())
    });
    let Live {
        host,
        output,
        session,
    } = live(plugin);
    drop(host);
    session.join().unwrap().unwrap();
    assert_eq!(
        output.lines()[1],
        frame("result", ",\"output\":\"done\"").trim_end()
    );
}

#[test]
fn without_cancel_the_end_of_input_is_not_noticed() {
    let plugin = text(|_, context| {
        assert!(!context.cancel().wait_timeout(Duration::from_millis(50)));
        Ok("done".to_owned())
    });
    let (served, lines) = session(plugin, &(initialize("text") + &execute_text("x")));
    served.unwrap();
    assert_eq!(lines[1], frame("result", ",\"output\":\"done\"").trim_end());
}

#[test]
fn a_host_that_no_longer_reads_is_an_error() {
    struct Gone;
    impl Write for Gone {
        fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let served =
        text(|input, _| Ok(input)).serve_on(io::Cursor::new(initialize("text").into_bytes()), Gone);
    assert!(matches!(served, Err(ServeError::Write(_))));
}
