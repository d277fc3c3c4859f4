//! Table 8: what becomes of a run whose plugin fails, under `fail-closed` and under `fail-open`,
//! of a pipeline and of a wrapped command.

use std::os::unix::fs::symlink;

use test_case::test_case;

use crate::bed::{Bed, Ran};
use crate::plugin::{BOTH, Plugin, Way, bed, declare, digest, program, receipt, record};

/// Leaves a mark that a step or a plugin ran.
const MARK: &str = "on_hello() { : > \"$ATTEST_WORKSPACE/started\"; hello_ok; }";

fn plugin() -> Plugin {
    Plugin::new("gate", &["step.post"])
}

fn modes(plugin: &Plugin) -> [Plugin; 2] {
    [plugin.clone(), plugin.clone().fail_open()]
}

/// Requires that nothing ran and nothing was written.
#[track_caller]
fn nothing_ran(bed: &Bed) {
    for name in ["out", "r.yaml", "started", ".attest/receipts"] {
        let there = bed.path(name);
        let made = there.exists() && (there.is_file() || !bed.names(name).is_empty());
        assert!(!made, "{name}");
    }
}

/// Requires a run that was as good as any, and a record of the failure.
#[track_caller]
fn went_on(bed: &Bed, ran: Ran, version: &str, reason: &str) {
    ran.expect(0);
    assert_eq!(bed.read("out"), "source");
    let record = record(bed, "gate");
    assert_eq!(record["decision"], "error", "{record}");
    assert_eq!(record["version"], version, "{record}");
    let told = record["reason"].as_str().unwrap();
    assert!(told.contains(reason), "`{reason}` in `{told}`");
    assert!(!told.contains(bed.folder().to_str().unwrap()), "{told}");
}

#[test]
fn t8_a_bad_declaration_is_2_in_both_modes_before_anything_runs() {
    let plugin = plugin().body(MARK);
    for way in BOTH {
        for plugin in modes(&plugin) {
            let bed = bed(&[plugin]);
            let good = bed.read(".attest/plugins.toml");
            way.run(&bed, &[]).expect(0);
            for name in ["out", "r.yaml", "started"] {
                std::fs::remove_file(bed.path(name)).unwrap();
            }
            for (text, told) in [
                ("schema_version = 1\n[[plugin".to_owned(), "plugins.toml"),
                (
                    good.replace("schema_version = 1", "schema_version = 2"),
                    "schema_version",
                ),
                (good.clone() + "skip = true\n", "skip"),
                (good.clone() + "timeout_secs = 0\n", "timeout_secs"),
                (
                    good.replace("\"step.post\"", "\"step.maybe\""),
                    "step.maybe",
                ),
                (
                    good.replace("protocol = \"1\"", "protocol = \"2\""),
                    "protocol",
                ),
                (good.replace("name = \"gate\"", "name = \"Gate\""), "Gate"),
                (
                    good.replace("digest = \"blake3:", "digest = \"sha256:"),
                    "digest",
                ),
                (
                    good.clone() + "env = { ATTEST_VERSION = \"9\" }\n",
                    "ATTEST_VERSION",
                ),
            ] {
                bed.write(".attest/plugins.toml", &text);
                way.run(&bed, &[]).expect(2).says(told);
                nothing_ran(&bed);
            }
        }
    }
}

#[test]
fn t8_a_declaration_that_is_no_file_is_2_and_never_none() {
    for way in BOTH {
        let bed = bed(&[plugin().body(MARK)]);
        let path = bed.path(".attest/plugins.toml");
        let good = bed.read(".attest/plugins.toml");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        way.run(&bed, &[]).expect(2).says("plugins.toml");
        std::fs::remove_dir(&path).unwrap();
        bed.write("elsewhere.toml", good);
        for target in ["../elsewhere.toml", "../absent.toml"] {
            symlink(target, &path).unwrap();
            way.run(&bed, &[]).expect(2).says("plugins.toml");
            std::fs::remove_file(&path).unwrap();
        }
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        way.run(&bed, &[]).expect(2).says("plugins.toml");
        std::fs::remove_file(&path).unwrap();
        bed.write(".attest/plugins.toml", " ".repeat((1 << 20) + 1));
        way.run(&bed, &[]).expect(2).says("plugins.toml");
        nothing_ran(&bed);
    }
}

