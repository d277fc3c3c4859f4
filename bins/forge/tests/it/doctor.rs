//! `forge doctor` against a healthy appliance and against broken ones.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::appliance::{Appliance, OWNER_TOKEN, Setup, WORKER_TOKEN, wait_until};

/// An appliance whose Worker is connected.
fn healthy() -> Appliance {
    let mut appliance = Appliance::start(&Setup::default());
    appliance.start_worker();
    wait_until("the Worker is connected", || {
        appliance.forge(&["workers"]).1.contains("connected")
    });
    appliance
}

/// Exit code and findings; what is said fits the screen and spills nothing.
fn doctor(appliance: &Appliance, words: &[&str]) -> (i32, Vec<Value>) {
    let (gate, worker) = (appliance.path("gate.json"), appliance.path("worker.json"));
    let mut all = vec!["doctor"];
    if !words.contains(&"--gate-config") {
        all.extend(["--gate-config", gate.to_str().unwrap()]);
    }
    all.extend(["--worker-config", worker.to_str().unwrap()]);
    all.extend(words);
    let (code, out, err) = appliance.forge(&all);
    for line in out.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    all.extend(["--format", "json"]);
    let (again, records, errors) = appliance.forge(&all);
    assert_eq!(code, again, "{out}{err}{records}");
    for said in [&out, &err, &records, &errors] {
        assert!(!said.contains(OWNER_TOKEN) && !said.contains(WORKER_TOKEN));
        assert!(!said.contains('\u{1b}'), "{said}");
    }
    let mut records: Vec<Value> = records
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let sums = records.pop().unwrap();
    let count = |status: &str| records.iter().filter(|one| one["status"] == status).count();
    assert_eq!(
        sums,
        json!({"ok": count("ok"), "warn": count("warn"), "fail": count("fail")})
    );
    for record in &records {
        assert_eq!(
            record["status"] != "ok",
            record["fix"].is_string(),
            "{record}"
        );
    }
    (code, records)
}

/// Exactly these fail, and the first says this.
fn fails(appliance: &Appliance, words: &[&str], checks: &[&str], says: &str) {
    let (code, records) = doctor(appliance, words);
    let failed: Vec<&Value> = records
        .iter()
        .filter(|one| one["status"] == "fail")
        .collect();
    let names: Vec<&str> = failed
        .iter()
        .map(|one| one["check"].as_str().unwrap())
        .collect();
    assert_eq!((code, names.as_slice()), (1, checks), "{records:#?}");
    let message = failed[0]["message"].as_str().unwrap();
    assert!(message.contains(says), "{message}");
}

fn edit(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut config: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    change(&mut config);
    fs::write(path, config.to_string()).unwrap();
}

#[test]
fn a_healthy_appliance_has_nothing_that_fails() {
    let appliance = healthy();
    let (code, records) = doctor(&appliance, &[]);
    assert_eq!(code, 0, "{records:#?}");
    let checks: Vec<&str> = records
        .iter()
        .map(|one| one["check"].as_str().unwrap())
        .collect();
    for check in [
        "gate config",
        "gate owner token",
        "gate token of worker-1",
        "gate database",
        "gate space",
        "worker config",
        "worker token",
        "worker worktree_root",
        "worker space of runtime_root",
        "worker repository main",
        "worker plugin edit",
        "worker git",
        "worker processes",
        "worker start",
        "address",
        "connection",
        "gate",
        "version",
        "clock",
        "token",
        "pool coding",
    ] {
        assert!(checks.contains(&check), "no {check} in {checks:?}");
    }
}

#[test]
fn a_gate_that_is_down_is_told_from_one_that_is_none() {
    let mut appliance = healthy();
    appliance.kill_gate();
    fails(&appliance, &[], &["connection"], "refused");
    // Something else has the port.
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", other.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in other.incoming().map_while(Result::ok) {
            drop(stream.write_all(b"220 mail.example ESMTP\r\n"));
            drop(stream.read(&mut [0; 512]));
        }
    });
    fails(&appliance, &["--gate-url", &url], &["gate"], "");
    fails(
        &appliance,
        &["--gate-url", "http://gate.invalid:80", "--allow-plain"],
        &["connection"],
        "gate.invalid:80",
    );
    let plain = ["--gate-url", "http://gate.invalid"];
    fails(&appliance, &plain, &["address"], "");
}

