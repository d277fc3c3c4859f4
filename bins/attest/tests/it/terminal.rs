//! What a run shows on a terminal while it goes on, and what it shows nowhere else.

use std::process::Command;

use crate::bed::{Bed, Ran, ran};
use crate::plugin::{self, ALL, Plugin};

/// A spinner comes when something takes longer than a second.
const SLOW: &str =
    "version: \"1\"\nsteps:\n  slow: {run: \"sleep 2.5; echo said\", cache: false}\n";
const SPINNER: &str = "running slow";

fn bed() -> Bed {
    let bed = Bed::new();
    bed.attest(&["init", "-q"]).expect(0);
    bed.write("attest.yaml", SLOW);
    bed
}

/// Runs the program with a terminal for all that it reads and writes; what that showed is `out`.
fn on_terminal(bed: &Bed, args: &[&str]) -> Ran {
    let program = bed.program(args);
    let mut script = Command::new("script");
    let words: Vec<_> = program
        .get_args()
        .map(|arg| arg.to_string_lossy())
        .collect();
    script
        .args(["--quiet", "--return", "--command"])
        .arg(format!("exec \"$PROGRAM\" {}", words.join(" ")))
        .arg("/dev/null")
        .current_dir(bed.folder())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("PROGRAM", program.get_program())
        .env("SHELL", "/bin/sh")
        .env("TERM", "xterm")
        .stdin(std::process::Stdio::null());
    ran(&mut script)
}

#[test]
fn a_spinner_turns_on_a_terminal_and_is_wiped_off() {
    let bed = bed();
    let shown = on_terminal(&bed, &["run"]).expect(0).out;
    let before = shown.find("[slow] said").unwrap();
    let spinner = shown.find(SPINNER).unwrap();
    assert!(spinner < before, "{shown:?}");
    // The line is cleared before another one is written, and at the end.
    assert!(shown[spinner..before].contains("\u{1b}[2K"), "{shown:?}");
    let last = shown.rfind(SPINNER).unwrap_or_default();
    assert!(shown[last..].contains("\u{1b}[2K"), "{shown:?}");
    assert!(shown.contains(".attest/receipts/"), "{shown:?}");
}

#[test]
fn no_spinner_on_a_terminal_where_none_is_wanted() {
    let bed = bed();
    let shown = on_terminal(&bed, &["run", "--no-progress"]).expect(0).out;
    assert!(shown.contains("[slow] said"), "{shown:?}");
    assert!(!shown.contains(SPINNER), "{shown:?}");
    assert!(!shown.contains("\u{1b}[2K"), "{shown:?}");
    let shown = on_terminal(&bed, &["run", "-q"]).expect(0).out;
    assert_eq!(shown.lines().count(), 1, "{shown:?}");
    assert!(shown.contains(".attest/receipts/"), "{shown:?}");
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn no_spinner_in_a_pipe() {
    let bed = bed();
    let ran = bed.attest(&["run"]).expect(0).says("[slow] said");
    assert!(!ran.err.contains(SPINNER), "{}", ran.err);
    assert!(!ran.err.contains(['\u{1b}', '\r']), "{:?}", ran.err);
    assert_eq!(ran.out.lines().count(), 1, "{}", ran.out);
}

#[test]
fn no_archive_is_written_to_a_terminal() {
    let bed = Bed::with_vectors();
    let export = [
        "causal",
        "export",
        "--allow-partial",
        "--receipt",
        "r3_unsigned.yaml",
        "-o",
        "-",
    ];
    let shown = on_terminal(&bed, &export).expect(2).out;
    let told = "no archive is written to a terminal";
    assert!(shown.contains(told), "{shown:?}");
}

#[test]
fn plugins_are_listed_for_a_terminal_in_lines_that_fit() {
    let long = "a-name-of-thirty-two-characters-";
    let gone = Plugin::new(long, &ALL);
    let bed = plugin::bed(&[Plugin::new("gate", &ALL).fail_open(), gone]);
    let pinned = plugin::digest(bed.read("plugins/gate"));
    plugin::program(&bed, "plugins/gate", "#!/bin/sh\n");
    std::fs::remove_file(bed.path(&format!("plugins/{long}"))).unwrap();
    let shown = on_terminal(&bed, &["plugins", "list"]).expect(0).out;
    let shown = shown.replace('\r', "");
    for line in shown.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let first = format!(
        "{:32}  mismatch    fail-open    pipeline.validate\n",
        "gate"
    );
    assert!(shown.starts_with(&first), "{shown}");
    for told in [
        format!("\n  pinned {pinned}\n"),
        format!("\n  found {}\n", plugin::digest("#!/bin/sh\n")),
        "\n  a script: `/bin/sh`, which runs it, is not pinned\n".to_owned(),
        format!("\n{long}  unresolved  fail-closed  pipeline.validate\n"),
    ] {
        assert!(shown.contains(&told), "{told} in {shown}");
    }
}
