//! The command line itself: help, version, generated texts, and what is said of wrong arguments.

use std::fs::OpenOptions;

use test_case::test_case;

use crate::bed::{Bed, ran, snapshot};

#[test]
fn version_and_help() {
    let bed = Bed::new();
    let version = bed.line("--version").expect(0);
    assert!(version.out.starts_with("backplane "), "{}", version.out);
    let help = bed.line("--help").expect(0).out;
    for needed in ["inspect", "unpack", "Exit codes"] {
        assert!(help.contains(needed), "{needed} in {help}");
    }
    bed.line("").expect(2);
    bed.line("nonsense").expect(2).says("nonsense");
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
        let text = bed.backplane(&["--generate", kind]).expect(0).out;
        assert!(text.contains("inspect"), "{kind}");
    }
}

#[test_case("inspect nope", "the directory of a package, or an archive that")]
#[test_case("diff nope nope", "the directory of a package, or an archive that")]
#[test_case("pack nope -o x", "the directory that holds `plugin.json`")]
#[test_case("unpack nope -o x", "an archive that `backplane pack` wrote")]
#[test_case("digest nope", "an archive that `backplane pack` wrote")]
#[test_case("digest file/nope", "an archive that `backplane pack` wrote")]
fn what_is_not_there_gets_the_hint_that_its_command_needs(line: &str, hint: &str) {
    let bed = Bed::new();
    bed.write("file", "");
    bed.line(line)
        .expect(2)
        .says("nope` is not there")
        .says(&format!("\nhint: name {hint}"));
}

#[test_case("inspect", &["", "nope", "notes b", "notes --transports http", "pipe"])]
#[test_case("pack", &["", "notes", "nope -o x.tar.gz", "notes -o no/x.tar.gz", "notes -o notes/x.tar.gz", "p.tar.gz -o x.tar.gz", "notes -o p", "notes --format json -o -"])]
#[test_case("unpack", &["", "p.tar.gz", "nope -o out", "p.tar.gz -o notes", "p.tar.gz -o a/b/c", "p.tar.gz -o out --digest sha256:00", "notes -o out", "p.tar.gz -o p.tar.gz"])]
#[test_case("digest", &["", "nope", "notes", "p.tar.gz b", "pipe"])]
#[test_case("diff", &["", "notes", "notes nope", "notes notes notes", "notes notes --text"])]
#[test_case("init", &["notes", "x --name", "x --name A", "p.tar.gz", "x y", "X"])]
fn wrong_arguments_get_a_clear_line_and_a_hint(command: &str, lines: &[&str]) {
    let bed = Bed::with_package();
    bed.archive("p.tar.gz", &[("plugin.json", "{}")]);
    std::fs::create_dir(bed.path("p")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(bed.path("pipe"))
        .status();
    assert!(made.unwrap().success());
    let before = snapshot(bed.folder());
    for line in lines {
        let ran = bed.line(&format!("{command} {line}")).expect(2);
        assert_eq!(ran.out, "", "{line}");
        let first = ran.err.lines().next().unwrap();
        assert!(first.starts_with("error: "), "{line}: {}", ran.err);
        assert!(first.len() < 200, "{first}");
        let hint = ran.err.contains("\nhint: ") || ran.err.contains("try '--help'");
        assert!(hint, "{line}: {}", ran.err);
        assert_eq!(snapshot(bed.folder()), before, "{line}");
    }
}

#[test]
fn an_answer_that_cannot_be_written_says_why() {
    let bed = Bed::with_package();
    for args in [&["inspect", "notes"][..], &["diff", "notes", "notes"]] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        ran(bed.program(args).stdout(full))
            .expect(2)
            .says("error: cannot write to standard output\n");
    }
}
