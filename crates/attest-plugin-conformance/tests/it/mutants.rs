//! Every fault is told by the scenarios that are about it, and by no other.

use attest_plugin_conformance::{Limits, Status, all};
use test_case::test_case;

use crate::support::{Found, impatient, mutant, named, run, script, short_grace, target, usual};

/// Runs everything and compares what failed and what warned.
fn judged(fault: &str, failed: &[&str], warned: &[&str]) -> Found {
    let found = run(mutant(fault), usual(), &[]);
    assert_eq!(named(&found, Status::Fail), failed, "{fault}: {found:#?}");
    assert_eq!(named(&found, Status::Warn), warned, "{fault}: {found:#?}");
    found
}

#[test_case("name-number", &["hello"])]
#[test_case("name-upper-case", &["hello"])]
#[test_case("name-33", &["hello"])]
#[test_case("name-varies", &["hello", "hello-unknown-fields"])]
#[test_case("no-version", &["hello"])]
#[test_case("version-257", &["hello"])]
#[test_case("protocol-text", &["hello", "hello-more-majors"])]
#[test_case("hooks-of-numbers", &["hello"])]
#[test_case("deterministic-text", &["determinism", "hello"])]
#[test_case("hello-v2", &["hello"])]
#[test_case("hello-duplicate-key", &["hello"])]
#[test_case("refuses-unknown-fields-of-hello", &["hello-unknown-fields"])]
#[test_case("wants-one-major", &["hello-more-majors"])]
#[test_case("claims-any-major", &["hello-other-major"])]
fn s62_a_wrong_handshake_is_caught(fault: &str, failed: &[&str]) {
    judged(fault, failed, &[]);
}

#[test_case("hello-id-2"; "of hello")]
#[test_case("wrong-id"; "the next one")]
#[test_case("text-id"; "as a text")]
#[test_case("float-id"; "as a fraction")]
#[test_case("forgets-large-ids"; "after a gap")]
#[test_case("dies-after-50"; "after fifty")]
fn s6_a_wrong_id_is_caught(fault: &str) {
    judged(fault, &["ids"], &[]);
}

#[test_case("other-kind", &["pipeline-validate", "unknown-fields"])]
#[test_case("verdict-v2", &["step-pre"])]
#[test_case("unknown-decision", &["step-pre"])]
#[test_case("findings-object", &["step-pre"])]
#[test_case("null-resource", &["step-pre"])]
#[test_case("list-annotation", &["step-pre"])]
#[test_case("duplicate-key", &["step-pre"])]
#[test_case("unknown-severity", &["step-post"])]
#[test_case("null-annotation", &["receipt-finalize"])]
fn s64_a_wrong_verdict_is_caught_at_its_hook(fault: &str, failed: &[&str]) {
    judged(fault, failed, &[]);
}

#[test_case("findings-257", "at most 256 findings, got 257")]
#[test_case("rule-257", "at most 256 bytes of `findings[0].rule`, got 257")]
#[test_case("resource-257", "at most 256 bytes of `findings[0].resource`, got 257")]
#[test_case(
    "message-4097",
    "at most 4096 bytes of `findings[0].message`, got 4097"
)]
#[test_case("annotation-65537", "at most 65536 bytes of an annotation, got 65537")]
#[test_case("annotation-depth-65", "at most 64 levels of an annotation, got 65")]
#[test_case("answer-over-1-mib", "at most 1048576 bytes of a message")]
fn s64_a_limit_that_is_passed_is_caught(fault: &str, reason: &str) {
    let found = judged(fault, &["verdict-limits"], &[]);
    let told = &found["verdict-limits"].1;
    assert!(told.contains(reason), "{told}");
}

#[test_case("small-buffer", &["large-request"])]
#[test_case("refuses-unknown-fields", &["unknown-fields"])]
#[test_case("obeys-unknown-fields", &["unknown-fields"])]
#[test_case("dies-on-unknown-kinds", &["unknown-kinds"])]
#[test_case("answers-unknown-kinds-oddly", &["unknown-kinds"])]
fn s4_s6_s11_a_reader_that_takes_too_little_is_caught(fault: &str, failed: &[&str]) {
    let found = judged(fault, failed, &[]);
    if let Some((Status::Fail, reason)) = found.get("unknown-kinds") {
        let begin = "after a request of an unknown kind: expected ";
        assert!(reason.starts_with(begin), "{reason}");
    }
}

