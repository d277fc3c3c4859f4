//! The log: its form, and its levels where the journal of systemd reads.

use std::os::unix::fs::MetadataExt as _;

use serde_json::{Value, json};

use crate::running::{Place, spawn};

/// The log of a Gate that cannot start: its database is none.
fn log(place: &Place, more: &[&str], journal: bool) -> String {
    std::fs::write(place.path().join("none.db"), "no database").unwrap();
    let mut config: Value =
        serde_json::from_slice(&std::fs::read(place.config()).unwrap()).unwrap();
    config["database"] = json!(place.path().join("none.db"));
    let file = place.path().join("broken.json");
    std::fs::write(&file, config.to_string()).unwrap();
    let path = place.path().join("log");
    let stderr = std::fs::File::create(&path).unwrap();
    let found = stderr.metadata().unwrap();
    #[expect(
        clippy::disallowed_methods,
        reason = "the test starts the program that it is about"
    )]
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_forge-gate"));
    command.arg("--config").arg(&file).args(more).stderr(stderr);
    // Device and inode, as systemd sets it; of another stream it means nothing.
    let inode = found.ino() + u64::from(!journal);
    command.env("JOURNAL_STREAM", format!("{}:{inode}", found.dev()));
    assert_eq!(command.status().unwrap().code(), Some(2));
    std::fs::read_to_string(path).unwrap()
}

fn object(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"))
}

#[test]
fn the_flag_decides_the_form_and_without_it_each_line_is_an_object() {
    let place = Place::new();
    for more in [[].as_slice(), &["--log-format", "json"]] {
        let log = log(&place, more, false);
        let first = object(log.lines().next().unwrap());
        assert_eq!(
            (&first["level"], &first["event"]),
            (&json!("INFO"), &json!("startup"))
        );
        assert!(first["time"].is_string() && first["msg"] == "gate lifecycle");
    }
    let human = log(&place, &["--log-format", "human"], false);
    let first = human.lines().next().unwrap();
    assert!(
        first.contains(" INFO ") && first.contains("event=\"startup\""),
        "{first}"
    );
    assert!(!first.contains('{') && !first.contains('\u{1b}'), "{first}");
    // What changes nothing is no option.
    let refused = spawn(&[
        "--check-config".as_ref(),
        place.config().as_os_str(),
        "--format".as_ref(),
        "json".as_ref(),
    ]);
    assert_eq!(refused.wait_with_output().unwrap().status.code(), Some(2));
}

#[test]
fn the_journal_gets_levels_of_its_own() {
    let place = Place::new();
    let json = log(&place, &[], true);
    let mut lines = json.lines();
    let first = lines.next().unwrap().strip_prefix("<6>").unwrap();
    assert_eq!(object(first)["event"], "startup");
    let failed = lines.find_map(|line| line.strip_prefix("<3>")).unwrap();
    assert_eq!(object(failed)["event"], "startup_failed");
    let human = log(&place, &["--log-format", "human"], true);
    let first = human.lines().next().unwrap();
    assert!(
        first.starts_with("<6>") && first.contains("event=\"startup\""),
        "{first}"
    );
    assert!(!first.contains('T'), "the journal has the time: {first}");
}
