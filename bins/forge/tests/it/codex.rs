//! The real Codex CLI behind its plugin, through Gate and Worker to a candidate; a provider on
//! loopback says what a model would.

use std::fs;

use crate::appliance::{Appliance, FORGE, Setup, words};
use crate::provider::{KEY, Provider, configure, real_codex};

const FINAL: &str = r#"{"commit_subject":"feat: answer the task","summary":"Wrote the answer.","changes":["answer.txt is new"]}"#;

#[test]
fn a_task_becomes_a_candidate_by_the_real_codex_cli() {
    let provider = Provider::start("printf 'forty-two\\n' >answer.txt", FINAL);
    let setup = Setup {
        plugin_timeout: "60s",
        plugin: Some(words(&[FORGE, "__codex-plugin"])),
        variables: vec![
            ("CODEX_BIN", real_codex().to_string_lossy().into_owned()),
            ("CODEX_HOME", "@FOLDER@/codex".to_owned()),
            (KEY, "any".to_owned()),
            ("HOME", "@FOLDER@".to_owned()),
            // The CLI wants its home outside of the temporary directory.
            ("TMPDIR", "@FOLDER@/tmp".to_owned()),
        ],
        ..Setup::default()
    };
    let mut appliance = Appliance::start(&setup);
    fs::create_dir(appliance.path("tmp")).unwrap();
    configure(&appliance.path("codex"), provider.port);
    appliance.start_worker();
    let job = appliance.submit(
        "write the answer",
        &[vec!["grep", "-q", "forty-two", "answer.txt"]],
    );
    let done = appliance.wait_for_status(&job, &["succeeded", "failed", "retry_wait"]);
    assert_eq!(done["status"], "succeeded", "{done}\n{}", appliance.logs());
    let candidate = done["candidate_sha"].as_str().unwrap();
    assert_eq!(
        appliance.git(&["rev-list", "--parents", "-n", "1", candidate]),
        format!("{candidate} {}", appliance.base())
    );
    assert_eq!(
        appliance.git(&["diff", "--name-status", appliance.base(), candidate]),
        "A\tanswer.txt"
    );
    assert_eq!(
        appliance.git(&["log", "-1", "--format=%s", candidate]),
        "feat: answer the task"
    );
    let (code, out, err) = appliance.forge(&["result", &job]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("Wrote the answer."), "{out}");
    assert_eq!(
        fs::read_dir(appliance.path("tmp"))
            .unwrap()
            .flatten()
            .filter(|entry| entry
                .file_name()
                .to_string_lossy()
                .starts_with("forge-codex-"))
            .count(),
        0,
        "the private directory is gone"
    );
}
