//! The configuration file: what passes, and what every refusal names.

use gate::{GateConfig, TokenSource};
use serde_json::{Value, json};
use test_case::test_case;

use crate::support::{config_in, read_config};

/// A file as the original's operators write it.
const ORIGINAL: &str = r#"{
  "version": 1,
  "listen": "127.0.0.1:8080",
  "database": "file:/var/lib/agent-forge/gate.db?mode=rwc",
  "owner_token_env": "FORGE_OWNER_TOKEN",
  "recovery_interval": "1s",
  "lease_poll_interval": "100ms",
  "default_pool": "coding",
  "lifecycle": {"lease_ttl": "30s", "retry_base": "1s", "max_attempts": 3},
  "default_execution": {
    "plugin_id": "reference", "environment": [], "plugin_timeout": "15m", "check_timeout": "10m",
    "git_timeout": "1m", "cleanup_timeout": "10s", "plugin_output_bytes": 1048576,
    "check_output_bytes": 2048, "git_output_bytes": 1048576
  },
  "workers": [{"id": "worker-1", "pool": "coding", "token_env": "FORGE_WORKER_TOKEN", "concurrency": 4}],
  "repositories": [{
    "id": "agent-forge", "default_branch": "main", "worker_pool": "coding",
    "execution": {
      "plugin_id": "codex", "environment": ["PATH"], "plugin_timeout": "15m", "check_timeout": "10m",
      "git_timeout": "1m", "cleanup_timeout": "10s", "plugin_output_bytes": 1048576,
      "check_output_bytes": 2048, "git_output_bytes": 1048576
    }
  }]
}"#;

fn changed(pointer: &str, value: Value) -> Result<GateConfig, strict_json::FieldError> {
    let mut config: Value = serde_json::from_str(ORIGINAL).unwrap();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = config.pointer_mut(parent).unwrap();
    match key.parse::<usize>() {
        Ok(index) => parent[index] = value,
        Err(_) => parent[key] = value,
    }
    read_config(&config)
}

fn dropped(pointer: &str) -> Result<GateConfig, strict_json::FieldError> {
    let mut config: Value = serde_json::from_str(ORIGINAL).unwrap();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    config
        .pointer_mut(parent)
        .unwrap()
        .as_object_mut()
        .unwrap()
        .remove(key)
        .unwrap();
    read_config(&config)
}

#[test]
fn the_originals_file_is_accepted_as_it_is() {
    let config = read_config(&serde_json::from_str(ORIGINAL).unwrap()).unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.workers[0].concurrency, 4);
    assert_eq!(
        config.owner_token,
        TokenSource::Env("FORGE_OWNER_TOKEN".parse().unwrap())
    );
    assert_eq!(config.lifecycle.lease_ttl.as_secs(), 30);
    assert!(config.tls.is_none() && config.allowed_hosts.is_none() && !config.allow_plain_listener);
    assert!(dropped("/repositories").unwrap().repositories.is_empty());
}

#[test_case("/public_repository_root", json!("/srv/repos"))]
#[test_case("/git_executable", json!("/usr/bin/git"))]
#[test_case("/deployment_profiles", json!([]))]
#[test_case("/delivery", json!({}))]
#[test_case("/repositories/0/repository_url", json!("https://github.com/a/b.git"))]
#[test_case("/repositories/0/deployment_profile", json!("x"))]
fn what_this_gate_does_not_do_is_refused_by_name(pointer: &str, value: Value) {
    let error = changed(pointer, value).unwrap_err().to_string();
    let name = pointer.rsplit_once('/').unwrap().1;
    assert!(
        error.contains(name) && error.contains("does not support"),
        "{error}"
    );
}