#[test]
fn t8_a_digest_that_differs_is_2_in_both_modes_and_names_both() {
    for way in BOTH {
        for plugin in modes(&plugin().body(MARK)) {
            let bed = bed(&[plugin]);
            let reviewed = digest(bed.read("plugins/gate"));
            let changed = bed.read("plugins/gate") + "# changed\n";
            program(&bed, "plugins/gate", &changed);
            way.run(&bed, &[])
                .expect(2)
                .says(&reviewed)
                .says(&digest(&changed))
                .says("attest plugins pin gate");
            nothing_ran(&bed);
        }
    }
}

#[test_case("announces", "step.pre"; "a declared hook is not announced")]
#[test_case("name", "name"; "another name")]
#[test_case("deterministic", "deterministic"; "another deterministic")]
fn t8_an_announcement_that_is_not_the_declaration_is_2_in_both_modes(what: &str, told: &str) {
    let mut plugin = Plugin::new("gate", &["step.pre", "step.post"]);
    match what {
        "announces" => plugin.announces = Some(vec!["step.post"]),
        "name" => plugin = plugin.body("on_hello() { ATTEST_PLUGIN_NAME=other; hello_ok; }"),
        _ => plugin = plugin.body("deterministic=false"),
    }
    for way in BOTH {
        for plugin in modes(&plugin) {
            let bed = bed(&[plugin]);
            way.run(&bed, &[]).expect(2).says("gate").says(told);
            nothing_ran(&bed);
        }
    }
}

/// Requires exit code 2 and nothing under `fail-closed`, and a record under `fail-open`.
fn fails_to_start(plugin: &Plugin, spoil: impl Fn(&Bed), reason: &str) {
    for way in BOTH {
        let [closed, open] = modes(plugin);
        let closed = bed(&[closed]);
        spoil(&closed);
        way.run(&closed, &[]).expect(2).says("gate");
        nothing_ran(&closed);
        let open = bed(&[open]);
        spoil(&open);
        let ran = way.run(&open, &[]);
        went_on(&open, ran, "", reason);
    }
}

#[test]
fn t8_a_command_that_is_not_found_or_cannot_be_executed_fails_the_start() {
    let gone = |bed: &Bed| std::fs::remove_file(bed.path("plugins/gate")).unwrap();
    fails_to_start(&plugin(), gone, "");
    let bare = |bed: &Bed| {
        let text = bed.read(".attest/plugins.toml");
        let command = plugin().command(bed);
        bed.write(
            ".attest/plugins.toml",
            text.replace(&command, "surely-not-in-path"),
        );
    };
    fails_to_start(&plugin(), bare, "");
    let mode = |bed: &Bed| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        std::fs::set_permissions(bed.path("plugins/gate"), mode).unwrap();
    };
    fails_to_start(&plugin(), mode, "");
    // The digest holds, and there is nobody to interpret the script.
    let interpreter = |bed: &Bed| {
        let script = bed.read("plugins/gate");
        let changed = script.replace("#!/bin/sh", "#!/nonexistent/sh");
        program(bed, "plugins/gate", &changed);
        let text = bed.read(".attest/plugins.toml");
        let text = text.replace(&digest(script), &digest(changed));
        bed.write(".attest/plugins.toml", text);
    };
    fails_to_start(&plugin(), interpreter, "");
}

#[test_case("exit 0"; "ends at once")]
#[test_case("exit 3"; "fails at once")]
#[test_case("exec >&-; sleep 600"; "closes its output")]
#[test_case("echo hello"; "no json")]
#[test_case("verdict allow"; "a verdict")]
#[test_case("id=2; hello_ok"; "another id")]
#[test_case("hello_ok | sed 's/\"protocol\":1/\"protocol\":2/'"; "another protocol")]
#[test_case("hello_ok | sed 's/\"v\":1/\"v\":2/'"; "another version")]
#[test_case("hello_ok | sed 's/\"version\":\"1.2.3\"/\"version\":null/'"; "no version")]
fn t8_a_wrong_answer_to_hello_fails_the_start(answer: &str) {
    let plugin = plugin().body(&format!("on_hello() {{ {answer}; }}"));
    fails_to_start(&plugin, |_| {}, "");
}