#[test]
fn s4_a_reader_that_takes_what_is_there_for_a_message_is_caught() {
    // What is there when two messages are under way is a matter of luck.
    let only = ["large-request", "split-writes", "step-pre"];
    let found = run(mutant("reads-once"), usual(), &only);
    assert_eq!(
        named(&found, Status::Fail),
        ["large-request", "split-writes"]
    );
}

#[test_case("debug-output", &["stdout-only"])]
#[test_case("says-goodbye", &["stdout-only"])]
#[test_case("half-a-line", &["stdout-only"])]
#[test_case("pretty", &["compact-lines"])]
#[test_case("spaced", &["compact-lines"])]
#[test_case("crlf", &["compact-lines"])]
#[test_case("two-lines", &["unsolicited"])]
#[test_case("answers-shutdown", &["unsolicited"])]
fn s4_s5_what_does_not_belong_on_stdout_is_caught(fault: &str, failed: &[&str]) {
    judged(fault, failed, &[]);
}

#[test]
fn s4_a_banner_is_caught_also_where_nothing_may_be_said() {
    judged("banner", &["stdout-only"], &["request-before-hello"]);
}

#[test]
fn s5_a_line_that_comes_late_by_itself_is_caught() {
    let found = run(mutant("speaks-up"), Limits::default(), &["unsolicited"]);
    assert_eq!(named(&found, Status::Fail), ["unsolicited"], "{found:#?}");
    assert!(found["unsolicited"].1.contains("got also"), "{found:#?}");
}

#[test_case("counts", "in one process")]
#[test_case("changes-its-mind", "in one process")]
#[test_case("tells-the-process", "in another process")]
#[test_case("tells-the-folder", "in another process")]
#[test_case("tells-the-time", "in another process")]
fn s9_a_plugin_that_is_not_as_deterministic_as_it_says_is_caught(fault: &str, when: &str) {
    let found = judged(fault, &["determinism"], &[]);
    assert!(found["determinism"].1.contains(when), "{found:#?}");
}

#[test]
fn s9_a_plugin_that_says_it_is_not_deterministic_may_change_its_answers() {
    let found = judged("counts-and-says-so", &[], &[]);
    assert_eq!(found["determinism"].0, Status::Skip);
}

#[test_case("leaves-with-3", &["shutdown", "shutdown-at-once"])]
#[test_case("leaves-with-1-if-never-asked", &["shutdown-at-once"])]
#[test_case("leaves-a-child", &["descendants"])]
#[test_case("leaves-a-child-with-stdout", &["descendants", "shutdown"])]
fn s5_a_wrong_end_is_caught(fault: &str, failed: &[&str]) {
    judged(fault, failed, &[]);
}

#[test_case("ignores-shutdown", &["shutdown", "shutdown-at-once"])]
#[test_case("outlives-input", &["end-of-input"])]
fn s5_a_plugin_that_stays_is_caught_and_ended(fault: &str, failed: &[&str]) {
    let only = ["shutdown", "shutdown-at-once", "end-of-input"];
    let found = run(mutant(fault), short_grace(), failed);
    assert_eq!(named(&found, Status::Fail), failed, "{found:#?}");
    let others: Vec<&str> = only
        .into_iter()
        .filter(|name| !failed.contains(name))
        .collect();
    let found = run(mutant(fault), usual(), &others);
    assert_eq!(
        named(&found, Status::Pass).len(),
        others.len(),
        "{found:#?}"
    );
}

#[test]
fn s5_a_plugin_that_ignores_sigterm_is_warned_of() {
    let found = run(mutant("ignores-sigterm"), short_grace(), &["terminate"]);
    assert_eq!(named(&found, Status::Warn), ["terminate"], "{found:#?}");
    let found = run(
        mutant("ignores-sigterm"),
        usual(),
        &["shutdown", "end-of-input"],
    );
    assert_eq!(named(&found, Status::Pass).len(), 2, "{found:#?}");
}

#[test]
fn s5_a_late_answer_is_caught_at_its_hook() {
    let found = run(mutant("late-at-step-post"), impatient(), &["step-post"]);
    assert!(found["step-post"].1.ends_with("within 400ms, got none"));
    assert_eq!(found["step-post"].0, Status::Fail);
    let others = ["hello", "step-pre", "receipt-finalize"];
    let found = run(mutant("late-at-step-post"), usual(), &others);
    assert_eq!(
        named(&found, Status::Pass).len(),
        others.len(),
        "{found:#?}"
    );
}