#[test]
fn every_required_field_is_missed_by_its_path() {
    for pointer in [
        "/version",
        "/listen",
        "/database",
        "/owner_token_env",
        "/recovery_interval",
        "/lease_poll_interval",
        "/default_pool",
        "/lifecycle",
        "/lifecycle/lease_ttl",
        "/lifecycle/retry_base",
        "/lifecycle/max_attempts",
        "/default_execution",
        "/default_execution/plugin_id",
        "/default_execution/environment",
        "/default_execution/git_output_bytes",
        "/workers",
        "/workers/0/id",
        "/workers/0/pool",
        "/workers/0/token_env",
        "/workers/0/concurrency",
        "/repositories/0/default_branch",
        "/repositories/0/worker_pool",
        "/repositories/0/execution",
        "/repositories/0/execution/check_timeout",
    ] {
        let path = pointer[1..].replace("/0/", "[0].").replace('/', ".");
        let error = dropped(pointer).unwrap_err();
        assert_eq!(error.path(), path, "{error}");
    }
}

#[test_case("/version", json!(2))]
#[test_case("/version", json!("1"))]
#[test_case("/listen", json!(""))]
#[test_case("/listen", json!("127.0.0.1"))]
#[test_case("/database", json!(""))]
#[test_case("/database", json!("file:x?mode=ro"))]
#[test_case("/owner_token_env", json!("lower"))]
#[test_case("/recovery_interval", json!("0s"))]
#[test_case("/recovery_interval", json!("999us"))]
#[test_case("/recovery_interval", json!("1h1ms"))]
#[test_case("/recovery_interval", json!("31s"); "longer than the lease")]
#[test_case("/recovery_interval", json!(1))]
#[test_case("/recovery_interval", json!("1 s"))]
#[test_case("/lease_poll_interval", json!("61s"))]
#[test_case("/default_pool", json!("nobody"))]
#[test_case("/lifecycle/lease_ttl", json!("24h1ms"))]
#[test_case("/lifecycle/max_attempts", json!(0))]
#[test_case("/lifecycle/max_attempts", json!(101))]
#[test_case("/lifecycle/max_attempts", json!(1.0))]
#[test_case("/lifecycle/x", json!(1))]
#[test_case("/default_execution/environment/0", json!("path"))]
#[test_case("/default_execution/check_output_bytes", json!(1_048_577))]
#[test_case("/default_execution/plugin_output_bytes", json!(0))]
#[test_case("/default_execution/plugin_output_bytes", json!(67_108_865))]
#[test_case("/workers", json!([]))]
#[test_case("/workers/0/id", json!("Worker"))]
#[test_case("/workers/0/concurrency", json!(0))]
#[test_case("/workers/0/concurrency", json!(65))]
#[test_case("/workers/0/x", json!(1))]
#[test_case("/repositories/0/id", json!(".."))]
#[test_case("/repositories/0/default_branch", json!("a..b"))]
#[test_case("/repositories/0/worker_pool", json!("nobody"))]
#[test_case("/repositories/0/x", json!(1))]
#[test_case("/allowed_hosts", json!(["a:80"]))]
#[test_case("/allowed_hosts", json!([]))]
#[test_case("/allowed_hosts", json!("a"))]
#[test_case("/allowed_origins", json!(["forge.example"]))]
#[test_case("/allowed_origins", json!(["https://forge.example/path"]))]
#[test_case("/log_format", json!("xml"))]
#[test_case("/metrics_without_token", json!("yes"))]
#[test_case("/tls", json!({"certificate": "c"}))]
#[test_case("/tls", json!(null))]
#[test_case("/allow_plain_listener", json!("yes"))]
#[test_case("/listen", json!("0.0.0.0:8080"))]
#[test_case("/listen", json!(":8080"))]
#[test_case("/listen", json!("[::]:8080"))]
#[test_case("/unheard_of", json!(1))]
fn a_bad_value_is_refused_by_its_path(pointer: &str, value: Value) {
    let mut config: Value = serde_json::from_str(ORIGINAL).unwrap();
    config["default_execution"]["environment"] = json!(["PATH"]);
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = config.pointer_mut(parent).unwrap();
    match key.parse::<usize>() {
        Ok(index) => parent[index] = value,
        Err(_) => parent[key] = value,
    }
    let error = read_config(&config).unwrap_err();
    let path = pointer[1..]
        .replace("/0/", "[0].")
        .replace("/0", "[0]")
        .replace('/', ".");
    assert!(error.path().starts_with(&path), "{error}");
}

