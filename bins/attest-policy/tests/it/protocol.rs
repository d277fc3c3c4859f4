//! What the plugin says to a core, in every state of a session.

use std::process::{Command, Stdio};

use serde_json::json;
use test_case::test_case;

use crate::core::{POLICY, PROGRAM, Session, Workspace};

fn step(run: &str) -> serde_json::Value {
    json!({"step": {"name": "s", "run": run, "needs": [], "inputs": [], "outputs": [],
        "input_hash": "00", "command_hash": "00", "cache_hit": false}})
}

#[test]
fn a_whole_session() {
    let workspace = Workspace::new();
    let (mut session, hello) = Session::greeted(&mut workspace.plugin());
    assert_eq!(hello["kind"], "hello_ok");
    assert_eq!(
        (&hello["name"], &hello["protocol"]),
        (&json!("policy"), &json!(1))
    );
    assert_eq!(hello["deterministic"], true);
    assert_eq!(
        hello["hooks"],
        json!([
            "pipeline.validate",
            "step.pre",
            "step.post",
            "receipt.finalize"
        ])
    );
    assert_ne!(hello["version"], "");
    let payload = json!({"pipeline": {"pipeline_hash": "00", "steps": [
        {"name": "s", "run": "make", "needs": [], "inputs": [], "outputs": [], "env": {}, "cache": true}]}});
    assert_eq!(
        session.ask("pipeline.validate", &payload)["decision"],
        "allow"
    );
    assert_eq!(session.ask("step.pre", &step("make"))["decision"], "allow");
    let payload = json!({"step": {"name": "s", "input_hash": "00", "output_hash": "00",
        "duration_secs": 6, "exit_code": 0, "cache_hit": false}});
    let late = session.ask("step.post", &payload);
    assert_eq!(late["decision"], "warn");
    assert_eq!(
        late["findings"],
        json!([{"rule": "quick", "severity": "low", "message": "took 6 s, 5 s are the limit",
            "resource": "step:s"}])
    );
    let payload = json!({"receipt": {"steps": [{"name": "s", "exit_code": 0, "duration_secs": 1}],
        "timestamp": "2026-11-30T12:00:00Z", "total_duration_secs": 1}});
    let last = session.ask("receipt.finalize", &payload);
    assert_eq!(last["decision"], "allow");
    assert_eq!(
        last["annotation"]["judged_elsewhere"],
        json!(["no-network"])
    );
    assert!(
        last["annotation"]["policy"]
            .as_str()
            .unwrap()
            .starts_with("blake3:")
    );
    let end = session.shutdown();
    assert_eq!(
        (end.status.code(), end.out.as_str(), end.err.as_str()),
        (Some(0), "", "")
    );
}

#[test]
fn the_policy_is_read_once_and_verdicts_are_of_the_payload_alone() {
    let workspace = Workspace::new();
    let (mut session, _) = Session::greeted(&mut workspace.plugin());
    let first = session.ask("step.pre", &step("curl x"));
    assert_eq!(first["decision"], "deny");
    workspace.write(".attest/policy.toml", "none any more");
    let mut again = session.ask("step.pre", &step("curl x"));
    again["id"] = first["id"].clone();
    assert_eq!(again, first);
    assert_eq!(session.ask("step.pre", &step("true"))["decision"], "allow");
    let end = session.shutdown();
    assert_eq!((end.status.code(), end.err.as_str()), (Some(0), ""));
}

#[test]
fn rules_about_steps_that_the_pipeline_does_not_have_are_told() {
    let rule = |kind: &str, id: &str, more: &str| {
        format!("[[{kind}]]\nid = \"{id}\"\ndecision = \"warn\"\nseverity = \"low\"\n{more}\n")
    };
    let text = [
        "version = 1\n".to_owned(),
        rule("command", "every", "deny = [\"x\"]"),
        rule(
            "command",
            "there",
            "deny = [\"x\"]\nsteps = [\"gone\", \"b*\"]",
        ),
        rule(
            "command",
            "misspelt",
            "deny = [\"x\"]\nsteps = [\"compile\"]",
        ),
        rule("env", "other", "forbidden = [\"X\"]\nsteps = [\"[!b]*\"]"),
        rule("duration", "long", "total_secs = 9"),
        // Broken by the absence, so it says so itself.
        rule("output", "made", "required = [\"o\"]\nsteps = [\"gone\"]"),
    ];
    let workspace = Workspace::new();
    workspace.write(".attest/policy.toml", &text.concat());
    let build = json!({"name": "build", "run": "make", "needs": [], "inputs": [], "outputs": [],
        "env": {}, "cache": false});
    let pipeline = json!({"pipeline": {"pipeline_hash": "0", "steps": [build]}});
    let (mut session, _) = Session::greeted(&mut workspace.plugin());
    assert_eq!(
        session.ask("pipeline.validate", &pipeline)["decision"],
        "warn"
    );
    let end = session.shutdown();
    let note = "rules whose `steps` match no step of this pipeline: misspelt, other\n";
    assert!(end.err.ends_with(note), "{}", end.err);
}

