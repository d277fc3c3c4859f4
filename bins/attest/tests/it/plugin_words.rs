//! What plugins say: in the log of a run, in errors, and as what a receipt is shown with.

use serde_json::Value;

use crate::bed::{Bed, Ran, ran};
use crate::plugin::{ALL, BOTH, Plugin, Way, bed, record};

#[test]
fn what_plugins_say_is_told_beside_what_steps_write_and_kept_on_demand() {
    let says = Plugin::new("says", &["step.pre", "step.post"]).body(
        "on_request() { note \"about $kind\"; printf 'red \\033[31m\\t\\342\\200\\256end\\n' >&2; verdict allow; }",
    );
    for way in BOTH {
        let bed = bed(std::slice::from_ref(&says));
        bed.write(
            "log",
            "of another run, which had more to say than this one\n".repeat(20),
        );
        let ran = way.run(&bed, &["--log-file", "log"]).expect(0);
        for line in [
            "plugin says: about step.pre\n",
            "plugin says: about step.post\n",
        ] {
            assert!(ran.err.contains(line), "{}", ran.err);
        }
        assert!(!ran.err.contains(['\u{1b}', '\u{202e}']), "{}", ran.err);
        assert!(!ran.out.contains("plugin says"), "{}", ran.out);
        let log = bed.read("log");
        let told: Vec<&str> = ran
            .err
            .lines()
            .filter(|line| line.starts_with("plugin "))
            .collect();
        assert_eq!(log.lines().collect::<Vec<_>>(), told);
        assert_eq!(told.len(), 4, "{told:?}");
        let quiet = way.run(&bed, &["-q", "--log-file", "log"]).expect(0);
        assert_eq!(quiet.err, "");
        assert_eq!(bed.read("log"), log);
    }
}

/// Shell that waits for a file, but not for ever.
fn awaits(name: &str) -> String {
    format!("n=0; while [ ! -e {name} ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n + 1)); done")
}

#[test]
fn a_wrapped_commands_line_is_not_broken_by_a_plugins() {
    let (go, said) = (awaits("go"), awaits("said"));
    let body = format!("on_hello() {{ ({go}; note between; : > said) & hello_ok; }}");
    let bed = bed(&[Plugin::new("says", &ALL).body(&body)]);
    let script =
        format!("printf 'one ' >&2; : > go; {said}; sleep 0.5; echo two >&2; printf open >&2");
    let args = ["run", "--wrap", "--name", "s", "--", "sh", "-c", &script];
    let ran = bed.attest(&args).expect(0);
    for line in ["one two", "plugin says: between", "open"] {
        assert!(
            ran.err.lines().any(|one| one == line),
            "{line} in {}",
            ran.err
        );
    }
}

#[test]
fn the_log_file_is_none_that_the_run_reads_or_writes() {
    for way in BOTH {
        let bed = bed(&[Plugin::new("says", &["step.pre"])]);
        bed.attest(&["keys", "generate", "--name", "ci"]).expect(0);
        std::fs::create_dir(bed.path("folder")).unwrap();
        nix::unistd::mkfifo(&bed.path("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let key = bed
            .names(".attest/keys")
            .into_iter()
            .find(|name| name.ends_with(".key"));
        let key = format!(".attest/keys/{}", key.unwrap());
        for name in [
            "in",
            "out",
            "r.yaml",
            "-",
            "folder",
            "fifo",
            "absent/log",
            ".attest/trust/x",
            ".attest/plugins.toml",
            ".attest/policy.toml",
            &key,
            ".attest",
        ] {
            let ran = way.run(&bed, &["--log-file", name]).expect(2);
            assert!(ran.err.contains("log"), "{name}: {}", ran.err);
            assert!(!bed.path("out").exists(), "{name}");
        }
        assert_eq!(bed.read("in"), "source");
        let declared = bed.read(".attest/plugins.toml");
        let id = key
            .trim_start_matches(".attest/keys/")
            .trim_end_matches(".key");
        bed.write(".attest/policy.toml", "version = 1\n");
        for (file, what) in [
            (".attest/plugins.toml", "the declarations of plugins"),
            (".attest/policy.toml", "the rules of attest-policy"),
        ] {
            let args = ["keys", "export", id, "--output", file];
            bed.attest(&args).expect(2).says(what);
        }
        assert_eq!(bed.read(".attest/plugins.toml"), declared);
        assert_eq!(bed.read(".attest/policy.toml"), "version = 1\n");
    }
    let bed = bed(&[]);
    Way::Pipeline
        .run(&bed, &["--log-file", "attest.yaml"])
        .expect(2);
    Way::Wrap
        .run(&bed, &["--report", "same", "--log-file", "same"])
        .expect(2);
    assert!(!bed.path("out").exists());
}

#[test]
fn a_denial_is_told_as_text_that_is_safe_bounded_and_holds_no_secret() {
    let canary = "canary-9d20b1";
    let body = format!(
        "on_request() {{
  one='{{\"rule\":\"r\\u001b[31m\\u202e\",\"severity\":\"critical\",\"message\":\"of {canary}\\n{}\"}}'
  all=$one; n=1
  while [ $n -lt 200 ]; do all=\"$all,$one\"; n=$((n + 1)); done
  verdict deny \",\\\"findings\\\":[$all]\"
}}",
        "x".repeat(4000)
    );
    for way in BOTH {
        let bed = bed(&[Plugin::new("gate", &["step.post"]).body(&body)]);
        let mut args = way.args(&[]);
        if way == Way::Pipeline {
            let text = bed.read("attest.yaml");
            bed.write("attest.yaml", format!("{text}secrets: [TOKEN]\n"));
        } else {
            args.splice(1..1, ["--secret", "TOKEN"]);
        }
        for more in [&[][..], &["-q"]] {
            let args: Vec<&str> = args[..1]
                .iter()
                .chain(more)
                .chain(&args[1..])
                .copied()
                .collect();
            let ran = ran(bed.program(&args).env("TOKEN", canary)).expect(1);
            assert!(!ran.err.contains(canary), "{}", ran.err);
            assert!(!ran.err.contains(['\u{1b}', '\u{202e}']), "{}", ran.err);
            assert!(
                ran.err
                    .contains("plugin gate denied: r\\u{1b}[31m\\u{202e} (critical): of "),
                "{}",
                ran.err
            );
            let said = ran
                .err
                .lines()
                .skip_while(|line| !line.starts_with("error: "));
            let bytes: usize = said.map(str::len).sum();
            assert!(bytes < 64 * 1024, "{bytes}");
        }
    }
}

