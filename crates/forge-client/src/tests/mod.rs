//! Every command against a Gate that says what the test wants.

mod candidates;
mod fake_gate;
mod network;
mod operator;
mod screens;
mod submitting;
mod tls;

use std::process::ExitCode;

use clap::Parser;
use cli_shell::{Captured, CliError, Ui};

use super::{Cli, HostChecks, command, run};
use fake_gate::FakeGate;

const JOB: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const ATTEMPT: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const BASE: &str = "1111111111111111111111111111111111111111";
const CANDIDATE: &str = "2222222222222222222222222222222222222222";

/// Nothing is known of hosts here.
const HOSTS: HostChecks = HostChecks {
    gate: |_| Box::pin(async { Vec::new() }),
    worker: |_| Box::pin(async { Vec::new() }),
};

/// What a command did.
struct Done {
    outcome: Result<ExitCode, CliError>,
    screen: Captured,
}

impl Done {
    fn ok(self) -> String {
        assert_eq!(
            self.outcome.unwrap(),
            ExitCode::SUCCESS,
            "{}",
            self.screen.err()
        );
        self.screen.out()
    }

    /// The exit code, the message with its causes, and the hints.
    fn failed(&self) -> (u8, String, String) {
        let error = self.outcome.as_ref().unwrap_err();
        let code = error.kind().exit_code();
        (code, error.messages().join(": "), error.hints().join("; "))
    }
}

/// Runs `forge LINE` against a Gate; words are split at spaces, `~` stands for one.
fn forge(gate: &FakeGate, line: &str) -> Done {
    let words = line.split(' ').map(|word| word.replace('~', " "));
    let tail = [
        "--gate-url".into(),
        gate.url(),
        "--token-file".into(),
        gate.token_file(),
    ];
    let args = std::iter::once("forge".to_owned()).chain(words).chain(tail);
    let args = cli_shell::normalize_args(&command(), args.map(Into::into));
    let cli = Cli::try_parse_from(args).unwrap();
    let (ui, screen) = Ui::captured(&cli.global);
    Done {
        outcome: run(&cli.command, &ui, &HOSTS),
        screen,
    }
}

fn job(status: &str, more: &str) -> String {
    format!(
        "{{\"id\":\"{JOB}\",\"status\":\"{status}\",\"created_at\":\"2026-11-30T14:00:00Z\",\
         \"updated_at\":\"2026-11-30T14:00:0{}Z\"{more}}}\n",
        status.len() % 10
    )
}

fn succeeded() -> String {
    job(
        "succeeded",
        &format!(
            ",\"attempt_id\":\"{ATTEMPT}\",\"worker_id\":\"worker-1\",\"repository_id\":\"demo\",\
             \"base_sha\":\"{BASE}\",\"candidate_sha\":\"{CANDIDATE}\",\"worker_pool\":\"coding\""
        ),
    )
}

#[test]
fn verify_cli() {
    command().debug_assert();
}
