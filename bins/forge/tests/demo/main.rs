//! `forge demo` as a user runs it: what it shows, what it leaves, what it never touches.
#![expect(
    clippy::disallowed_methods,
    reason = "the tests start the program that they judge and wait in real time"
)]

#[cfg(test)]
mod attest;
#[cfg(test)]
mod backplane;
#[cfg(test)]
mod docs;
#[cfg(test)]
mod user;

#[cfg(test)]
mod demo {
    use std::fs;
    use std::process::Stdio;

    use serde_json::Value;

    use crate::user::{Home, ids_with, processes_with, signal, wait_until};

    /// The agent itself, not one of the programs that name it in their arguments.
    fn agent_runs(mark: &str) -> bool {
        let found = processes_with(mark, "environ");
        found
            .iter()
            .any(|line| line.starts_with("sh -c sleep") || line.starts_with("sleep "))
    }

    #[test]
    fn the_main_job_from_one_command() {
        let home = Home::new();
        let (code, out, err) = home.demo(&["--part", "forge"]);
        assert_eq!(code, 0, "{out}{err}");
        for wanted in [
            "candidate commit",
            "its only parent is the base",
            "+    total=$((total + number))",
            "check 1 `sh test.sh` passed, exit 0",
            "agent report (self-reported, not verified)",
            "refs/agent-forge/candidates/",
        ] {
            assert!(out.contains(wanted), "{wanted}: {out}");
        }
        for (text, exception) in [(&out, "refs/"), (&err, "repositories/demo")] {
            let mut wide = text.lines().filter(|line| line.chars().count() > 80);
            assert!(wide.all(|line| line.contains(exception)), "{text}");
        }
        home.is_clean();
    }

    #[test]
    fn own_checks_may_hold_on_the_base_already() {
        let home = Home::new();
        let (code, out, err) = home.demo(&["--check", "true", "--check", "test -f sum.sh"]);
        assert_eq!(code, 0, "{out}{err}");
        assert!(out.contains("check 2 `test -f sum.sh` passed"), "{out}");
        assert!(!err.contains("its test fails"), "{err}");
        home.is_clean();
    }

    #[test]
    fn one_record_for_programs_and_nothing_else_on_stdout() {
        let home = Home::new();
        let (code, out, err) = home.demo(&["--format", "json", "--part", "forge"]);
        assert_eq!(code, 0, "{out}{err}");
        let record: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(out.lines().count(), 1);
        assert_eq!(record["part"], "forge");
        assert_eq!(record["status"], "succeeded");
        assert_eq!(record["parent_sha"], record["base_sha"]);
        assert_eq!(record["checks"][0]["reason"], "scoped_check_passed");
        assert_eq!(record["state"], Value::Null);
        home.is_clean();
    }

    #[test]
    fn a_repository_of_the_users_gains_one_ref_and_nothing_else() {
        let home = Home::new();
        let repository = home.repository();
        // Work in progress, which must be neither lost nor taken.
        fs::write(repository.join("a.txt"), "half done\n").unwrap();
        fs::write(repository.join("new.txt"), "untracked\n").unwrap();
        let before = home.state(&repository);
        let path = repository.to_str().unwrap();
        let (code, out, err) = home.demo(&["--repo", path, "--format", "json"]);
        assert_eq!(code, 0, "{out}{err}");
        let record: Value = serde_json::from_str(&out).unwrap();
        let after = home.state(&repository);
        assert_eq!(before.files, after.files);
        let new: Vec<_> = after
            .refs
            .iter()
            .filter(|name| !before.refs.contains(name))
            .collect();
        assert_eq!(new.len(), 1);
        assert!(new[0].ends_with(record["ref"].as_str().unwrap()), "{new:?}");
        let candidate = record["candidate_sha"].as_str().unwrap();
        let listed = home.git(
            &repository,
            &["show", "--name-only", "--format=%P", candidate],
        );
        assert_eq!(
            listed,
            format!("{}\n\nFORGE-DEMO.md", record["base_sha"].as_str().unwrap())
        );
        home.is_clean();
    }