#[test]
fn t8_no_answer_to_hello_in_time_fails_the_start() {
    let plugin = plugin()
        .body("on_hello() { sleep 600; }")
        .more("timeout_secs = 1");
    fails_to_start(&plugin, |_| {}, "");
}

/// A plugin that misbehaves when it is asked about a step, and counts how often it is asked.
fn broken(answer: &str) -> Plugin {
    let mut plugin = Plugin::new("gate", &["step.post", "receipt.finalize"]);
    plugin = plugin.body("on_request() {\n  echo . >> \"$ATTEST_WORKSPACE/asked\"");
    plugin.body(&format!("  {answer}\n}}"))
}

/// Requires that the run ends with 2 and a receipt under `fail-closed`, and goes on under
/// `fail-open`.
fn fails_when_asked(plugin: &Plugin) {
    for way in BOTH {
        let [closed, open] = modes(plugin);
        let closed = bed(&[closed]);
        way.run(&closed, &[]).expect(2).says("plugin gate failed: ");
        let record = record(&closed, "gate");
        assert_eq!(record["decision"], "error");
        assert_eq!(record["version"], "1.2.3");
        let steps = receipt(&closed).unwrap()["steps"].clone();
        assert_eq!(steps[0]["exit_code"], 0, "{steps}");
        let open = bed(&[open]);
        let ran = way.run(&open, &[]);
        went_on(&open, ran, "1.2.3", "");
        for bed in [closed, open] {
            assert_eq!(bed.read("asked"), ".\n", "asked again");
        }
    }
}

#[test]
fn t8_a_request_that_is_not_answered_in_time_fails_the_plugin() {
    fails_when_asked(&broken("sleep 600").more("timeout_secs = 2"));
}

#[test_case("exit 0"; "exits")]
#[test_case("exit 1"; "exits with a code")]
#[test_case("kill -KILL $$"; "is killed")]
#[test_case("exec >&-; sleep 600"; "closes its output")]
fn t8_a_plugin_that_ends_before_it_answers_fails(answer: &str) {
    fails_when_asked(&broken(answer));
}

#[test_case("echo allow"; "no json")]
#[test_case("echo"; "an empty line")]
#[test_case("echo '[]'"; "no object")]
#[test_case("head -c 1048600 /dev/zero | tr '\\000' ' '; verdict allow"; "over 1 MiB")]
#[test_case("verdict allow | sed 's/\"v\"/\"id\":1,\"v\"/'"; "a key twice")]
#[test_case("id=$((id + 1)); verdict allow"; "the id of the next request")]
#[test_case("id=$((id - 1)); verdict allow"; "the id of an earlier request")]
#[test_case("id=\\\"$id\\\"; verdict allow"; "the id as text")]
#[test_case("id=$id.0; verdict allow"; "the id as a fraction")]
#[test_case("verdict allow | sed 's/,\"id\":[0-9]*//'"; "no id")]
#[test_case("hello_ok"; "another kind")]
#[test_case("verdict maybe"; "an unknown decision")]
#[test_case("verdict allow ',\"findings\":null'"; "null findings")]
#[test_case("verdict allow ',\"annotation\":[]'"; "an annotation that is no object")]
#[test_case("verdict allow ',\"findings\":[{\"rule\":\"r\",\"severity\":\"dire\",\"message\":\"m\"}]'"; "an unknown severity")]
fn t8_an_answer_that_is_a_violation_fails_the_plugin(answer: &str) {
    fails_when_asked(&broken(answer));
}

/// Shell that prints `count` times `x`.
fn many(count: usize) -> String {
    format!("$(head -c {count} /dev/zero | tr '\\000' x)")
}