#[test_case("never-answers-hello", "got none; a plugin flushes each line"; "silent")]
#[test_case("ends-at-once", "it ended"; "gone")]
fn s52_a_plugin_that_never_begins_fails_every_scenario(fault: &str, told: &str) {
    let found = run(mutant(fault), impatient(), &[]);
    assert_eq!(named(&found, Status::Fail).len(), all().count());
    let why = |name| found.get(name).map_or("", |(_, reason)| reason);
    assert!(why("hello").starts_with("expected an answer to `hello`"));
    assert!(why("hello").contains(told), "{}", why("hello"));
    assert!(why("ids").starts_with("it does not begin"));
    assert!(why("environment").ends_with("`--workspace DIR` names another"));
}

#[test]
fn s52_a_silent_plugin_is_waited_for_once() {
    let folder = tempfile::tempdir().unwrap();
    let starts = folder.path().join("starts");
    let text = format!(
        "#!/bin/sh\necho start >>'{}'\nexec sleep 600\n",
        starts.display()
    );
    let plugin = script(folder.path(), "silent", &text);
    let found = run(target(&plugin), impatient(), &["hello", "environment"]);
    assert_eq!(named(&found, Status::Fail), ["environment", "hello"]);
    // None if it was ended before its first command.
    let starts = std::fs::read_to_string(starts).unwrap_or_default();
    assert!(starts.lines().count() <= 1, "{starts}");
}

#[test]
fn s31_a_plugin_without_hooks_fails_whatever_needs_one() {
    let found = run(mutant("no-hooks"), usual(), &["hooks", "ids", "hello"]);
    assert_eq!(named(&found, Status::Fail), ["hooks", "ids"]);
    assert_eq!(named(&found, Status::Pass), ["hello"]);
}

#[test]
fn s41_a_plugin_that_needs_more_variables_is_told_which() {
    let found = run(mutant("needs-home"), usual(), &["environment", "hello"]);
    assert_eq!(named(&found, Status::Fail), ["environment", "hello"]);
    assert!(
        found["environment"].1.contains("declare `HOME`"),
        "{found:#?}"
    );
    let mut target = mutant("needs-home");
    target.env.push(("HOME".to_owned(), "/nowhere".to_owned()));
    let found = run(target, usual(), &["environment", "hello"]);
    assert_eq!(named(&found, Status::Pass), ["environment", "hello"]);
}

#[test]
fn s62_another_name_than_the_declared_one_is_caught() {
    let mut target = mutant("");
    target.name = Some("policy".parse().unwrap());
    let found = run(target, usual(), &["hello", "ids"]);
    assert_eq!(named(&found, Status::Fail), ["hello"]);
    assert!(found["hello"].1.contains("declared name `policy`"));
}

#[test_case("accepts-duplicate-keys", &["duplicate-keys"])]
#[test_case("accepts-invalid-utf8", &["invalid-utf8"])]
#[test_case("accepts-unterminated", &["unterminated-request"])]
#[test_case("accepts-oversized", &["oversized-request"])]
#[test_case("accepts-v2", &["other-version"])]
#[test_case("accepts-before-hello", &["request-before-hello"])]
#[test_case("noise-on-garbage", &["duplicate-keys", "invalid-utf8", "not-json"])]
#[test_case("ignores-the-offer", &["hello-other-major"])]
#[test_case("leaves-other-majors-in-peace", &["hello-other-major"])]
#[test_case("unknown-hook", &["hooks"])]
#[test_case("hook-twice", &["hooks"])]
#[test_case("no-version-to-tell", &["hello"])]
fn what_is_unwise_is_a_warning(fault: &str, warned: &[&str]) {
    judged(fault, &[], warned);
}

#[test]
fn s4_a_verdict_for_what_is_no_json_is_caught() {
    let found = run(mutant("answers-garbage"), usual(), &["not-json"]);
    assert_eq!(named(&found, Status::Fail), ["not-json"], "{found:#?}");
}

#[test]
fn s62_a_major_that_was_not_offered_is_caught() {
    let found = run(
        mutant("claims-two"),
        usual(),
        &["hello", "hello-more-majors"],
    );
    assert_eq!(found["hello"].0, Status::Fail);
    assert_eq!(found["hello-more-majors"].0, Status::Skip);
}
