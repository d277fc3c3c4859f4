//! Holds the frames that the documentation shows against the sessions.

use forge_plugin_protocol::{Capabilities, PluginSession, encode};

use crate::support::{ALL, Driver, ID};

#[test]
fn every_frame_of_the_documentation_is_valid() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/protocols/plugin-v1.md"
    );
    let page = std::fs::read_to_string(path).unwrap();
    let mut kinds = Vec::new();
    for line in page.lines().filter(|line| line.starts_with("{\"version\"")) {
        let frame: serde_json::Value = serde_json::from_str(line).unwrap();
        let kind = frame["type"].as_str().unwrap().to_owned();
        let line = format!("{line}\n");
        match kind.as_str() {
            "initialize" | "execute" | "cancel" => to_plugin(&kind, &line),
            "initialized" => {
                let mut driver = Driver::text();
                driver.write(&line);
                assert!(!driver.session.is_finished(), "{line}");
            }
            _ => {
                let is_text = frame.get("output").is_some();
                let driver = if is_text {
                    Driver::text()
                } else {
                    Driver::workspace()
                };
                let mut driver = driver.executing(ALL);
                driver.write(&line);
                assert!(!driver.session.is_finished(), "{line}");
            }
        }
        kinds.push(kind);
    }
    kinds.sort();
    kinds.dedup();
    let all = [
        "cancel",
        "execute",
        "failure",
        "initialize",
        "initialized",
        "progress",
        "result",
    ];
    assert_eq!(kinds, all);
}

fn to_plugin(kind: &str, line: &str) {
    let id = ID.parse().unwrap();
    let everything = Capabilities::new(ALL.iter().copied()).unwrap();
    let mut session = PluginSession::new(ALL).unwrap();
    let mut before = Vec::new();
    if kind != "initialize" {
        before.extend(encode::initialize(id, &everything));
    }
    if kind == "cancel" {
        let operation = forge_plugin_protocol::Operation::text("x").unwrap();
        before.extend(encode::execute(id, &operation));
    }
    session.receive(&before).unwrap();
    session.receive(line.as_bytes()).unwrap();
}
