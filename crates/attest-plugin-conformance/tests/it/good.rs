//! Plugins that keep the rules pass, each in its own manner.

use std::path::Path;

use attest_plugin_conformance::{Status, all};
use test_case::test_case;

use crate::support::{Found, mutant, named, run, script, target, usual};

#[test_case(""; "good")]
#[test_case("says-little"; "only what must be there")]
#[test_case("denies"; "deny is an honest answer")]
#[test_case("at-every-limit"; "exactly at every limit")]
#[test_case("hello-unknown-field"; "unknown fields in hello_ok")]
#[test_case("unknown-fields-of-its-own"; "unknown fields in verdicts")]
#[test_case("answers-unknown-kinds"; "a verdict for unknown kinds")]
fn a_good_plugin_passes_every_scenario(manner: &str) {
    let found = run(mutant(manner), usual(), &[]);
    assert_eq!(
        named(&found, Status::Pass).len(),
        all().count(),
        "{found:#?}"
    );
}

#[test]
fn hooks_that_are_not_announced_are_skipped() {
    let found = run(mutant("one-hook"), usual(), &[]);
    let skipped = ["pipeline-validate", "step-post", "step-pre"];
    assert_eq!(named(&found, Status::Skip), skipped, "{found:#?}");
    assert_eq!(named(&found, Status::Fail), [""; 0], "{found:#?}");
}

#[test]
fn s41_a_plugin_is_told_the_name_that_it_has_or_was_declared_under() {
    let mut declared = mutant("name-of-the-environment");
    declared.name = Some("policy".parse().unwrap());
    for target in [declared, mutant("name-of-the-environment")] {
        let found = run(target, usual(), &["hello"]);
        assert_eq!(found["hello"].0, Status::Pass, "{found:#?}");
    }
}

/// The minimal plugin of the document is of this kind, and the document calls it conforming.
#[test]
fn s13_a_careless_plugin_in_shell_fails_nothing_and_is_told_what_is_unwise() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = script(
        folder.path(),
        "attest-careless",
        include_str!("careless.sh"),
    );
    let found = run(target(&plugin), usual(), &[]);
    assert_eq!(named(&found, Status::Fail), [""; 0], "{found:#?}");
    let unwise = [
        "duplicate-keys",
        "hello-other-major",
        "invalid-utf8",
        "not-json",
        "other-version",
        "oversized-request",
        "request-before-hello",
    ];
    assert_eq!(named(&found, Status::Warn), unwise, "{found:#?}");
}

/// Runs a plugin of the documentation.
fn example(name: &str) -> Found {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples");
    run(target(&examples.join(name)), usual(), &[])
}

#[test]
fn s13_the_minimal_plugin_of_the_documentation_fails_nothing() {
    let found = example("attest-noop.sh");
    assert_eq!(named(&found, Status::Fail), [""; 0], "{found:#?}");
}

#[test]
fn the_python_plugin_of_the_documentation_passes_without_a_warning() {
    let found = example("attest-plugin-1.py");
    assert_eq!(named(&found, Status::Fail), [""; 0], "{found:#?}");
    assert_eq!(named(&found, Status::Warn), [""; 0], "{found:#?}");
    let skipped = ["receipt-finalize", "step-post"];
    assert_eq!(named(&found, Status::Skip), skipped, "{found:#?}");
}