#[test_case(256, 256, 256, 65_500, true; "all that is allowed")]
#[test_case(257, 1, 1, 1, false; "findings")]
#[test_case(1, 257, 1, 1, false; "rule")]
#[test_case(1, 1, 257, 1, false; "resource")]
#[test_case(1, 1, 1, 65_536, false; "annotation")]
fn t8_an_answer_beyond_a_limit_fails_the_plugin(
    findings: usize,
    rule: usize,
    resource: usize,
    annotation: usize,
    fits: bool,
) {
    let (rule, resource, annotation) = (many(rule), many(resource), many(annotation));
    let answer = format!(
        r#"one="{{\"rule\":\"{rule}\",\"severity\":\"low\",\"message\":\"m\",\"resource\":\"{resource}\"}}"
  all=$one; n=1
  while [ $n -lt {findings} ]; do all="$all,$one"; n=$((n + 1)); done
  verdict warn ",\"findings\":[$all],\"annotation\":{{\"x\":\"{annotation}\"}}""#
    );
    let plugin = broken(&answer);
    if !fits {
        return fails_when_asked(&plugin);
    }
    for way in BOTH {
        let bed = bed(std::slice::from_ref(&plugin));
        way.run(&bed, &["-q"]).expect(0);
        assert_eq!(record(&bed, "gate")["decision"], "warn");
        assert_eq!(bed.read("asked"), ".\n.\n");
    }
}

#[test]
fn t8_a_line_that_nobody_asked_for_fails_the_plugin() {
    // It may come before or after the next request, and answers neither.
    let plugin = broken("verdict allow; id=99; verdict allow");
    for way in BOTH {
        let [closed, open] = modes(&plugin);
        let closed = bed(&[closed]);
        way.run(&closed, &[]).expect(2).says("plugin gate failed: ");
        assert_eq!(record(&closed, "gate")["decision"], "error");
        let open = bed(&[open]);
        let ran = way.run(&open, &[]);
        went_on(&open, ran, "1.2.3", "");
    }
}

#[test]
fn t8_a_failed_plugin_is_killed_with_all_that_it_started() {
    for way in BOTH {
        let plugin = broken("setsid sleep 6000 & echo $! > \"$ATTEST_WORKSPACE/pid\"; echo no");
        let bed = bed(&[plugin.fail_open()]);
        way.run(&bed, &[]).expect(0);
        let pid = bed.read("pid");
        let left = std::fs::read_to_string(format!("/proc/{}/cmdline", pid.trim()));
        assert!(!left.is_ok_and(|left| left.contains("6000")), "{pid}");
    }
}

#[test_case(Way::Pipeline; "of a pipeline")]
#[test_case(Way::Wrap; "of a wrapped command")]
fn t8_a_plugin_that_outlives_its_shutdown_is_terminated_and_its_verdicts_stand(way: Way) {
    let told = "trap ': > \"$ATTEST_WORKSPACE/told\"; exit 0' TERM";
    let sleeps = "while :; do sleep 1; done";
    let polite = Plugin::new("polite", &["step.post"])
        .body(&format!("on_shutdown() {{ {told}; {sleeps}; }}"));
    let stubborn = Plugin::new("stubborn", &["step.post"])
        .fail_open()
        .body(&format!("on_shutdown() {{ trap '' TERM; {sleeps}; }}"));
    let bed = bed(&[polite, stubborn]);
    let ran = way.run(&bed, &[]).expect(0);
    assert!(bed.path("told").exists());
    for name in ["polite", "stubborn"] {
        assert_eq!(record(&bed, name)["decision"], "allow");
        assert!(ran.err.contains(&format!("plugin {name}: ")), "{}", ran.err);
    }
}

#[test]
fn t8_a_code_after_the_shutdown_is_told_in_the_log_alone() {
    for way in BOTH {
        for plugin in modes(&plugin().body("on_shutdown() { exit 7; }")) {
            let bed = bed(&[plugin]);
            way.run(&bed, &[]).expect(0).says("plugin gate: ").says("7");
            let record = record(&bed, "gate");
            assert_eq!(record["decision"], "allow");
            assert_eq!(record.get("reason").and_then(|r| r.as_str()), None);
        }
    }
}