#[test]
fn a_token_that_is_wrong_missing_or_open_to_everybody_is_named() {
    let appliance = healthy();
    let wrong = appliance.path("wrong.token");
    fs::write(&wrong, "canary-of-nobody\n").unwrap();
    fs::set_permissions(&wrong, fs::Permissions::from_mode(0o600)).unwrap();
    let file = ["--token-file", wrong.to_str().unwrap()];
    fails(&appliance, &file, &["token"], "refuses the token");
    fs::set_permissions(&wrong, fs::Permissions::from_mode(0o644)).unwrap();
    fails(&appliance, &file, &["token file", "token"], "0644");
    let gone = appliance.path("gone.token");
    let file = ["--token-file", gone.to_str().unwrap()];
    fails(&appliance, &file, &["token file", "token"], "gone.token");
}

#[test]
fn a_pool_without_workers_fails_and_a_paused_one_warns() {
    let mut appliance = healthy();
    appliance.forge(&["pause", "coding", "--reason", "new disk"]);
    let (code, records) = doctor(&appliance, &[]);
    assert_eq!(code, 0, "{records:#?}");
    let paused = records.iter().find(|one| one["status"] == "warn").unwrap();
    assert!(paused["message"].as_str().unwrap().ends_with(": new disk"));
    assert!(
        paused["fix"]
            .as_str()
            .unwrap()
            .starts_with("`forge resume coding`")
    );
    appliance.kill_worker();
    wait_until("the Worker is away", || {
        appliance.forge(&["workers"]).1.contains("away")
    });
    fails(&appliance, &[], &["pool coding"], "0 of 1 slots");
}

#[test]
fn a_worker_host_that_lacks_something_says_what() {
    let appliance = healthy();
    let config = appliance.path("worker.json");
    let before = fs::read(&config).unwrap();
    edit(&config, |config| {
        config["plugins"][1]["argv"] = json!(["/nonexistent/plugin"])
    });
    fails(
        &appliance,
        &["--offline"],
        &["worker plugin edit", "worker start"],
        "`/nonexistent/plugin` is not there",
    );
    edit(&config, |config| {
        config["plugins"][1]["argv"] = json!([appliance.path("worker.json")])
    });
    fails(
        &appliance,
        &["--offline"],
        &["worker plugin edit", "worker start"],
        "is no executable file",
    );
    fs::write(&config, &before).unwrap();
    let trees = appliance.path("trees");
    fs::set_permissions(&trees, fs::Permissions::from_mode(0o777)).unwrap();
    fails(
        &appliance,
        &["--offline"],
        &["worker worktree_root"],
        "others can write",
    );
    fs::set_permissions(&trees, fs::Permissions::from_mode(0o700)).unwrap();
    edit(&config, |config| config["surprise"] = json!(true));
    fails(&appliance, &["--offline"], &["worker config"], "surprise");
    fs::write(&config, &before).unwrap();
    fs::set_permissions(
        appliance.path("worker.token"),
        fs::Permissions::from_mode(0o604),
    )
    .unwrap();
    // Both files name it.
    fails(
        &appliance,
        &["--offline"],
        &["gate token of worker-1", "worker token"],
        "0604",
    );
}

#[test]
fn a_gate_host_that_would_be_refused_says_why() {
    let appliance = healthy();
    let config = appliance.path("gate.json");
    fs::set_permissions(appliance.path("gate"), fs::Permissions::from_mode(0o755)).unwrap();
    fails(
        &appliance,
        &["--offline"],
        &["gate database"],
        "not private",
    );
    fs::set_permissions(appliance.path("gate"), fs::Permissions::from_mode(0o700)).unwrap();
    edit(&config, |config| {
        config["owner_token_file"] = config["workers"][0]["token_file"].clone();
    });
    fails(&appliance, &["--offline"], &["gate config"], "");
    let copy = appliance.path("copy.token");
    fs::copy(appliance.path("worker.token"), &copy).unwrap();
    edit(&config, |config| config["owner_token_file"] = json!(copy));
    fails(
        &appliance,
        &["--offline"],
        &["gate tokens"],
        "also the token of the owner",
    );
}

#[test]
fn arguments_without_anything_to_look_at_are_refused() {
    let appliance = Appliance::start(&Setup::default());
    let (code, out, err) = appliance.forge(&["doctor", "--offline"]);
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    assert!(err.contains("--worker-config"), "{err}");
}
