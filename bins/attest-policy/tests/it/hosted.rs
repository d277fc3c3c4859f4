//! The three plugins under the real `attest`: declared, pinned, asked, recorded.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::core::{PROGRAM, Typed};
use crate::examples::example;

const ALL: &str = r#"["pipeline.validate", "step.pre", "step.post", "receipt.finalize"]"#;

const PIPELINE: &str = "\
version: '1'
name: shop
steps:
  build: {run: 'mkdir -p out && cp page out/', inputs: [page], outputs: [out]}
  test: {run: 'grep -q Shop out/page', needs: [build], inputs: [out]}
";

/// A workspace, and the programs in a folder of their own.
pub(crate) struct Place {
    root: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["bin", "work", "notes"] {
            std::fs::create_dir(root.path().join(folder)).unwrap();
        }
        let attest = Path::new(PROGRAM).with_file_name("examples").join("attest");
        assert!(
            attest.is_file(),
            "`{}` is an example of this package: build it with `cargo build --examples`",
            attest.display()
        );
        let place = Self { root };
        place.install("attest", &attest);
        place.install("attest-policy", Path::new(PROGRAM));
        place
    }

    /// A place with a pipeline in a workspace that is ready.
    fn ready() -> Self {
        let place = Self::new();
        place.write("page", "<h1>Shop</h1>\n");
        place.write("attest.yaml", PIPELINE);
        place.attest(&["init", "--quiet"]).expect(0);
        place
            .attest(&["keys", "generate", "--name", "me"])
            .expect(0);
        place
    }

    /// Puts a program into the search path under a name.
    fn install(&self, name: &str, program: &Path) {
        std::os::unix::fs::symlink(program, self.root.path().join("bin").join(name)).unwrap();
    }

    fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// Where a test keeps what it hears.
    pub(crate) fn notes(&self) -> PathBuf {
        self.root.path().join("notes")
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.work().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Declares a plugin at its hooks, and pins it.
    fn declare(&self, name: &str, command: &str, hooks: &str, more: &str) {
        let path = self.work().join(".attest/plugins.toml");
        let before = std::fs::read_to_string(&path);
        let before = before.unwrap_or_else(|_| "schema_version = 1\n".to_owned());
        let entry = format!(
            "{before}\n[[plugin]]\nname = \"{name}\"\ncommand = \"{command}\"\ndigest = \"\"\n\
             protocol = \"1\"\nhooks = {hooks}\ndeterministic = true\n{more}\n"
        );
        std::fs::write(path, entry).unwrap();
        self.attest(&["plugins", "pin", name]).expect(0);
    }

    /// Declares `attest-policy` with a policy of its own.
    fn policy(hooks: &str, rules: &str) -> Self {
        let place = Self::ready();
        place.write(".attest/policy.toml", &format!("version = 1\n{rules}"));
        place.declare("policy", "attest-policy", hooks, "");
        place
    }

    fn attest(&self, args: &[&str]) -> Typed {
        let mut command = self.command("attest");
        command.args(args);
        typed(&mut command)
    }

    /// Runs a script where a person would paste it.
    pub(crate) fn shell(&self, script: &str) -> Typed {
        let mut command = self.command("/bin/sh");
        command.args(["-c", script]);
        typed(&mut command)
    }

    fn command(&self, program: &str) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let bin = self.root.path().join("bin");
        let program = match program {
            "attest" => bin.join("attest"),
            other => other.into(),
        };
        let mut command = Command::new(program);
        command
            .current_dir(self.work())
            .env_clear()
            .env("PATH", format!("{}:{path}", bin.display()))
            .stdin(Stdio::null());
        command
    }

    /// The only receipt of the workspace as JSON.
    #[track_caller]
    fn receipt(&self) -> Value {
        let mut found = self.receipts();
        assert_eq!(found.len(), 1, "{found:?}");
        let path = found.remove(0);
        let shown = self.attest(&["show", "--format", "json", path.to_str().unwrap()]);
        let mut shown: Value = serde_json::from_str(&shown.expect(0).out).unwrap();
        shown["document"].take()
    }

    fn receipts(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.work().join(".attest/receipts")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// The record of a plugin.
    #[track_caller]
    fn record(&self, name: &str) -> Value {
        let receipt = self.receipt();
        let records = receipt["plugins"].as_array();
        let found = records
            .into_iter()
            .flatten()
            .find(|record| record["name"] == name);
        found
            .unwrap_or_else(|| panic!("{}", receipt["plugins"]))
            .clone()
    }
}

impl Typed {
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    #[track_caller]
    fn says(self, text: &str) -> Self {
        assert!(self.err.contains(text), "`{text}` in {self:#?}");
        self
    }
}

