//! The command line and the configuration.

use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use serde_json::{Value, json};

use crate::bed::Bed;

fn bed() -> Bed {
    Bed::new("ws://127.0.0.1:1")
}

fn run(bed: &Bed, args: &[&str]) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = bed.program(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

fn check(bed: &Bed, more: &[&str]) -> (Option<i32>, String) {
    let config = bed.config_file().display().to_string();
    let mut args = vec!["--config", &config, "--check-config"];
    args.extend(more);
    let (code, _, stderr) = run(bed, &args);
    (code, stderr)
}

#[test]
fn version_and_help() {
    let bed = bed();
    let (code, stdout, _) = run(&bed, &["--version"]);
    assert_eq!(code, Some(0));
    assert!(stdout.starts_with("forge-worker "), "{stdout}");
    let (code, stdout, _) = run(&bed, &["--help"]);
    assert_eq!(code, Some(0));
    assert!(stdout.contains("Exit codes"), "{stdout}");
    let (code, stdout, _) = run(&bed, &["--generate", "man"]);
    assert_eq!(code, Some(0));
    assert!(stdout.contains("forge-worker"), "{stdout}");
    assert_eq!(run(&bed, &[]).0, Some(2));
    assert_eq!(run(&bed, &["--config", "x", "--live"]).0, Some(2));
}

#[test]
fn the_originals_spelling_of_the_flag_works() {
    let bed = bed();
    let config = bed.config_file().display().to_string();
    let (code, _, stderr) = run(&bed, &["-config", &config, "-check-config"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(run(&bed, &["--check-config", &config]).0, Some(0));
    assert_eq!(
        run(&bed, &["--config", &config, "--check-config", &config]).0,
        Some(2)
    );
    assert_eq!(run(&bed, &["--check-config"]).0, Some(2));
}

#[test]
fn check_config_judges_the_file_alone() {
    let mut bed = bed();
    bed.set_env("TEST_WORKER_TOKEN", None);
    bed.config["repository_roots"] = json!(["/nonexistent/repositories"]);
    bed.config["repositories"] = json!([{"id": "demo", "path": "/nonexistent/repositories/demo"}]);
    bed.config["plugins"][0]["argv"] = json!(["/nonexistent/plugin"]);
    assert_eq!(check(&bed, &[]).0, Some(0));
    let (code, stderr) = check(&bed, &["--live"]);
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("repository_roots[0]") && stderr.contains("/nonexistent"),
        "{stderr}"
    );
}

#[test]
fn the_documented_example_is_valid() {
    let page = include_str!("../../../../docs/reference/config-worker.md");
    let example = page
        .split("```json\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let mut bed = bed();
    bed.config = serde_json::from_str(example).unwrap();
    let (code, stderr) = check(&bed, &[]);
    assert_eq!(code, Some(0), "{stderr}");
}

type Change = (&'static str, fn(&mut Value), &'static str);

/// A field, what is done to the file, and what the message has to say beside the field.
const REFUSED: &[Change] = &[
    ("version", |file| file["version"] = json!(2), "must be 1"),
    ("extra", |file| file["extra"] = json!(1), "unknown"),
    (
        "gate_url",
        |file| file["gate_url"] = json!("http://x"),
        "ws://",
    ),
    (
        "gate_url",
        |file| file["gate_url"] = json!("ws://user:pw@x"),
        "user name or password",
    ),
    (
        "gate_url",
        |file| file["gate_url"] = json!("ws://x?a=b"),
        "query",
    ),
    (
        "gate_url",
        |file| file["gate_url"] = json!(format!("wss://x/{}", "y".repeat(2041))),
        "2048",
    ),
    (
        "gate_url",
        |file| file["gate_url"] = json!("wss:///x"),
        "must name a host",
    ),
    (
        "gate_url",
        |file| file["gate_url"] = json!("wss:x"),
        "must begin with",
    ),
    (
        "gate_url",
        |file| file["gate_url"] = json!("wss://x\n"),
        "white space",
    ),
    ("id", |file| file["id"] = json!("Worker"), ""),
    (
        "token_file",
        |file| file["token_file"] = json!("/t"),
        "exactly one",
    ),
    (
        "token_env",
        |file| {
            file.as_object_mut().unwrap().remove("token_env");
        },
        "exactly one",
    ),
    (
        "heartbeat_interval",
        |file| file["heartbeat_interval"] = json!("0s"),
        "",
    ),
    (
        "heartbeat_interval",
        |file| file["heartbeat_interval"] = json!("1h1ns"),
        "must be from 1ns to 1h",
    ),
    (
        "concurrency",
        |file| file["concurrency"] = json!(0),
        "1 to 64",
    ),
    (
        "concurrency",
        |file| file["concurrency"] = json!(65),
        "1 to 64",
    ),
    (
        "repository_roots",
        |file| file["repository_roots"] = json!([]),
        "1 to 64",
    ),
    (
        "repository_roots[1]",
        |file| file["repository_roots"] = json!(["/a", "/a"]),
        "second time",
    ),
    (
        "runtime_root",
        |file| file["runtime_root"] = file["worktree_root"].clone(),
        "overlaps",
    ),
    (
        "worktree_root",
        |file| file["worktree_root"] = json!("relative"),
        "absolute",
    ),
    (
        "repositories[1].id",
        |file| {
            let twice = file["repositories"][0].clone();
            file["repositories"] = json!([twice.clone(), twice]);
        },
        "repeats",
    ),
    (
        "repositories[0].name",
        |file| file["repositories"][0]["name"] = json!("x"),
        "unknown",
    ),
    ("plugins", |file| file["plugins"] = json!([]), "1 to 128"),
    (
        "plugins[0].argv[0]",
        |file| file["plugins"][0]["argv"][0] = json!("python3"),
        "absolute",
    ),
    (
        "plugins[0].argv[1]",
        |file| file["plugins"][0]["argv"][1] = json!(""),
        "1 to 4096",
    ),
    (
        "plugins[0].capabilities[0]",
        |file| file["plugins"][0]["capabilities"] = json!(["fly"]),
        "none of",
    ),
    (
        "plugins[0].capabilities",
        |file| file["plugins"][0]["capabilities"] = json!(["cancel"]),
        "workspace_edit",
    ),
    (
        "environment_allowlist",
        |file| {
            file["environment_allowlist"] = json!(["PATH", "TEST_WORKER_TOKEN"]);
        },
        "token",
    ),
    (
        "check_environment_allowlist",
        |file| {
            file["check_environment_allowlist"] = json!(["HOME"]);
        },
        "`HOME`",
    ),
    (
        "environment_allowlist[1]",
        |file| file["environment_allowlist"] = json!(["PATH", "PATH"]),
        "second time",
    ),
    (
        "ceilings.check_output_bytes",
        |file| {
            file["ceilings"]["check_output_bytes"] = json!(1_048_577);
        },
        "1048576",
    ),
    (
        "ceilings.git_timeout",
        |file| file["ceilings"]["git_timeout"] = json!("24h0m1s"),
        "",
    ),
    (
        "ceilings.git_timeout",
        |file| {
            file["ceilings"]
                .as_object_mut()
                .unwrap()
                .remove("git_timeout");
        },
        "missing",
    ),
    (
        "ca_file",
        |file| file["ca_file"] = json!("/ca.pem"),
        "wss://",
    ),
    (
        "drain_timeout",
        |file| file["drain_timeout"] = json!(30),
        "string",
    ),
    (
        "prepared_workspaces",
        |file| file["prepared_workspaces"] = json!(17),
        "0 to 16",
    ),
    (
        "allow_plain",
        |file| file["allow_plain"] = json!(null),
        "null",
    ),
    (
        "state_dir",
        |file| file["state_dir"] = file["worktree_root"].clone(),
        "is or contains `worktree_root`",
    ),
    (
        "state_dir",
        |file| {
            file["state_dir"] = json!(format!(
                "{}/x",
                file["repository_roots"][0].as_str().unwrap()
            ))
        },
        "overlaps",
    ),
    (
        "min_free_bytes",
        |file| file["min_free_bytes"] = json!((1_u64 << 50) + 1),
        "0 to 1125899906842624",
    ),
];

#[test]
fn each_refusal_names_file_field_and_reason() {
    for (field, change, reason) in REFUSED {
        let mut bed = bed();
        change(&mut bed.config);
        let (code, stderr) = check(&bed, &[]);
        assert_eq!(code, Some(2), "{field}: {stderr}");
        assert!(stderr.contains("worker.json"), "{stderr}");
        assert!(stderr.contains(&format!("`{field}`")), "{field}: {stderr}");
        assert!(stderr.contains(reason), "{field} {reason}: {stderr}");
    }
}

#[test]
fn every_bound_is_inclusive() {
    let mut bed = bed();
    bed.config["concurrency"] = json!(64);
    bed.config["heartbeat_interval"] = json!("1h");
    bed.config["prepared_workspaces"] = json!(16);
    bed.config["min_free_bytes"] = json!(1_u64 << 50);
    bed.config["ceilings"]["check_output_bytes"] = json!(1_048_576);
    bed.config["ceilings"]["plugin_output_bytes"] = json!(64 << 20);
    bed.config["ceilings"]["git_timeout"] = json!("24h");
    bed.config["gate_url"] = json!(format!("wss://x/{}", "y".repeat(2040)));
    let (code, stderr) = check(&bed, &[]);
    assert_eq!(code, Some(0), "{stderr}");
}

#[test]
fn lists_that_may_be_empty_may_be_absent() {
    let mut bed = bed();
    let file = bed.config.as_object_mut().unwrap();
    for name in [
        "repositories",
        "environment_allowlist",
        "check_environment_allowlist",
    ] {
        file.remove(name);
    }
    assert_eq!(check(&bed, &[]).0, Some(0));
}

type LiveChange = (&'static str, fn(&mut Bed), &'static str);

/// A field, what is done to the host, and what the message has to say beside the field.
const REFUSED_HERE: &[LiveChange] = &[
    (
        "token_env",
        |bed| bed.set_env("TEST_WORKER_TOKEN", None),
        "TEST_WORKER_TOKEN",
    ),
    (
        "token_env",
        |bed| bed.set_env("TEST_WORKER_TOKEN", Some("")),
        "TEST_WORKER_TOKEN",
    ),
    (
        "worktree_root",
        |bed| std::fs::remove_dir(bed.root.join("worktrees")).unwrap(),
        "resolved",
    ),
    (
        "runtime_root",
        |bed| {
            std::fs::remove_dir(bed.root.join("runtime")).unwrap();
            std::fs::write(bed.root.join("runtime"), "").unwrap();
        },
        "not a directory",
    ),
    (
        "runtime_root",
        |bed| {
            std::fs::remove_dir(bed.root.join("runtime")).unwrap();
            std::os::unix::fs::symlink(bed.root.join("repositories"), bed.root.join("runtime"))
                .unwrap();
        },
        "overlaps",
    ),
    (
        "state_dir",
        |bed| {
            let state = bed.root.join("state");
            std::fs::create_dir(&state).unwrap();
            std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o750)).unwrap();
            bed.config["state_dir"] = json!(state);
        },
        "chmod 700",
    ),
    (
        "state_dir",
        |bed| {
            let state = bed.root.join("state");
            std::os::unix::fs::symlink(bed.root.join("bin"), &state).unwrap();
            bed.config["state_dir"] = json!(state);
        },
        "symbolic link",
    ),
    (
        "state_dir",
        |bed| bed.config["state_dir"] = json!(bed.root.join("missing/state")),
        "cannot be reached",
    ),
    (
        "repositories[demo].path",
        |bed| {
            std::fs::create_dir(bed.root.join("other")).unwrap();
            bed.config["repository_roots"] = json!([bed.root.join("other")]);
        },
        "none of the",
    ),
    (
        "plugins[shell].argv[0]",
        |bed| {
            bed.config["plugins"][0]["argv"] = json!([bed.root.join("bin/plugin.py")]);
        },
        "not an executable",
    ),
    (
        "git",
        |bed| bed.set_env("PATH", Some("/nonexistent")),
        "install it",
    ),
];

#[test]
fn the_live_check_names_what_the_host_lacks() {
    for (field, change, reason) in REFUSED_HERE {
        let mut bed = bed();
        change(&mut bed);
        assert_eq!(check(&bed, &[]).0, Some(0), "{field}");
        let (code, stderr) = check(&bed, &["--live"]);
        assert_eq!(code, Some(2), "{field}: {stderr}");
        assert!(
            stderr.contains(field) && stderr.contains(reason),
            "{field} {reason}: {stderr}"
        );
    }
    assert_eq!(check(&bed(), &["--live"]).0, Some(0));
}

#[test]
fn plain_connections_do_not_leave_the_machine_unless_allowed() {
    let mut bed = bed();
    bed.config["gate_url"] = json!("ws://gate.example:8080");
    for more in [&[][..], &["--live"]] {
        let (code, stderr) = check(&bed, more);
        assert_eq!(code, Some(2));
        assert!(
            stderr.contains("gate.example") && stderr.contains("allow_plain"),
            "{stderr}"
        );
    }
    bed.config["allow_plain"] = json!(true);
    assert_eq!(check(&bed, &[]).0, Some(0));
    assert_eq!(check(&bed, &["--live"]).0, Some(0));
}

#[test]
fn the_token_never_shows() {
    let mut bed = bed();
    bed.set_env("TEST_WORKER_TOKEN", Some("canary with a space"));
    let (code, stderr) = check(&bed, &["--live"]);
    assert_eq!(code, Some(2));
    assert!(!stderr.contains("canary"), "{stderr}");
}

#[test]
fn a_token_file_stands_for_the_variable() {
    let mut bed = bed();
    bed.set_env("TEST_WORKER_TOKEN", None);
    std::fs::write(bed.root.join("token"), "abc\n").unwrap();
    bed.config.as_object_mut().unwrap().remove("token_env");
    bed.config["token_file"] = json!(bed.root.join("token"));
    assert_eq!(check(&bed, &["--live"]).0, Some(0));
    std::fs::remove_file(bed.root.join("token")).unwrap();
    let (code, stderr) = check(&bed, &["--live"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("token_file"), "{stderr}");
}