#[test]
fn names_are_unique_and_slots_are_counted() {
    let worker = |number: usize, concurrency: usize| json!({"id": format!("w{number}"), "pool": "coding", "token_env": format!("T{number}"), "concurrency": concurrency});
    let workers = |count: usize, concurrency: usize| -> Value {
        (0..count)
            .map(|number| worker(number, concurrency))
            .collect()
    };
    assert!(changed("/workers", workers(4, 64)).is_ok());
    assert!(changed("/workers", workers(256, 1)).is_ok());
    let error = changed("/workers", workers(257, 1)).unwrap_err();
    assert_eq!(error.path(), "workers");
    let mut one_more = workers(4, 64);
    one_more.as_array_mut().unwrap().push(worker(9, 1));
    assert_eq!(
        changed("/workers", one_more).unwrap_err().path(),
        "workers[4].concurrency"
    );
    assert_eq!(
        changed("/workers", json!([worker(0, 1), worker(0, 1)]))
            .unwrap_err()
            .path(),
        "workers[1].id"
    );
    let mut shared = json!([worker(0, 1), worker(1, 1)]);
    shared[1]["token_env"] = json!("T0");
    assert_eq!(
        changed("/workers", shared).unwrap_err().path(),
        "workers[1]"
    );
    assert_eq!(
        changed("/workers/0/token_env", json!("FORGE_OWNER_TOKEN"))
            .unwrap_err()
            .path(),
        "workers[0]"
    );
    let repository = serde_json::from_str::<Value>(ORIGINAL).unwrap()["repositories"][0].clone();
    let twice = json!([repository, repository]);
    assert_eq!(
        changed("/repositories", twice).unwrap_err().path(),
        "repositories[1].id"
    );
    assert_eq!(
        changed("/default_execution/environment", json!(["A", "A"]))
            .unwrap_err()
            .path(),
        "default_execution.environment[1]"
    );
    let many = |count: usize| -> Value {
        (0..count)
            .map(|number| json!(format!("V{number}")))
            .collect()
    };
    assert!(changed("/default_execution/environment", many(64)).is_ok());
    assert!(changed("/default_execution/environment", many(65)).is_err());
}

#[test]
fn a_token_comes_from_exactly_one_place() {
    let dir = tempfile::tempdir().unwrap();
    let config = config_in(&dir);
    assert!(matches!(
        read_config(&config).unwrap().owner_token,
        TokenSource::File(_)
    ));
    let mut both = config.clone();
    both["owner_token_env"] = json!("OWNER");
    assert!(
        read_config(&both)
            .unwrap_err()
            .to_string()
            .contains("one of the two")
    );
    let mut neither = config.clone();
    neither["workers"][1]
        .as_object_mut()
        .unwrap()
        .remove("token_file");
    let error = read_config(&neither).unwrap_err();
    assert_eq!(error.path(), "workers[1].token_env");
}

#[test_case("0.0.0.0:8443", "tls", json!({"certificate": "c", "key": "k"}); "with tls")]
#[test_case(":8080", "allow_plain_listener", json!(true); "by the operator's word")]
#[test_case("localhost:8080", "allow_plain_listener", json!(false); "a name is judged at the start")]
#[test_case("[::1]:8080", "allow_plain_listener", json!(false); "loopback")]
fn r57_a_listener_may_be_plain_or_public_but_not_both(listen: &str, field: &str, value: Value) {
    let mut config: Value = serde_json::from_str(ORIGINAL).unwrap();
    config["listen"] = json!(listen);
    config[field] = value;
    read_config(&config).unwrap();
}

#[test]
fn our_additions_are_read() {
    let mut config: Value = serde_json::from_str(ORIGINAL).unwrap();
    config["tls"] = json!({"certificate": "/etc/forge/cert.pem", "key": "/etc/forge/key.pem"});
    config["allowed_hosts"] = json!(["Forge.Example"]);
    config["allowed_origins"] = json!(["https://UI.example:8443"]);
    config["log_format"] = json!("human");
    config["allow_plain_listener"] = json!(true);
    let config = read_config(&config).unwrap();
    assert_eq!(config.tls.unwrap().key.to_str(), Some("/etc/forge/key.pem"));
    assert!(config.allowed_hosts.unwrap().contains("forge.example"));
    assert!(config.allowed_origins.contains("https://ui.example:8443"));
}