/// A run whose variable `TOKEN` is secret.
fn ran_with_secret(bed: &Bed, way: Way, value: &str) -> Ran {
    let mut args = way.args(&["--log-file", "log"]);
    if way == Way::Pipeline {
        let text = bed.read("attest.yaml");
        bed.write("attest.yaml", format!("{text}secrets: [TOKEN]\n"));
    } else {
        args.splice(1..1, ["--secret", "TOKEN"]);
    }
    ran(bed.program(&args).env("TOKEN", value))
}

/// A line of stderr is broken after 4 096 bytes; the value stands on both sides of that.
#[test]
fn a_secret_is_found_in_a_line_of_stderr_wherever_it_is_broken() {
    let canary = "canary-9d20b1";
    for before in [4_090, 4_096 - canary.len(), 4_095] {
        let line = format!("{}{canary} end", "x".repeat(before));
        let body = format!("on_request() {{ note {line}; verdict allow; }}");
        for way in BOTH {
            let bed = bed(&[Plugin::new("says", &["step.pre"]).body(&body)]);
            let ran = ran_with_secret(&bed, way, canary).expect(0);
            let log = bed.read("log");
            for text in [&ran.err, &log] {
                let joined = text.replace("\nplugin says: ", "");
                assert!(joined.contains("x[redacted TOKEN] end"), "{joined}");
                assert!(!joined.contains("canary"), "{joined}");
            }
        }
    }
}

#[test]
fn a_reason_that_quotes_a_secret_is_recorded_without_it() {
    let canary = "canary-9d20b1";
    let body = format!(
        "on_request() {{ printf '{{\"v\":1,\"id\":%s,\"kind\":\"{canary}\"}}\\n' \"$id\"; }}"
    );
    for way in BOTH {
        let plugin = Plugin::new("says", &["step.post"]).body(&body).fail_open();
        let bed = bed(&[plugin]);
        let ran = ran_with_secret(&bed, way, canary).expect(0);
        assert!(!ran.err.contains(canary), "{}", ran.err);
        let record = record(&bed, "says");
        assert_eq!(record["decision"], "error");
        let reason = record["reason"].as_str().unwrap();
        assert!(reason.contains("of kind `[redacted TOKEN]`"), "{reason}");
    }
}

#[test]
fn an_annotation_and_a_reason_are_shown_as_text_that_is_safe() {
    let body = "on_request() { verdict allow ',\"annotation\":{\"x\\u001b[31m\":\"\\u202e\\n  plugin: forged 1.0 allow\"}'; }";
    let fails = Plugin::new("fails", &["step.post"])
        .body("on_request() { exit 3; }")
        .fail_open();
    for way in BOTH {
        let bed = bed(&[
            Plugin::new("says", &["step.post"]).body(body),
            fails.clone(),
            Plugin::new("absent", &["step.post"]).fail_open(),
        ]);
        std::fs::remove_file(bed.path("plugins/absent")).unwrap();
        way.run(&bed, &[]).expect(0);
        let shown = bed.attest(&["show", "r.yaml"]).expect(0).out;
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown}");
        assert!(
            shown.contains("what it says, which nobody has checked:"),
            "{shown}"
        );
        let reason = record(&bed, "fails")["reason"].as_str().unwrap().to_owned();
        let first = reason.split(' ').next().unwrap();
        assert!(
            shown.contains("\n  absent: error (protocol 1, deterministic)\n"),
            "{shown}"
        );
        assert!(shown.contains(&format!("reason: {first}")), "{shown}");
        let json = bed.attest(&[
            "verify",
            "--check-signatures",
            "false",
            "--format",
            "json",
            "r.yaml",
        ]);
        let json: Value = serde_json::from_str(&json.expect(0).out).unwrap();
        let names: Vec<_> = json["plugins"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["absent", "fails", "says"]);
        assert_eq!(json["plugins"][1]["decision"], "error");
        let text = bed
            .attest(&["verify", "--check-signatures", "false", "r.yaml"])
            .expect(0)
            .out;
        assert_eq!(text.matches("  plugin: ").count(), 3, "{text}");
    }
}

#[test]
fn an_input_that_a_plugin_changed_is_not_laid_to_the_step_alone() {
    for way in BOTH {
        let meddler = Plugin::new("meddler", &["step.pre"])
            .body("on_request() { echo more >> \"$ATTEST_WORKSPACE/in\"; verdict allow; }");
        let ran = way.run(&bed(&[meddler]), &[]);
        assert_ne!(ran.code, 0);
        let hint = "a plugin that was asked before the step may have changed them as well";
        assert!(ran.err.contains(hint), "{way:?}: {}", ran.err);
    }
}
