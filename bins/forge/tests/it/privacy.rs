//! Credentials reach no plugin, no check, no log and no database.

use crate::appliance::{Appliance, OWNER_TOKEN, Setup, WORKER_TOKEN, words};

#[test]
fn r59_secrets_reach_no_plugin_check_log_database_or_commit() {
    let script = r#"env > seen.txt; cat /proc/self/environ >> seen.txt; tr '\0' '\n' < /proc/self/cmdline >> seen.txt
ls -l /proc/self/fd >> seen.txt; cat >> seen.txt"#;
    let setup = Setup {
        command: words(&["/bin/sh", "-c", script]),
        ..Setup::default()
    };
    let mut appliance = Appliance::start(&setup);
    appliance.start_worker();
    let check =
        r#"env >> "$HOME/seen"; ! grep -q canary "$HOME/seen" && ! env | grep -q FORGE_OWNER"#;
    let job = appliance.submit("an answer", &[vec!["sh", "-c", check]]);
    let done = appliance.wait_for_status(&job, &["succeeded", "failed"]);
    assert_eq!(done["status"], "succeeded", "{}", appliance.logs());
    let candidate = done["candidate_sha"].as_str().unwrap();
    let seen = appliance.git(&["show", &format!("{candidate}:seen.txt")]);
    for canary in [OWNER_TOKEN, WORKER_TOKEN, "canary-environment-77"] {
        assert!(!seen.contains(canary), "a plugin saw {canary}: {seen}");
        assert!(!appliance.logs().contains(canary), "a log holds {canary}");
        for name in ["gate.db", "gate.db-wal"] {
            let bytes = std::fs::read(appliance.path("gate").join(name)).unwrap_or_default();
            let found = bytes
                .windows(canary.len())
                .any(|window| window == canary.as_bytes());
            assert!(!found, "{name} holds {canary}");
        }
    }
}
