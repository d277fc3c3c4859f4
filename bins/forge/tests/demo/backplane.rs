//! The part about packages: what it shows holds, and what does not hold ends it.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::user::{Home, processes_with, signal, wait_until};

#[test]
fn a_package_on_its_way_from_one_command() {
    let home = Home::new();
    let (code, out, err) = home.demo(&["--part", "backplane"]);
    assert_eq!(code, 0, "{out}{err}");
    for wanted in [
        "$ backplane pack hello -o hello.tar.gz\n",
        "this token has not the scope `publish`",
        "$ backplane catalog\n",
        "$ backplane download hello -o got.tar.gz\n",
        "same: 3 files\n",
        "422 invalid_package: entry 1 `../escaped.txt`",
        "error: plugin `hello` in channel `stable` is yanked\n",
        "is yanked: superseded\n",
    ] {
        assert!(err.contains(wanted), "{wanted}: {err}");
    }
    for wanted in [
        "downloaded       the same bytes, sha256:",
        "hostile archive  refused, nothing written",
        "hostile upload   refused, nothing published",
    ] {
        assert!(out.contains(wanted), "{wanted}: {out}");
    }
    for line in out.lines().chain(err.lines()) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    home.is_clean();
}

#[test]
fn the_record_has_every_command_and_no_token() {
    let home = Home::new();
    let (code, out, err) = home.demo(&["--part", "backplane", "--format", "json", "-q"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert_eq!(out.lines().count(), 1);
    let record: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(record["part"], "backplane");
    assert_eq!(record["state"], Value::Null);
    let commands = record["commands"].as_array().unwrap();
    let failed = commands.iter().filter(|one| one["exit_code"] != 0);
    let failed: Vec<_> = failed.map(|one| one["command"].as_str().unwrap()).collect();
    assert_eq!(
        failed,
        [
            "backplane publish hello --channel stable",
            "backplane unpack hostile.tar.gz -o target",
            "backplane resolve hello",
        ]
    );
    let release = record["release_id"].as_str().unwrap();
    assert!(
        release.starts_with("r-") && release.len() == 34,
        "{release}"
    );
    home.is_clean();
}

#[test]
fn a_kept_registry_is_one_to_go_on_with() {
    let home = Home::new();
    let (code, out, err) = home.demo(&["--part", "backplane", "--keep", "--format", "json"]);
    assert_eq!(code, 0, "{out}{err}");
    let record: Value = serde_json::from_str(&out).unwrap();
    let work = record["state"].as_str().unwrap();
    assert!(err.contains(&format!("cd {work}\n")), "{err}");
    let state = std::path::Path::new(work).parent().unwrap();
    for token in ["reader.token", "publisher.token"] {
        let token = fs::read_to_string(state.join(token)).unwrap();
        assert!(!out.contains(token.trim()) && !err.contains(token.trim()));
    }
    assert!(state.join("registry/registry.sqlite").is_file());
    assert!(!state.join("work/escaped.txt").exists());
    for state in home.state_folders() {
        fs::remove_dir_all(state).unwrap();
    }
    home.is_clean();
}

#[test]
fn an_interrupt_stops_the_registry_and_leaves_nothing() {
    for name in ["-INT", "-TERM"] {
        let home = Home::new();
        let mut demo = home
            .command(&["demo", "--part", "backplane"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let state = || home.state_folders().into_iter().next();
        wait_until("the registry is there", || {
            let log = state().map(|state| state.join("registry.log"));
            log.is_some_and(|log| fs::read_to_string(log).is_ok_and(|log| log.contains("startup")))
        });
        let folder = state();
        signal(name, demo.id());
        // The last step may have been done already.
        let code = demo.wait().unwrap().code();
        assert!(matches!(code, Some(0 | 2)), "{name}: {code:?}");
        if let Some(folder) = folder {
            let folder = folder.display().to_string();
            assert!(processes_with(&folder, "cmdline").is_empty(), "{name}");
        }
        home.is_clean();
    }
}