#[test]
fn rules_that_were_never_judged_are_told() {
    let workspace = Workspace::new();
    let (mut session, _) = Session::greeted(&mut workspace.plugin());
    session.ask("step.pre", &step("true"));
    let end = session.shutdown();
    assert_eq!(end.status.code(), Some(0));
    assert_eq!(
        end.err,
        "attest-policy: rules that were not judged, since nothing was asked: quick (at step.post, receipt.finalize)\n"
    );
}

#[test]
fn the_name_is_the_one_under_which_it_is_declared() {
    let workspace = Workspace::new();
    let named = |name: &str| {
        let mut command = workspace.plugin();
        command.env("ATTEST_PLUGIN_NAME", name);
        Session::greeted(&mut command)
    };
    let (session, hello) = named("release-rules");
    assert_eq!(hello["name"], "release-rules");
    assert_eq!(session.shutdown().status.code(), Some(0));
}

#[test]
fn another_policy_by_its_variable() {
    let workspace = Workspace::new();
    workspace.write("rules/strict.toml", &POLICY.replace("*curl*", "*"));
    let mut command = workspace.plugin();
    command.env("POLICY_FILE", "rules/strict.toml");
    let (mut session, _) = Session::greeted(&mut command);
    assert_eq!(session.ask("step.pre", &step("true"))["decision"], "deny");
    assert_eq!(session.shutdown().status.code(), Some(0));
}

#[test_case("/etc/passwd", "is no path below the workspace"; "absolute")]
#[test_case("../policy.toml", "is no path below the workspace"; "above")]
#[test_case("gone.toml", "there is no policy `gone.toml`"; "absent")]
#[test_case("link.toml", "leads out of the workspace"; "a link")]
#[test_case("bad.toml", "`bad.toml`: line 4: unknown field `identity`"; "an unknown key")]
#[test_case("pipe", "is not a regular file"; "a pipe that nobody writes to")]
fn a_policy_that_cannot_be_used_is_exit_2_before_any_answer(file: &str, says: &str) {
    let workspace = Workspace::new();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("policy.toml"), POLICY).unwrap();
    std::os::unix::fs::symlink(
        outside.path().join("policy.toml"),
        workspace.path().join("link.toml"),
    )
    .unwrap();
    workspace.write("bad.toml", &POLICY.replacen("id =", "identity =", 1));
    let made = Command::new("mkfifo")
        .arg(workspace.path().join("pipe"))
        .status();
    assert!(made.unwrap().success());
    let mut command = workspace.plugin();
    command.env("POLICY_FILE", file);
    let mut session = Session::start(&mut command);
    session.send(
        "hello",
        &json!({"attest_version": "1.2.3", "protocols": [1]}),
    );
    let end = session.end();
    assert_eq!(end.status.code(), Some(2), "{end:?}");
    assert_eq!(end.out, "");
    assert!(end.err.starts_with("error: attest-policy: "), "{}", end.err);
    assert!(end.err.contains(says), "{}", end.err);
}

#[test]
fn a_name_that_no_plugin_has_is_exit_2() {
    let workspace = Workspace::new();
    let mut command = workspace.plugin();
    command.env("ATTEST_PLUGIN_NAME", "No Name");
    let end = Session::start(&mut command).end();
    assert_eq!((end.status.code(), end.out.as_str()), (Some(2), ""));
    assert!(end.err.contains("ATTEST_PLUGIN_NAME"), "{}", end.err);
}

#[test_case("", "shutdown"; "an end before the greeting")]
#[test_case("{\"v\":2,\"id\":1,\"kind\":\"hello\"}\n", "v"; "another version")]
#[test_case("not json\n", ""; "no json")]
#[test_case("{\"v\":1,\"id\":1,\"kind\":\"step.pre\",\"payload\":{}}\n", "hello"; "a request before the greeting")]
fn a_core_that_breaks_the_protocol_is_exit_1(line: &str, says: &str) {
    let workspace = Workspace::new();
    let mut session = Session::start(&mut workspace.plugin());
    session.raw(line);
    let end = session.end();
    assert_eq!(
        (end.status.code(), end.out.as_str()),
        (Some(1), ""),
        "{end:?}"
    );
    assert!(end.err.contains(says), "{}", end.err);
}

#[test]
fn on_a_terminal_it_says_what_it_is() {
    let workspace = Workspace::new();
    let mut script = Command::new("script");
    script
        .args([
            "--quiet",
            "--return",
            "--command",
            "exec \"$PROGRAM\"",
            "/dev/null",
        ])
        .current_dir(workspace.path())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("PROGRAM", PROGRAM)
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::null());
    let output = script.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("is a plugin of attest"), "{said}");
    assert!(said.contains(".attest/plugins.toml"), "{said}");
    assert!(said.contains("attest-policy check FILE"), "{said}");
}
