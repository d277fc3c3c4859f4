//! The command line, the formats and the exit codes.

use crate::support::{
    REJECTIONS, eventually, example, executable, failed, mutant, names, stdout, steady, tool,
};

fn run(line: &[&str]) -> std::process::Output {
    tool(line)
}

#[test]
fn c12_the_list_holds_the_names_in_order() {
    let output = run(&["--list"]);
    assert_eq!(output.status.code(), Some(0));
    let report = stdout(&output);
    let mut expected = vec!["valid-session"];
    expected.extend(REJECTIONS);
    assert_eq!(report.lines().collect::<Vec<_>>(), expected);
    let records = stdout(&run(&["--list", "--format", "json", "--only", "wrong-id"]));
    assert_eq!(records, "{\"name\":\"wrong-id\"}\n");
}

#[test]
fn strict_lists_and_names_more() {
    let usual = stdout(&run(&["--list"]));
    let strict = stdout(&run(&["--list", "--strict"]));
    let more = strict.strip_prefix(usual.as_str()).unwrap();
    assert!(more.lines().count() > 90, "{more}");
    for name in ["limit-missing", "payload-lone-surrogate", "slow-reader"] {
        assert!(more.lines().any(|line| line == name), "{name}");
    }
    let plugin = example();
    let plugin = plugin.to_str().unwrap();
    let output = run(&["--strict", "--only", "limit-missing", plugin]);
    assert_eq!(stdout(&output), "PASS limit-missing\n");
    let output = run(&["--only", "limit-missing", plugin]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("belongs to `--strict`"), "{said}");
}

#[test]
fn what_does_not_apply_is_skipped_and_does_not_fail() {
    let plugin = example();
    let run = |format: &str| {
        let names = ["--only", "progress-count", "--only", "timeout-zero"];
        let args = ["--strict", "--format", format];
        tool(args.iter().chain(&names).chain([&plugin.to_str().unwrap()]))
    };
    let output = run("human");
    assert_eq!(
        stdout(&output),
        "SKIP timeout-zero\n    it is about `workspace_edit`\n\
         SKIP progress-count\n    the plugin does not select `progress`\n"
    );
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "0 passed, 0 failed, 2 skipped\n"
    );
    let records = stdout(&run("json"));
    let (first, last) = (records.lines().next(), records.lines().last());
    assert_eq!(
        first,
        Some(
            "{\"name\":\"timeout-zero\",\"status\":\"skip\",\"reason\":\"it is about `workspace_edit`\"}"
        )
    );
    assert_eq!(last, Some("{\"passed\":0,\"failed\":0,\"skipped\":2}"));
    let document = stdout(&run("junit"));
    assert!(document.contains("skipped=\"2\""), "{document}");
    assert!(
        document.contains("<skipped message=\"the plugin does not select `progress`\"/>"),
        "{document}"
    );
}

#[test]
fn lines_go_to_stdout_and_the_summary_to_stderr() {
    let plugin = example();
    let plugin = plugin.to_str().unwrap();
    let output = steady(&["--only", "blank-frame", "--only", "valid-session", plugin]);
    assert_eq!(stdout(&output), "PASS valid-session\nPASS blank-frame\n");
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "2 passed, 0 failed\n"
    );
    assert_eq!(output.status.code(), Some(0));
    assert!(
        run(&["--quiet", "--only", "blank-frame", plugin])
            .stderr
            .is_empty()
    );
}

#[test]
fn c12_usage_errors_exit_with_2_before_anything_runs() {
    for line in [
        &[][..],
        &["--only", "no-such-name", "/bin/true"],
        &["-operation", "other", "/bin/true"],
        &["--bogus"],
    ] {
        let output = run(line);
        assert_eq!(output.status.code(), Some(2), "{line:?}");
        assert!(output.stdout.is_empty(), "{line:?}");
        assert!(!output.stderr.is_empty(), "{line:?}");
    }
    let unknown = run(&["--only", "no-such-name", "/bin/true"]);
    let said = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(
        said.contains("no-such-name") && said.contains("--list"),
        "{said}"
    );
}

