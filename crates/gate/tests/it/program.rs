//! `forge-gate` as a program: what it does with its arguments and files, before
//! it listens.

use std::ffi::OsString;
use std::process::ExitCode;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::config_in;

fn run(args: &[&str]) -> ExitCode {
    let args = ["forge-gate"].iter().chain(args).map(OsString::from);
    gate::main_from(args)
}

fn write(dir: &TempDir, config: &Value) -> String {
    let path = dir.path().join("gate.json");
    std::fs::write(&path, config.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn is(code: ExitCode, number: u8) {
    assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::from(number)));
}

#[test]
fn check_config_judges_the_file_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config_in(&dir);
    // Nothing that the file points to exists.
    config["owner_token_file"] = json!("/nonexistent/token");
    config["tls"] = json!({"certificate": "/nonexistent/cert.pem", "key": "/nonexistent/key.pem"});
    config["database"] = json!("/nonexistent/gate.db");
    let file = write(&dir, &config);
    is(run(&["--config", &file, "--check-config"]), 0);
    is(run(&["--check-config", &file]), 0);
    is(run(&["-config", &file, "-check-config"]), 0);
    is(run(&["--config", &file, "--check-config", "--live"]), 2);
    config["surprise"] = json!(1);
    let file = write(&dir, &config);
    is(run(&["--check-config", &file]), 2);
}

#[test]
fn live_looks_at_tokens_and_address_and_opens_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config_in(&dir);
    let file = write(&dir, &config);
    is(run(&["--config", &file, "--check-config", "--live"]), 0);
    assert!(!dir.path().join("state").exists(), "no database was made");
    for (key, value) in [
        ("listen", json!("0.0.0.0:0")),
        ("listen", json!(":0")),
        ("owner_token_file", json!(dir.path().join("worker"))),
        ("owner_token_file", json!(dir.path().join("nobody"))),
    ] {
        let mut broken = config.clone();
        broken[key] = value.clone();
        let file = write(&dir, &broken);
        is(run(&["--config", &file, "--check-config", "--live"]), 2);
    }
    config["listen"] = json!("0.0.0.0:0");
    config["allow_plain_listener"] = json!(true);
    let file = write(&dir, &config);
    is(run(&["--config", &file, "--check-config", "--live"]), 0);
}

#[test]
fn arguments_that_make_no_sense_exit_2() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(&dir, &config_in(&dir));
    is(run(&[]), 2);
    is(run(&["--config"]), 2);
    is(run(&["--config", "/nonexistent/gate.json"]), 2);
    is(run(&["--config", &file, "--live"]), 2);
    is(run(&["--config", &file, "--check-config", &file]), 2);
    is(run(&["--config", &file, "--addr", ":1"]), 2);
    is(run(&["--version"]), 0);
    is(run(&["--help"]), 0);
}

#[test]
fn a_database_of_another_program_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config_in(&dir);
    std::fs::write(dir.path().join("plain"), "not a database").unwrap();
    config["database"] = json!(dir.path().join("plain"));
    let file = write(&dir, &config);
    is(run(&["--config", &file, "--quiet"]), 2);
}

#[test]
fn the_command_line_is_consistent() {
    gate::command().debug_assert();
}