    #[test]
    fn an_agent_task_and_checks_of_the_users() {
        let home = Home::new();
        let repository = home.repository();
        let path = repository.to_str().unwrap();
        let base = [
            "--repo",
            path,
            "--instruction",
            "say hello",
            "--format",
            "json",
        ];
        let agent = [
            "--plugin",
            "sh",
            "-c",
            "read -r told; echo \"$told $COLOR\" > a.txt",
        ];
        let checks = ["--check", "grep -q 'say hello red' a.txt", "--env", "COLOR"];
        let (code, out, err) = home.demo(&[&base[..], &checks, &agent].concat());
        assert_eq!(code, 0, "{out}{err}");
        let record: Value = serde_json::from_str(&out).unwrap();
        assert!(
            record["diff"].as_str().unwrap().contains("+say hello red"),
            "{out}"
        );
        assert_eq!(record["agent_report"], Value::Null);

        let (code, out, err) = home.demo(&[&base[..], &["--check", "false"], &agent].concat());
        assert_eq!(code, 1, "a failed check is an honest no: {out}{err}");
        assert!(err.contains("check 1 FAILED, exit 1"), "{err}");
        assert_eq!(out, "");
        home.is_clean();
    }

    #[test]
    fn what_is_kept_can_be_looked_at() {
        let home = Home::new();
        let (code, out, err) = home.demo(&["--part", "forge", "--keep", "--format", "json"]);
        assert_eq!(code, 0, "{out}{err}");
        let record: Value = serde_json::from_str(&out).unwrap();
        let state = home.state_folders().pop().unwrap();
        let repository = state.join("repositories/demo");
        let candidate = record["candidate_sha"].as_str().unwrap();
        let commit = home.git(&repository, &["rev-parse", record["ref"].as_str().unwrap()]);
        assert_eq!(commit, candidate);
        for name in ["owner.token", "worker.token", "gate.json"] {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(state.join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }

        // The Gate that it names answers for the job.
        let token = state.join("owner.token");
        let config: Value =
            serde_json::from_str(&fs::read_to_string(state.join("gate.json")).unwrap()).unwrap();
        let url = format!("http://{}", config["listen"].as_str().unwrap());
        let mut gate = home
            .command(&[
                "__gate",
                "--config",
                state.join("gate.json").to_str().unwrap(),
            ])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let job = record["job_id"].as_str().unwrap();
        let ask = [
            "status",
            job,
            "--gate-url",
            &url,
            "--token-file",
            token.to_str().unwrap(),
        ];
        wait_until("the kept Gate answers", || home.run(&ask).0 == 0);
        let (_, out, _) = home.run(&ask);
        signal("-TERM", gate.id());
        assert!(gate.wait().unwrap().success());
        assert!(out.contains(candidate), "{out}");
        fs::remove_dir_all(&state).unwrap();
        home.is_clean();
    }

    #[test]
    fn an_interrupt_leaves_nothing() {
        for name in ["-INT", "-TERM"] {
            let home = Home::new();
            let agent = ["--plugin", "sh", "-c", "sleep 600"];
            let mut demo = home
                .command(&[&["demo"][..], &agent].concat())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mark = home.mark();
            wait_until("the agent runs", || agent_runs(&mark));
            signal(name, demo.id());
            let status = demo.wait().unwrap();
            assert_eq!(status.code(), Some(2), "{name}");
            home.is_clean();
        }
    }

    #[test]
    fn a_part_that_dies_is_named_and_everything_ends() {
        let home = Home::new();
        let agent = ["--plugin", "sh", "-c", "sleep 600"];
        let demo = home
            .command(&[&["demo"][..], &agent].concat())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mark = home.mark();
        wait_until("the agent runs", || agent_runs(&mark));
        let gate = ids_with(&mark, "__gate --config ");
        assert_eq!(gate.len(), 1);
        signal("-KILL", gate[0]);
        let output = demo.wait_with_output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{err}");
        assert!(
            err.contains("the Gate ended before it was asked to"),
            "{err}"
        );
        home.is_clean();
    }

    #[test]
    fn a_killed_demo_leaves_no_process() {
        let home = Home::new();
        let agent = ["--plugin", "sh", "-c", "sleep 600"];
        let mut demo = home
            .command(&[&["demo"][..], &agent].concat())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mark = home.mark();
        wait_until("the agent runs", || agent_runs(&mark));
        demo.kill().unwrap();
        demo.wait().unwrap();
        wait_until("everything has ended", || {
            processes_with(&mark, "environ").is_empty()
        });
    }

    #[test]
    fn what_cannot_be_shown_is_said() {
        let home = Home::new();
        let (code, _, err) = home.demo(&["--part", "backplane", "--check", "true"]);
        assert_eq!(code, 2);
        assert!(err.contains("go with `--part forge`"), "{err}");
        let (code, _, err) = home.demo(&["--repo", "/nonexistent"]);
        assert_eq!(code, 2);
        assert!(err.contains("/nonexistent"), "{err}");
        home.is_clean();
    }
}

#[cfg(test)]
mod help {
    use crate::user::Home;