fn typed(command: &mut Command) -> Typed {
    let output = command.output().unwrap();
    Typed {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn rule(table: &str, decision: &str, keys: &str) -> String {
    format!("[[{table}]]\nid = \"r\"\ndecision = \"{decision}\"\nseverity = \"high\"\n{keys}\n")
}

#[test]
fn a_run_that_the_policy_allows_has_it_on_record_and_verifies_elsewhere() {
    let rules = rule(
        "step",
        "deny",
        "required = [\"build\", \"test\"]\nordered = true",
    );
    let place = Place::policy(ALL, &rules);
    let path = place.attest(&["run", "--sign"]).expect(0).out;
    let record = place.record("policy");
    assert_eq!(
        (&record["decision"], &record["protocol"]),
        (&json!("allow"), &json!(1))
    );
    assert_eq!(record["deterministic"], true);
    assert_eq!(record["annotation"]["hook"], "receipt.finalize");
    let policy = std::fs::read(place.work().join(".attest/policy.toml")).unwrap();
    let digest = format!("blake3:{}", blake3::hash(&policy).to_hex());
    assert_eq!(record["annotation"]["policy"], digest);
    let program = format!(
        "blake3:{}",
        blake3::hash(&std::fs::read(PROGRAM).unwrap()).to_hex()
    );
    assert_eq!(record["digest"], program);
    let bare = Place::new();
    std::fs::copy(path.trim_end(), bare.work().join("receipt.yaml")).unwrap();
    let store = place.work().join(".attest/trust");
    let args = [
        "verify",
        "receipt.yaml",
        "--trust-store",
        store.to_str().unwrap(),
    ];
    bare.attest(&args).expect(0);
}

#[test]
fn a_denied_pipeline_does_not_begin() {
    let place = Place::policy(ALL, &rule("command", "deny", "deny = [\"*grep*\"]"));
    place
        .attest(&["run", "--sign"])
        .expect(1)
        .says("plugin policy denied")
        .says("is denied by `*grep*`");
    assert!(place.receipts().is_empty());
    assert!(!place.work().join("out").exists());
}

#[test]
fn a_step_that_is_denied_right_before_it_does_not_run() {
    let rules = rule("command", "deny", "deny = [\"*grep*\"]");
    let place = Place::policy("[\"step.pre\"]", &rules);
    place.attest(&["run", "--sign"]).expect(1).says("denied");
    let receipt = place.receipt();
    let names: Vec<&Value> = receipt["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(names, ["build"]);
    assert_eq!(place.record("policy")["decision"], "deny");
}

#[test]
fn a_denied_receipt_is_written_and_signed_and_says_so() {
    let rules = rule("step", "deny", "required = [\"deploy\"]");
    let place = Place::policy("[\"receipt.finalize\"]", &rules);
    place
        .attest(&["run", "--sign"])
        .expect(1)
        .says("no step that matches `deploy` has ended well");
    assert_eq!(place.record("policy")["decision"], "deny");
    assert_ne!(place.receipt()["signature"], Value::Null);
    let path = place.receipts().remove(0);
    let path = path.to_str().unwrap();
    place.attest(&["verify", path]).expect(0);
    place
        .attest(&["verify", path, "--require", "plugins"])
        .expect(1);
}

#[test]
fn a_warning_lets_the_run_go_on() {
    let rules = rule("step", "warn", "required = [\"deploy\"]");
    let place = Place::policy(ALL, &rules);
    place
        .attest(&["run"])
        .expect(0)
        .says("no step matches `deploy`, which is required");
    assert_eq!(place.record("policy")["decision"], "warn");
}

#[test]
fn outputs_that_are_only_counted_are_told_as_unknown() {
    let rules = rule(
        "output",
        "deny",
        "steps = [\"build\"]\nrequired = [\"out\"]",
    );
    let place = Place::policy(ALL, &rules);
    let many = "mkdir -p out && cp page out/ && i=0; while [ $i -lt 1001 ]; do i=$((i+1)); : > out/$i; done";
    place.write(
        "attest.yaml",
        &PIPELINE.replace("mkdir -p out && cp page out/", many),
    );
    place
        .attest(&["run"])
        .expect(1)
        .says("cannot be judged: the receipt has 1002 artifacts");
    let record = place.record("policy");
    assert_eq!(record["decision"], "deny");
    assert_eq!(record["annotation"]["unknown"], json!(["r"]));
}

#[test]
fn a_wrapped_command_is_judged_as_its_argument_vector() {
    let place = Place::policy(ALL, &rule("command", "deny", "allow = ['[[]\"true\"*']"));
    place
        .attest(&["run", "--wrap", "--name", "w", "--", "true", "x"])
        .expect(0);
    assert_eq!(place.record("policy")["decision"], "allow");
    let refused = [
        "run",
        "--wrap",
        "--name",
        "w",
        "--",
        "sh",
        "-c",
        "touch made",
    ];
    place.attest(&refused).says("denied");
    assert!(!place.work().join("made").exists());
}

#[test]
fn two_builds_are_judged_alike_and_their_durations_are_unknown() {
    let rules = rule("duration", "warn", "total_secs = 1000");
    let place = Place::policy(ALL, &rules);
    place
        .attest(&["run", "--check-reproducibility"])
        .expect(0)
        .says("durations of such a run are not told");
    let record = place.record("policy");
    assert_eq!(record["decision"], "warn");
    assert_eq!(place.receipt()["reproducibility"]["verified"], true);
}

#[test]
fn the_policy_that_the_declaration_names() {
    let place = Place::ready();
    let rules = rule("command", "deny", "deny = [\"*grep*\"]");
    place.write("rules/strict.toml", &format!("version = 1\n{rules}"));
    let env = "env = { POLICY_FILE = \"rules/strict.toml\" }";
    place.declare("strict", "attest-policy", ALL, env);
    place
        .attest(&["run"])
        .expect(1)
        .says("plugin strict denied");
}

#[test]
fn t10_a_policy_that_cannot_be_used_is_exit_2_before_anything_runs() {
    for (env, says) in [
        ("", "POLICY_FILE in the plugin's `env` table names another"),
        (
            "env = { POLICY_FILE = \"/etc/passwd\" }",
            "is no path below the workspace",
        ),
        (
            "env = { POLICY_FILE = \"attest.yaml\" }",
            "`attest.yaml`: line 1: ",
        ),
    ] {
        let place = Place::ready();
        place.declare("policy", "attest-policy", ALL, env);
        place
            .attest(&["run"])
            .expect(2)
            .says("plugin policy: error: attest-policy: ")
            .says(says);
        assert!(place.receipts().is_empty());
        assert!(!place.work().join("out").exists());
    }
}

#[test]
fn a_plugin_that_fails_open_is_on_record_with_its_exit_code() {
    let place = Place::ready();
    place.declare("policy", "attest-policy", ALL, "on_failure = \"fail-open\"");
    place.attest(&["run"]).expect(0);
    let record = place.record("policy");
    assert_eq!(record["decision"], "error");
    let reason = record["reason"].as_str().unwrap();
    assert!(reason.contains('2'), "{reason}");
}

#[test]
fn s13_the_minimal_shell_plugin_runs_under_the_host() {
    let place = Place::ready();
    place.install("attest-noop", &example("attest-noop.sh"));
    place.declare("noop", "attest-noop", "[\"step.pre\"]", "");
    place.attest(&["run", "--sign"]).expect(0);
    let record = place.record("noop");
    assert_eq!(
        (&record["decision"], &record["version"]),
        (&json!("allow"), &json!("0.1.0"))
    );
    assert_eq!(record.get("annotation"), None);
}

#[test]
fn the_python_plugin_runs_under_the_host_and_refuses() {
    let place = Place::ready();
    place.install("rules", &example("attest-plugin-1.py"));
    place.declare(
        "rules",
        "rules",
        "[\"pipeline.validate\", \"step.pre\"]",
        "",
    );
    place.attest(&["run"]).expect(0).says("has no timeout_secs");
    assert_eq!(place.record("rules")["decision"], "warn");
    place.write(
        "attest.yaml",
        &PIPELINE.replace("grep -q Shop out/page", "curl x | sh"),
    );
    place
        .attest(&["run"])
        .expect(1)
        .says("plugin rules denied")
        .says("pipes a download into a shell");
}

#[test]
fn all_three_are_asked_in_one_run() {
    let place = Place::policy(ALL, &rule("step", "deny", "required = [\"build\"]"));
    place.install("attest-noop", &example("attest-noop.sh"));
    place.install("rules", &example("attest-plugin-1.py"));
    place.declare("noop", "attest-noop", "[\"step.pre\"]", "");
    place.declare("rules", "rules", "[\"step.pre\"]", "");
    place.attest(&["run", "--sign"]).expect(0);
    for name in ["noop", "policy", "rules"] {
        assert_eq!(place.record(name)["decision"], "allow", "{name}");
    }
    let path = place.receipts().remove(0);
    let args = [
        "verify",
        path.to_str().unwrap(),
        "--require",
        "plugins,plugin:noop,plugin:rules",
    ];
    place.attest(&args).expect(0);
}

#[test]
fn the_conformance_tool_finds_nothing() {
    let place = Place::ready();
    place.write(".attest/policy.toml", crate::core::POLICY);
    let work = place.work();
    let args = [
        "plugins",
        "conformance",
        "--workspace",
        work.to_str().unwrap(),
        PROGRAM,
    ];
    let ran = place.attest(&args).expect(0);
    let told = format!("{}{}", ran.out, ran.err);
    assert!(told.contains(" 0 failed, 0 skipped, 0 warned"), "{told}");
}
