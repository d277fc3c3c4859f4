//! `attest plugins conformance`, as an author of a plugin meets it.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use test_case::test_case;

use crate::bed::{Bed, Ran};
use crate::plugin::{Plugin, Way, bed, declare};

const COMMAND: [&str; 2] = ["plugins", "conformance"];

/// A plugin that never begins.
const SILENT: &str = "#!/bin/sh\necho $$ >\"$1\"\nexec sleep 600\n";

/// The plugin in Python of the documentation.
fn python() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/attest-plugin-1.py");
    path.to_str().unwrap().to_owned()
}

fn script(bed: &Bed, name: &str, text: &str) {
    let path = bed.write(name, text);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn conformance(bed: &Bed, args: &[&str]) -> Ran {
    bed.attest(&[&COMMAND[..], args].concat())
}

#[test]
fn a_plugin_that_keeps_the_rules_ends_with_0_and_no_digest_is_checked() {
    let bed = Bed::new();
    // Nothing that is declared is read, so it does not matter that this cannot be.
    bed.write(".attest/plugins.toml", "no declaration");
    let args = ["--only", "shutdown", "--only", "hello", &python()];
    let ran = conformance(&bed, &args)
        .expect(0)
        .says("no digest was checked; that of this file is blake3:")
        .says("2 passed, 0 failed, 0 skipped, 0 warned");
    assert_eq!(ran.out, "PASS hello\nPASS shutdown\n");
}

#[test]
fn a_plugin_that_breaks_one_ends_with_1_and_says_why() {
    let bed = Bed::new();
    script(&bed, "gone", "#!/bin/sh\necho 'no licence' >&2\nexit 3\n");
    let ran = conformance(&bed, &["--only", "hello", "./gone"]).expect(1);
    assert_eq!(
        ran.out,
        "FAIL hello: expected an answer to `hello`, it ended: exit code 3; stderr: no licence\n"
    );
}

#[test]
fn programs_get_a_record_for_each_scenario_and_then_the_totals() {
    let bed = Bed::new();
    let only = ["--only", "step-pre", "--only", "step-post"];
    let python = python();
    let args = [&["--format", "json"], &only[..], &[python.as_str()]].concat();
    let ran = conformance(&bed, &args).expect(0);
    let records: Vec<Value> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let expected = [
        serde_json::json!({"name": "step-pre", "status": "pass"}),
        serde_json::json!({"name": "step-post", "status": "skip", "reason": "`step.post` is not announced"}),
        serde_json::json!({"passed": 1, "failed": 0, "skipped": 1, "warned": 0}),
    ];
    assert_eq!(records, expected);
}

#[test]
fn ci_systems_get_a_document_beside_the_lines() {
    let bed = Bed::new();
    let python = python();
    let args = ["--only", "hello", "--junit", "report.xml", &python];
    conformance(&bed, &args).expect(0);
    let document = bed.read("report.xml");
    assert!(document.starts_with("<?xml"), "{document}");
    assert!(document.contains("<testcase classname=\"attest-plugin-1\" name=\"hello\""));
    // A place that cannot be written is found before the plugin is started.
    let args = ["--junit", ".attest/keys/report.xml", "./never-started"];
    script(&bed, "never-started", "#!/bin/sh\necho >started\n");
    bed.write(".attest/keys/x", "");
    conformance(&bed, &args).expect(2).says("JUnit document");
}

#[test_case(&["attest-policy"], "`attest-policy` is not a path"; "a bare name is looked up nowhere")]
#[test_case(&["./nothing"], "does not exist"; "a file that is not there")]
#[test_case(&["./"], "cannot run `./`"; "a folder")]
#[test_case(&["--only", "greet", "./x"], "there is no scenario `greet`"; "a scenario that is not there")]
#[test_case(&["--list", "--only", "greet"], "there is no scenario `greet`"; "also where they are listed")]
#[test_case(&["--env", "HOME", "./x"], "expected NAME=VALUE"; "a variable without a value")]
#[test_case(&["--env", "PATH=/bin", "./x"], "is set by attest itself"; "a variable that cannot be declared")]
#[test_case(&["--env", "A=1", "--env", "A=2", "./x"], "`A` is given twice"; "a variable twice")]
#[test_case(&["--name", "Policy", "./x"], "a plugin's name is"; "a name that cannot be declared")]
#[test_case(&["--timeout-secs", "0", "./x"], "0 is not in 1..=3600"; "no time at all")]
#[test_case(&["--workspace", "nowhere", "./x"], "nowhere"; "a workspace that is not there")]
#[test_case(&[], "CMD"; "no plugin")]
fn wrong_arguments_end_with_2_and_start_nothing(args: &[&str], why: &str) {
    let bed = Bed::new();
    script(&bed, "x", "#!/bin/sh\necho >started\n");
    conformance(&bed, args).expect(2).says(why);
    assert!(!bed.path("started").exists());
}

#[test]
fn a_file_that_is_no_program_is_told_with_what_makes_it_one() {
    let bed = Bed::new();
    bed.write("plugin", "#!/bin/sh\n");
    conformance(&bed, &["./plugin"])
        .expect(2)
        .says("`./plugin` may not be executed by this user")
        .says("hint: `chmod +x` makes a file a program");
    // What the system refuses is told by the file, and not by a descriptor.
    script(&bed, "plugin", "#!/no/such/interpreter\n");
    let ran = conformance(&bed, &["--only", "hello", "./plugin"]).expect(1);
    let file = bed.path("plugin").canonicalize().unwrap();
    assert_eq!(
        ran.out,
        format!(
            "FAIL hello: the plugin cannot be started: program `{}` exists, but its interpreter \
             `/no/such/interpreter` does not\n",
            file.display()
        )
    );
}

#[test]
fn options_end_at_the_plugin() {
    let bed = Bed::new();
    let text = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" >{}\nexit 1\n",
        bed.path("args").display()
    );
    script(&bed, "plugin", &text);
    let args = ["--only", "hello", "./plugin", "--list", "-only", "--", "x"];
    conformance(&bed, &args).expect(1);
    assert_eq!(bed.read("args"), "--list\n-only\n--\nx\n");
}

