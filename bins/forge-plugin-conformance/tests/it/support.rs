//! Runs the tool and makes plugins out of the example.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::OnceLock;

/// The names of all scenarios but the valid session.
pub(crate) const REJECTIONS: [&str; 25] = [
    "blank-frame",
    "malformed-frame",
    "invalid-utf8",
    "crlf-frame",
    "non-compact-frame",
    "invalid-id",
    "capability-type",
    "duplicate-capability",
    "unknown-field",
    "duplicate-field",
    "unsupported-version",
    "unsupported-capability",
    "limit-bool",
    "limit-float",
    "non-standard-constant",
    "wrong-id",
    "wrong-order",
    "unsupported-operation",
    "input-type",
    "oversized-input",
    "execute-unknown-field",
    "oversized-frame",
    "no-lf-frame",
    "contradictory-execute",
    "duplicate-execute",
];

/// Those of them in which a plugin answers `initialized` first.
pub(crate) const EXECUTES: [&str; 8] = [
    "wrong-id",
    "wrong-order",
    "unsupported-operation",
    "input-type",
    "oversized-input",
    "execute-unknown-field",
    "contradictory-execute",
    "duplicate-execute",
];

pub(crate) fn tool<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Output {
    program().args(args).output().unwrap()
}

/// Runs the tool with a home of its own, for plugins that write there.
pub(crate) fn tool_with_home<A: AsRef<OsStr>>(home: &Path, args: &[A]) -> Output {
    program().args(args).env("HOME", home).output().unwrap()
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test drives the program as a user does"
)]
fn program() -> std::process::Command {
    std::process::Command::new(env!("CARGO_BIN_EXE_forge-plugin-conformance"))
}

/// Runs the tool again, twice at most, while the valid session fails for being late.
///
/// The protocol gives a plugin 250 ms to leave, which a busy machine may take from an interpreter.
/// A plugin that really lingers is late every time.
pub(crate) fn steady<A: AsRef<OsStr> + Clone>(args: &[A]) -> Output {
    let run = || {
        tool(
            ["--jobs".as_ref(), "1".as_ref()]
                .into_iter()
                .chain(args.iter().map(AsRef::as_ref)),
        )
    };
    (0..2).fold(run(), |output, _| {
        if stdout(&output).contains("within 250 ms") {
            run()
        } else {
            output
        }
    })
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The example plugin of the documentation.
pub(crate) fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/forge-plugin-v1.py")
}

/// Writes an executable file.
pub(crate) fn executable(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Writes the example with some of its text replaced, each piece of which must be there once.
pub(crate) fn mutant(directory: &Path, edits: &[(&str, &str)]) -> PathBuf {
    let mut text = std::fs::read_to_string(example()).unwrap();
    for (from, to) in edits {
        assert_eq!(
            text.matches(from).count(),
            1,
            "`{from}` is in the example once"
        );
        text = text.replace(from, to);
    }
    // `python3` may be a script that looks for one of many; with 26 starts a mutant that adds up.
    let text = text.replace(
        "#!/usr/bin/env python3",
        &format!("#!{} -IS", interpreter()),
    );
    let path = directory.join("mutant.py");
    executable(&path, &text);
    path
}

/// Where the interpreter itself is.
pub(crate) fn interpreter() -> &'static str {
    static FOUND: OnceLock<String> = OnceLock::new();
    FOUND.get_or_init(|| {
        #[expect(
            clippy::disallowed_methods,
            reason = "the interpreter knows best where it is"
        )]
        let output = std::process::Command::new("python3")
            .args(["-c", "import sys; print(sys.executable)"])
            .output();
        stdout(&output.unwrap()).trim().to_owned()
    })
}

/// The names that a report in lines marks as failed; every line must be of a known kind.
pub(crate) fn failed(report: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in report.lines().filter(|line| !line.starts_with("    ")) {
        match line.split_once(' ') {
            Some(("PASS", _)) => {}
            Some(("FAIL", name)) => drop(names.insert(name.to_owned())),
            _ => panic!("unexpected line `{line}`"),
        }
    }
    names
}

/// A set of names.
pub(crate) fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

/// Waits until something holds, for at most ten seconds.
pub(crate) fn eventually(what: &str, holds: impl Fn() -> bool) {
    #[expect(clippy::disallowed_methods, reason = "a bound on a wait, in real time")]
    let begin = std::time::Instant::now();
    while !holds() {
        assert!(begin.elapsed().as_secs() < 10, "{what}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
