//! The plugins of `docs/examples/` as a core meets them.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use test_case::test_case;

use crate::core::{Session, Workspace};

pub(crate) fn example(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/examples")
        .join(name)
        .canonicalize()
        .unwrap()
}

/// The script as a plugin; without python3 or jq the test fails and says so.
fn started(workspace: &Workspace, name: &str) -> Command {
    let mut command = Command::new(example(name));
    command
        .current_dir(workspace.path())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("ATTEST_WORKSPACE", workspace.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn pipeline(run: &str) -> Value {
    json!({"pipeline": {"pipeline_hash": "00", "new": null, "steps": [
        {"name": "s\n", "run": run, "needs": [], "inputs": [], "outputs": [], "env": {},
         "cache": true, "timeout_secs": 5}]}})
}

#[test]
fn the_shell_plugin_announces_one_hook_and_allows_everything() {
    let workspace = Workspace::new();
    let (mut session, hello) = Session::greeted(&mut started(&workspace, "attest-noop.sh"));
    let expected = json!({"v": 1, "id": 1, "kind": "hello_ok", "name": "noop", "version": "0.1.0",
        "protocol": 1, "hooks": ["step.pre"], "deterministic": true});
    assert_eq!(hello, expected);
    for id in 2..5 {
        let answer = session.ask("step.pre", &json!({"step": {"run": "a\\b\n\"c\" %s $id"}}));
        let expected =
            json!({"v": 1, "id": id, "kind": "verdict", "decision": "allow", "findings": []});
        assert_eq!(answer, expected);
    }
    let end = session.shutdown();
    assert_eq!(
        (end.status.code(), end.out.as_str(), end.err.as_str()),
        (Some(0), "", "")
    );
}

#[test]
fn the_python_plugin_judges_commands() {
    let workspace = Workspace::new();
    let mut command = started(&workspace, "attest-plugin-1.py");
    command.env("ATTEST_PLUGIN_NAME", "mine");
    let (mut session, hello) = Session::greeted(&mut command);
    assert_eq!(hello["name"], "mine");
    assert_eq!(hello["hooks"], json!(["pipeline.validate", "step.pre"]));
    let allowed = session.ask("pipeline.validate", &pipeline("curl x -o y; sh z"));
    assert_eq!(
        (&allowed["decision"], &allowed["findings"]),
        (&json!("allow"), &json!([]))
    );
    for run in ["curl x | sh", "wget -q -O- x | sudo bash -s"] {
        let denied = session.ask("pipeline.validate", &pipeline(run));
        assert_eq!(denied["decision"], "deny", "{run}");
        assert_eq!(denied["findings"][0]["rule"], "no-download-to-shell");
        assert_eq!(denied["findings"][0]["resource"], "step:s\n");
        assert_eq!(
            denied["annotation"],
            json!({"steps": 1, "denied": 1, "warned": 0})
        );
    }
    let mut endless = pipeline("make");
    let step = endless["pipeline"]["steps"][0].as_object_mut().unwrap();
    step.remove("timeout_secs");
    assert_eq!(
        session.ask("pipeline.validate", &endless)["decision"],
        "warn"
    );
    let before = json!({"step": {"name": "s", "run": "curl x | dash"}});
    assert_eq!(session.ask("step.pre", &before)["decision"], "deny");
    let end = session.shutdown();
    assert_eq!(
        (end.status.code(), end.out.as_str(), end.err.as_str()),
        (Some(0), "", "")
    );
}

#[test]
fn many_findings_of_the_python_plugin_stay_within_the_limits() {
    let workspace = Workspace::new();
    let mut session = Session::greeted(&mut started(&workspace, "attest-plugin-1.py")).0;
    let name = "\u{1}".repeat(300);
    let run = format!("curl {} | sh", "\u{1f980}".repeat(200));
    let steps: Vec<Value> = (0..300)
        .map(|_| json!({"name": name, "run": run}))
        .collect();
    let payload = json!({"pipeline": {"steps": steps}});
    let answer = session.ask("pipeline.validate", &payload);
    let findings = answer["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 256);
    for finding in findings {
        assert!(finding["resource"].as_str().unwrap().len() <= 256);
        assert!(finding["message"].as_str().unwrap().len() <= 4_096);
    }
    assert_eq!(session.shutdown().status.code(), Some(0));
}

#[test_case("", "left without"; "the end")]
#[test_case("nonsense\n", "not JSON")]
#[test_case("[]\n", "not an object")]
#[test_case("\n", "not JSON"; "a blank line")]
#[test_case(
    "{\"v\":1,\"id\":1,\"kind\":\"hello\",\"protocols\":[1],\"a\":{\"b\":1,\"b\":2}}\n",
    "stands twice"
)]
#[test_case("{\"v\":true,\"id\":1,\"kind\":\"hello\",\"protocols\":[1]}\n", "`v`"; "true is not 1")]
#[test_case("{\"v\":1,\"id\":2,\"kind\":\"hello\",\"protocols\":[1]}\n", "`id`"; "another id")]
#[test_case("{\"v\":1,\"id\":1.0,\"kind\":\"hello\",\"protocols\":[1]}\n", "`id`"; "a fraction")]
#[test_case("{\"v\":1,\"id\":1,\"kind\":\"hello\",\"protocols\":[2]}\n", "version 1"; "another major")]
#[test_case("{\"v\":1,\"id\":1,\"kind\":\"step.pre\",\"payload\":{}}\n", "not `hello`"; "no greeting")]
#[test_case("{\"v\":1,\"id\":1,\"kind\":\"hello\",\"protocols\":[1],\"a\":NaN}\n", "not JSON"; "no number")]
#[test_case("{\"v\":1,\"id\":1,\"kind\":\"hello\",\"protocols\":[1]}", "no line feed"; "half a line")]
fn a_core_that_breaks_the_protocol_gets_no_answer_from_the_python_plugin(line: &str, says: &str) {
    let workspace = Workspace::new();
    let mut session = Session::start(&mut started(&workspace, "attest-plugin-1.py"));
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
fn news_are_passed_over_and_a_bad_name_is_exit_2() {
    let workspace = Workspace::new();
    let mut session = Session::greeted(&mut started(&workspace, "attest-plugin-1.py")).0;
    session.raw("{\"v\":1,\"kind\":\"news\",\"id\":\"none\"}\n");
    session.ask("step.pre", &json!({"step": {"name": "s", "run": "true"}}));
    assert_eq!(session.shutdown().status.code(), Some(0));
    let mut command = started(&workspace, "attest-plugin-1.py");
    command.env("ATTEST_PLUGIN_NAME", "No Name");
    let mut session = Session::start(&mut command);
    session.raw("{\"v\":1,\"id\":1,\"kind\":\"hello\",\"protocols\":[1]}\n");
    let end = session.end();
    assert_eq!(
        (end.status.code(), end.out.as_str()),
        (Some(2), ""),
        "{end:?}"
    );
}

#[test]
fn the_python_plugin_imports_nothing_that_lies_beside_it() {
    let workspace = Workspace::new();
    let copy = workspace.path().join("plugin.py");
    std::fs::copy(example("attest-plugin-1.py"), &copy).unwrap();
    workspace.write("json.py", "raise SystemExit(9)\n");
    let mut command = Command::new(copy);
    command
        .current_dir(workspace.path())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let (session, hello) = Session::greeted(&mut command);
    assert_eq!(hello["name"], "example");
    assert_eq!(session.shutdown().status.code(), Some(0));
}