#[test]
fn t8_a_denial_is_no_failure_and_1_in_both_modes() {
    let deny = "on_request() { verdict deny \"$(finding no-go 'not today')\"; }";
    for way in BOTH {
        for plugin in modes(&plugin().body(deny)) {
            let bed = bed(&[plugin]);
            way.run(&bed, &[])
                .expect(1)
                .says("plugin gate denied: no-go (high): not today");
            assert_eq!(record(&bed, "gate")["decision"], "deny");
        }
    }
}

#[test]
fn t8_unknown_fields_and_hooks_are_no_violation() {
    let body = "on_hello() { hello_ok | sed 's/\"hooks\":\\[/&\"step.later\",/; s/}$/,\"more\":{\"a\":[1]}}/'; }\n\
                on_request() { verdict allow ',\"later\":{\"b\":null},\"findings\":[{\"rule\":\"r\",\"severity\":\"info\",\"message\":\"m\",\"line\":7}]'; }";
    for way in BOTH {
        let bed = bed(&[plugin().body(body)]);
        way.run(&bed, &[]).expect(0);
        assert_eq!(record(&bed, "gate")["decision"], "allow");
    }
}

#[test]
fn t8_a_plugin_that_fails_beside_another_leaves_it_asked() {
    let works = Plugin::new("works", &["receipt.finalize"]);
    let fails = broken("echo no").fail_open();
    for way in BOTH {
        let bed = bed(&[]);
        declare(&bed, &[fails.clone(), works.clone()]);
        way.run(&bed, &[]).expect(0);
        assert_eq!(record(&bed, "gate")["decision"], "error");
        assert_eq!(record(&bed, "works")["decision"], "allow");
    }
}

#[test]
fn t8_a_plugin_that_fails_before_any_step_leaves_no_receipt() {
    for hook in ["pipeline.validate", "step.pre"] {
        let plugin = Plugin::new("gate", &[hook]).body("on_request() { exit 3; }");
        for way in BOTH {
            let [closed, open] = modes(&plugin);
            let closed = bed(&[closed]);
            way.run(&closed, &[])
                .expect(2)
                .says("plugin gate failed: ")
                .says("exit code 3");
            nothing_ran(&closed);
            let open = bed(&[open]);
            let ran = way.run(&open, &[]);
            went_on(&open, ran, "1.2.3", "exit code 3");
        }
    }
}

#[test]
fn t8_what_runs_when_a_plugin_fails_is_recorded_before_the_run_ends() {
    // `a` goes on until the plugin has failed over `b`.
    let body = "on_request() {
  case $line in *'\"name\":\"b\"'*) : > \"$ATTEST_WORKSPACE/failed\"; exit 3 ;; esac
  verdict allow
}";
    let waits = "n=0; while [ ! -e failed ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n + 1)); done; sleep 0.3";
    let steps = format!(
        "  a: {{run: '{waits}; touch a'}}\n  b: {{run: touch b}}\n  c: {{run: touch c, needs: [a]}}\n"
    );
    let fails = Plugin::new("gate", &["step.post"]).body(body);
    let other = Plugin::new("other", &["step.post"]);
    for (plugin, code, recorded) in [
        (fails.clone(), 2, &["a", "b"][..]),
        (fails.fail_open(), 0, &["a", "b", "c"]),
    ] {
        let bed = bed(&[plugin, other.clone()]);
        bed.write("attest.yaml", format!("version: '1'\nsteps:\n{steps}"));
        Way::Pipeline.run(&bed, &["--jobs", "2"]).expect(code);
        let steps = receipt(&bed).unwrap()["steps"].clone();
        let steps: Vec<&str> = steps
            .as_array()
            .unwrap()
            .iter()
            .map(|step| step["name"].as_str().unwrap())
            .collect();
        assert_eq!(steps, recorded);
        assert_eq!(record(&bed, "gate")["decision"], "error");
        let asked = if code == 0 { "allow" } else { "skipped" };
        assert_eq!(record(&bed, "other")["decision"], asked);
    }
}
