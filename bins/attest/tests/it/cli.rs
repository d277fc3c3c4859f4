//! The command line itself: help, version, generated texts, names that other programs have.

use std::fs::OpenOptions;

use crate::bed::{Bed, ran};

#[test]
fn version_and_help() {
    let bed = Bed::new();
    let version = bed.attest(&["--version"]).expect(0);
    assert!(version.out.starts_with("attest "), "{}", version.out);
    let help = bed.attest(&["--help"]).expect(0).out;
    for needed in ["ATTEST_KEYS_DIR", "ATTEST_STATE_DIR", "Exit codes"] {
        assert!(help.contains(needed), "{needed} in {help}");
    }
    for line in help.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    bed.attest(&[]).expect(2);
    bed.attest(&["nonsense"]).expect(2).says("nonsense");
}

#[test]
fn completions_and_the_man_page_come_from_the_definition() {
    let bed = Bed::new();
    for kind in [
        "completion-bash",
        "completion-fish",
        "completion-zsh",
        "man",
    ] {
        let text = bed.attest(&["--generate", kind]).expect(0).out;
        assert!(text.contains("diff"), "{kind}");
        assert!(!text.contains("evidence"), "{kind}");
    }
}

#[test]
fn commands_of_other_programs_are_answered_in_a_line_and_hidden() {
    let bed = Bed::new();
    let help = bed.attest(&["--help"]).out;
    for name in ["trust", "evidence", "image", "identity"] {
        for more in [&[][..], &["show", "--help"], &["x", "-v", "--key", "k"]] {
            let args: Vec<&str> = [name].iter().chain(more).copied().collect();
            let ran = bed.attest(&args).expect(2);
            assert_eq!(ran.out, "");
            assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
            assert!(ran.err.contains(&format!("`{name}`")), "{}", ran.err);
        }
        let listed = help.lines().any(|line| line.trim().starts_with(name));
        assert!(!listed, "{help}");
    }
    assert!(bed.names(".").is_empty());
}

#[test]
fn help_that_cannot_be_written_says_why() {
    let bed = Bed::new();
    for args in [&["--version"][..], &["--help"], &["run", "--help"]] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ran = ran(bed.program(args).stdout(full)).expect(2);
        assert!(
            ran.err
                .starts_with("error: cannot write to standard output\n"),
            "{args:?} {}",
            ran.err
        );
    }
}
