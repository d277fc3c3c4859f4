//! Whole sessions, written at once and read to the end.

use std::io::Write;
use std::process::{Output, Stdio};

use test_case::test_case;

const ID: &str = "0123456789abcdef0123456789abcdef";

fn frame(kind: &str, rest: &str) -> String {
    format!("{{\"version\":\"v1\",\"id\":\"{ID}\",\"type\":\"{kind}\"{rest}}}\n")
}

fn initialize(capabilities: &str) -> String {
    let limits = "{\"frame_bytes\":1048576,\"progress_frames\":128,\"text_bytes\":65536,\"progress_text_bytes\":1024,\"commit_subject_bytes\":256}";
    frame(
        "initialize",
        &format!(",\"capabilities\":[{capabilities}],\"limits\":{limits}"),
    )
}

fn execute(input: &str) -> String {
    frame(
        "execute",
        &format!(",\"operation\":\"text\",\"input\":\"{input}\""),
    )
}

fn run(args: &[&str], wire: &str) -> Output {
    #[expect(
        clippy::disallowed_methods,
        reason = "a test drives the program as a host does"
    )]
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_forge-ref-plugin"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Everything fits into what the plugin reads before it writes more than a pipe holds.
    child
        .stdin
        .take()
        .unwrap()
        .write_all(wire.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

fn answer(wire: &str) -> String {
    let output = run(&[], wire);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    let initialized = frame("initialized", ",\"capabilities\":[\"text\"]");
    text.strip_prefix(&initialized).unwrap().to_owned()
}

#[test]
fn the_result_is_the_input_in_upper_case_after_a_prefix() {
    let wire = initialize("\"text\"") + &execute("größe <b> \\u2028");
    assert_eq!(
        answer(&wire),
        frame(
            "result",
            ",\"output\":\"FORGE: GRÖSSE \\u003cB\\u003e \\u2028\""
        )
    );
    let wire = initialize("\"text\"") + &execute("");
    assert_eq!(answer(&wire), frame("result", ",\"output\":\"FORGE: \""));
}

#[test]
fn a_result_of_65536_bytes_passes_and_one_more_is_a_failure() {
    let of = |bytes: usize| answer(&(initialize("\"text\"") + &execute(&"x".repeat(bytes))));
    assert_eq!(
        of(65_529),
        frame(
            "result",
            &format!(",\"output\":\"FORGE: {}\"", "X".repeat(65_529))
        )
    );
    assert_eq!(
        of(65_530),
        frame("failure", ",\"category\":\"execution_failed\"")
    );
}

#[test]
fn text_is_all_it_selects_of_what_is_not_for_text() {
    let offer = "\"agent_report\",\"commit_subject\",\"workspace_edit\",\"text\"";
    let output = run(&[], &(initialize(offer) + &execute("x")));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\"capabilities\":[\"text\"]}\n"), "{text}");
    assert!(
        text.ends_with(&frame("result", ",\"output\":\"FORGE: X\"")),
        "{text}"
    );
}

#[test_case(""; "nothing")]
#[test_case("\n"; "a_blank_line")]
#[test_case(&initialize("\"workspace_edit\""); "no_operation_of_its_own")]
#[test_case(&initialize(""); "no_capability_at_all")]
fn c01_a_broken_opening_gets_no_byte_and_exit_2(wire: &str) {
    let output = run(&[], wire);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(output.stdout, b"");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with("forge-ref-plugin: the host broke the protocol: "),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn an_argument_is_answered_without_a_session() {
    let output = run(&["--version"], "");
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout.starts_with(b"forge-ref-plugin "));
    assert_eq!(run(&["--bogus"], "").status.code(), Some(2));
    assert_eq!(run(&["operand"], "").status.code(), Some(2));
}