#[test]
fn c12_json_is_one_record_per_line_with_the_totals_last() {
    let output = run(&[
        "--format",
        "json",
        "--only",
        "valid-session",
        "--only",
        "blank-frame",
        "/bin/true",
    ]);
    assert_eq!(output.status.code(), Some(1));
    let report = stdout(&output);
    let records: Vec<serde_json::Value> = report
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(records.len(), 3);
    assert_eq!(records[0]["name"], "valid-session");
    assert_eq!(records[1]["status"], "fail");
    assert!(records[1]["reason"].as_str().unwrap().contains("exit 0"));
    assert_eq!(
        records[2],
        serde_json::json!({"passed": 0, "failed": 2, "skipped": 0})
    );
}

#[test]
fn c12_junit_is_a_document_with_a_case_per_scenario() {
    let output = run(&["-format=junit", "--only", "blank-frame", "/bin/true"]);
    let report = stdout(&output);
    assert!(report.starts_with("<?xml"), "{report}");
    assert!(
        report.contains("<testcase classname=\"plugin-v1.text\" name=\"blank-frame\""),
        "{report}"
    );
    assert!(
        report.contains("<failure message=\"expected a non-zero exit, got exit 0"),
        "{report}"
    );
}

#[test]
fn the_plugin_gets_its_arguments_and_the_tools_environment() {
    let directory = tempfile::tempdir().unwrap();
    let seen = directory.path().join("seen");
    let wrapper = directory.path().join("plugin");
    let text = format!(
        "#!/bin/sh\nprintf '%s|' \"$@\" \"$HOME\" >{:?}\nexec {:?}\n",
        seen,
        example()
    );
    executable(&wrapper, &text);
    let output = run(&[
        "--only",
        "blank-frame",
        wrapper.to_str().unwrap(),
        "-operation",
        "--",
        "--list",
    ]);
    assert_eq!(stdout(&output), "PASS blank-frame\n");
    let home = std::env::home_dir().unwrap();
    assert_eq!(
        std::fs::read_to_string(seen).unwrap(),
        format!("-operation|--|--list|{}|", home.display())
    );
}

#[test]
fn c03_repetition_catches_what_fails_at_times() {
    let directory = tempfile::tempdir().unwrap();
    let count = directory.path().join("count");
    let edit = format!(
        "    open({0:?}, \"a\").write(\"x\")\n    if len(open({0:?}).read()) == 3: return 0\n    try:\n",
        count.display().to_string()
    );
    let plugin = mutant(
        directory.path(),
        &[("    try:\n        serve(", &format!("{edit}        serve("))],
    );
    let output = run(&[
        "--only",
        "blank-frame",
        "--repeat",
        "3",
        plugin.to_str().unwrap(),
    ]);
    let report = stdout(&output);
    assert_eq!(failed(&report), names(["blank-frame"]));
    assert!(
        report.contains("run 3 of 3: expected a non-zero exit, got exit 0"),
        "{report}"
    );
}

#[test]
fn a_reason_is_one_line_and_quotes_what_came() {
    let directory = tempfile::tempdir().unwrap();
    let plugin = directory.path().join("plugin");
    executable(
        &plugin,
        "#!/bin/sh\nprintf 'hello\\n\\033[31m'\necho oops >&2\nexit 1\n",
    );
    let report = stdout(&run(&["--only", "blank-frame", plugin.to_str().unwrap()]));
    assert_eq!(
        report,
        "FAIL blank-frame\n    expected on stdout nothing, got `hello\\n\\u{1b}[31m`; stderr: oops\n"
    );
}

#[test]
fn an_interrupted_tool_leaves_nothing_running() {
    let directory = tempfile::tempdir().unwrap();
    let pid = directory.path().join("pid");
    let plugin = directory.path().join("plugin");
    executable(
        &plugin,
        &format!("#!/bin/sh\nsleep 600 &\necho $! >{pid:?}.new\nmv {pid:?}.new {pid:?}\nwait\n"),
    );
    #[expect(
        clippy::disallowed_methods,
        reason = "a test drives the program as a user does"
    )]
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_forge-plugin-conformance"))
        .args(["--timeout", "1h"])
        .arg(&plugin)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    eventually("the plugin runs", || pid.exists());
    #[expect(
        clippy::disallowed_methods,
        reason = "a test sends the signal as a user does"
    )]
    let sent = std::process::Command::new("kill")
        .arg(child.id().to_string())
        .status();
    assert!(sent.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(2));
    let pid = std::fs::read_to_string(pid).unwrap();
    eventually("the plugin's child is gone", || {
        let command = std::fs::read(format!("/proc/{}/cmdline", pid.trim()));
        !command.is_ok_and(|command| command.starts_with(b"sleep"))
    });
}