    #[test]
    fn every_page_fits_the_screen() {
        let home = Home::new();
        let (code, top, _) = home.run(&["--help"]);
        assert_eq!(code, 0);
        let names = top
            .lines()
            .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
            .filter(|name| !name.is_empty() && !name.starts_with('-'));
        let names: Vec<&str> = names.take_while(|name| *name != "help").collect();
        assert!(
            names.contains(&"demo") && names.contains(&"fetch"),
            "{names:?}"
        );
        for name in names {
            let (code, page, _) = home.run(&[name, "--help"]);
            assert_eq!(code, 0, "{name}");
            for line in top.lines().chain(page.lines()) {
                assert!(line.chars().count() <= 80, "{name}: {line}");
            }
        }
    }

    #[test]
    fn version_usage_and_generated_texts() {
        let home = Home::new();
        let (code, out, _) = home.run(&["--version"]);
        let version = concat!("forge ", env!("CARGO_PKG_VERSION"), "-dev unknown\n");
        assert_eq!((code, out.as_str()), (0, version));
        let (code, out, err) = home.run(&["submit"]);
        assert_eq!((code, out.as_str()), (2, ""));
        assert!(err.contains("Usage:"), "{err}");
        let (code, first, _) = home.run(&["--generate", "markdown"]);
        let narrow = home
            .command(&["--generate=markdown"])
            .env("COLUMNS", "30")
            .output()
            .unwrap();
        let second = String::from_utf8(narrow.stdout).unwrap();
        assert_eq!((code, &first), (0, &second));
        for heading in ["## `forge`", "### `forge demo`", "### `forge fetch`"] {
            assert!(first.contains(heading), "{heading}");
        }
        assert!(!first.contains("__gate"));
        // Shells offer the parts that can be shown, and none of the hidden names.
        for kind in ["completion-bash", "completion-fish", "completion-zsh"] {
            let (code, text, _) = home.run(&["--generate", kind]);
            assert_eq!(code, 0, "{kind}");
            assert!(text.contains("attest") && text.contains("forge"), "{kind}");
            for hidden in ["__backplane", "__attest", "__gate"] {
                assert!(!text.contains(hidden), "{kind}: {hidden}");
            }
        }
    }

    #[test]
    fn a_reader_that_goes_away_is_no_error() {
        let home = Home::new();
        let mut child = home
            .command(&["--generate", "markdown"])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert!(output.status.success(), "{}", output.status);
    }
}

#[cfg(test)]
mod tokens {
    use crate::user::Home;

    /// Which place the client complains of, for variables and flags as given.
    fn complaint(variables: &[(&str, &str)], flags: &[&str]) -> String {
        let home = Home::new();
        let output = home
            .command(&[&["list"], flags].concat())
            .envs(variables.iter().copied())
            .env("FORGE_CA_FILE", "")
            .env("FORGE_GATE_URL", "")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    }

    #[test]
    fn flags_win_over_variables_and_empty_ones_are_unset() {
        let file = ("FORGE_OWNER_TOKEN_FILE", "/nonexistent/from-variable");
        let flag = ["--token-file", "/nonexistent/from-flag"];
        assert!(complaint(&[file], &flag).contains("/nonexistent/from-flag"));
        assert!(complaint(&[file], &["--token-env", "OTHER"]).contains("variable `OTHER`"));
        assert!(complaint(&[file], &[]).contains("/nonexistent/from-variable"));
        // A token without a Gate: what is missing is the Gate.
        let token = ("FORGE_OWNER_TOKEN", "canary");
        let both = complaint(&[file, token], &["--gate-url", "http://127.0.0.1:1"]);
        assert!(
            both.contains("cannot reach the Gate") && !both.contains("token"),
            "{both}"
        );
        let neither = complaint(
            &[("FORGE_OWNER_TOKEN", ""), ("FORGE_OWNER_TOKEN_FILE", "")],
            &[],
        );
        assert!(
            neither.contains("no owner token in variable `FORGE_OWNER_TOKEN`"),
            "{neither}"
        );
    }
}