#[test]
fn the_names_are_listed_with_their_sources() {
    let bed = Bed::new();
    let listed = conformance(&bed, &["--list"]).expect(0).out;
    assert!(listed.starts_with("hello "), "{listed}");
    assert!(listed.lines().count() > 30, "{listed}");
    let args = ["--list", "--only", "end-of-input", "--format", "json"];
    assert_eq!(
        conformance(&bed, &args).expect(0).out,
        "{\"name\":\"end-of-input\",\"source\":\"ours\"}\n"
    );
}

#[test]
fn s41_the_plugin_gets_the_variables_of_a_run_and_those_that_are_given() {
    let bed = Bed::new();
    let python = python();
    let text = format!(
        "#!/bin/sh\ntr '\\0' '\\n' </proc/$$/environ >{}\nls /proc/$$/fd >{}\nexec {python}\n",
        bed.path("environ").display(),
        bed.path("descriptors").display()
    );
    script(&bed, "plugin", &text);
    std::fs::create_dir(bed.path("work")).unwrap();
    let args = [
        "--only",
        "hello",
        "--name",
        "policy",
        "--env",
        "POLICY_FILE=p.toml",
    ];
    let args = [&args[..], &["--workspace", "work", "./plugin"]].concat();
    conformance(&bed, &args).expect(0);
    let environ = bed.read("environ");
    let mut names: Vec<&str> = environ
        .lines()
        .map(|line| line.split_once('=').unwrap().0)
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "ATTEST_PLUGIN_NAME",
            "ATTEST_PLUGIN_PROTOCOL",
            "ATTEST_VERSION",
            "ATTEST_WORKSPACE",
            "LANG",
            "LC_ALL",
            "PATH",
            "POLICY_FILE",
            "TZ"
        ]
    );
    assert!(environ.contains("ATTEST_PLUGIN_NAME=policy\n"), "{environ}");
    let work = bed.path("work").canonicalize().unwrap();
    let workspace = format!("ATTEST_WORKSPACE={}\n", work.display());
    assert!(environ.contains(&workspace), "{environ}");
}

/// The suite and a run set the same variables to the same values, and open the same descriptors.
#[test]
fn s41_the_suite_gives_a_plugin_what_a_run_gives_it() {
    const DUMPS: &str = r#"on_hello() {
  { tr '\0' '\n' </proc/$$/environ | sort; pwd; printf '%s\n' "$#" /proc/$$/fd/*; } >"$DUMP"
  hello_ok
}"#;
    let dump = |bed: &Bed| bed.path("dump").to_str().unwrap().to_owned();
    let plugin = Plugin::new("policy", &["step.pre"]).body(DUMPS);
    let bed = bed(&[]);
    let env = format!("env = {{ DUMP = \"{}\", TZ = \"CET\" }}", dump(&bed));
    let plugin = plugin.more(&env);
    declare(&bed, std::slice::from_ref(&plugin));
    Way::Pipeline.run(&bed, &[]).expect(0);
    let by_run = bed.read("dump");
    std::fs::remove_file(bed.path("dump")).unwrap();
    let dump = format!("DUMP={}", dump(&bed));
    let args = [
        "--only",
        "hello",
        "--workspace",
        ".",
        "--env",
        &dump,
        "--env",
        "TZ=CET",
    ];
    let command = plugin.command(&bed);
    conformance(&bed, &[&args[..], &[command.as_str()]].concat()).expect(0);
    let by_suite = bed.read("dump");
    assert!(by_run.contains("ATTEST_PLUGIN_NAME=policy\n"), "{by_run}");
    assert!(by_run.contains("/fd/2\n"), "{by_run}");
    let without_pids = |text: &str| -> Vec<String> {
        let line = |line: &str| match line.split_once("/fd/") {
            Some((_, number)) => format!("fd {number}"),
            None => line.to_owned(),
        };
        text.lines().map(line).collect()
    };
    assert_eq!(without_pids(&by_suite), without_pids(&by_run));
}

#[test]
fn an_interrupt_ends_it_with_2_and_leaves_no_plugin_behind() {
    let bed = Bed::new();
    script(&bed, "silent", SILENT);
    let pid = bed.path("pid");
    let args = [&COMMAND[..], &["./silent", pid.to_str().unwrap()]].concat();
    let mut child = bed
        .program(&args)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(child.stderr.take().unwrap()).lines();
    let said: Vec<String> = said.map(Result::unwrap).take(2).collect();
    assert_eq!(
        said.get(1).unwrap(),
        "no line yet; an answer of the plugin may take 30 s, see `--timeout-secs`"
    );
    let started = || {
        let text = std::fs::read_to_string(&pid).ok()?;
        text.trim().parse::<i32>().ok()
    };
    let plugin = eventually(started);
    kill(
        Pid::from_raw(i32::try_from(child.id()).unwrap()),
        Signal::SIGINT,
    )
    .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));
    let gone = || {
        let state = std::fs::read_to_string(format!("/proc/{plugin}/cmdline"));
        state.unwrap_or_default().is_empty().then_some(())
    };
    eventually(gone);
}

/// Waits until there is something, for at most a minute.
fn eventually<T>(look: impl Fn() -> Option<T>) -> T {
    for _ in 0..6_000 {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it never came");
}
