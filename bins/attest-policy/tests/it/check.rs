//! `attest-policy check`: what authors of policies are told.

use serde_json::{Value, json};

use crate::core::{POLICY, Workspace};

const PIPELINE: &str = "version: \"1\"\nenv: {HTTP_PROXY: here}\nsteps:\n  \
    build: {run: make, outputs: [out/]}\n  fetch: {run: \"curl x\", needs: [build]}\n";

/// A rule of every kind.
const WHOLE: &str = r#"version = 1

[[step]]
id = "tested"
decision = "deny"
severity = "high"
message = "Nothing is shipped untested"
required = ["build", "test*"]
ordered = true

[[command]]
id = "known"
decision = "deny"
severity = "medium"
steps = ["build"]
allow = ["make", "make *"]
deny = ["*curl*", "*wget*"]

[[env]]
id = "no-proxy"
decision = "warn"
severity = "low"
forbidden = ["*_PROXY"]

[[output]]
id = "app"
decision = "deny"
severity = "critical"
steps = ["build"]
required = ["out"]
if_unknown = "warn"

[[duration]]
id = "quick"
decision = "warn"
severity = "info"
step_secs = 60
total_secs = 600
"#;

#[test]
fn a_policy_in_words() {
    let workspace = Workspace::new();
    workspace.write("p.toml", WHOLE);
    let ran = workspace.typed(&["check", "p.toml"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.lines().all(|line| line.chars().count() <= 80));
    let (first, rest) = ran.out.split_once("\n\n").unwrap();
    assert!(first.starts_with("p.toml: 5 rules\n  blake3:"), "{first}");
    assert_eq!(
        rest,
        "\
tested: deny, high
  steps that match `build` and `test*` are there and end well; each needs those
    before it, directly or through others; where a receipt does not tell: deny
  message: Nothing is shipped untested
  judged at pipeline.validate, receipt.finalize

known: deny, medium
  every step that matches `build` runs `make` or `make *` (where no `*` stands
    for an operator of the shell); no step that matches `build` runs `*curl*` or
    `*wget*`
  judged at pipeline.validate, step.pre

no-proxy: warn, low
  no step sets a variable that matches `*_PROXY`, by itself or through the
    pipeline
  judged at pipeline.validate

app: deny, critical
  every step that matches `build` declares outputs that match `out` and makes
    them; where a receipt does not tell: warn
  judged at pipeline.validate, step.pre, receipt.finalize

quick: warn, info
  every step takes at most 60 s; the run takes at most 600 s; where a receipt
    does not tell: warn
  judged at step.post, receipt.finalize
"
    );
}

#[test]
fn the_record_is_one_line_of_json() {
    let workspace = Workspace::new();
    workspace.write("p.toml", WHOLE);
    workspace.write("attest.yaml", PIPELINE);
    let args = [
        "check",
        "p.toml",
        "--pipeline",
        "attest.yaml",
        "--format",
        "json",
    ];
    let ran = workspace.typed(&args);
    assert_eq!((ran.code, ran.out.lines().count()), (1, 1), "{ran:?}");
    let record: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(record["file"], "p.toml");
    assert_eq!(record["rules"].as_array().unwrap().len(), 5);
    assert_eq!(record["rules"][0]["message"], "Nothing is shipped untested");
    assert_eq!(record["rules"][2]["hooks"], json!(["pipeline.validate"]));
    let judged = &record["judged"][0];
    assert_eq!(judged["file"], "attest.yaml");
    assert_eq!(judged["hook"], "pipeline.validate");
    assert_eq!(judged["decision"], "deny");
    assert_eq!(judged["findings"][0]["rule"], "tested");
    assert_eq!(judged["idle_rules"], json!([]));
}

#[test]
fn rules_about_steps_that_the_pipeline_does_not_have_are_named() {
    let workspace = Workspace::new();
    // The second `steps` is that of the outputs, which are broken by the absence.
    let policy = WHOLE.replace("steps = [\"build\"]", "steps = [\"compile\"]");
    let policy = policy.replace(
        "id = \"no-proxy\"",
        "id = \"no-proxy\"\nsteps = [\"gone*\"]",
    );
    workspace.write("p.toml", &policy);
    workspace.write("attest.yaml", PIPELINE);
    let args = ["check", "p.toml", "--pipeline", "attest.yaml"];
    let ran = workspace.typed(&args);
    let last = "\n  rules whose `steps` match no step of this pipeline: known, no-proxy\n";
    assert!(ran.out.ends_with(last), "{}", ran.out);
    let ran = workspace.typed(&[&args[..], &["--format", "json"]].concat());
    let record: Value = serde_json::from_str(&ran.out).unwrap();
    let judged = &record["judged"][0];
    assert_eq!(judged["idle_rules"], json!(["known", "no-proxy"]));
}

#[test]
fn a_pipeline_is_judged_as_before_its_run() {
    let workspace = Workspace::new();
    workspace.write("p.toml", WHOLE);
    workspace.write("attest.yaml", PIPELINE);
    let ran = workspace.typed(&["check", "p.toml", "--pipeline", "attest.yaml"]);
    assert_eq!(ran.code, 1);
    let (_, judged) = ran.out.split_once("\nattest.yaml").unwrap();
    assert_eq!(
        judged,
        " at pipeline.validate: deny
  tested (high) pipeline: Nothing is shipped untested: no step matches `test*`,
    which is required
  no-proxy (low) step:build: sets variable `HTTP_PROXY`, which `*_PROXY` forbids
  no-proxy (low) step:fetch: sets variable `HTTP_PROXY`, which `*_PROXY` forbids
"
    );
    // A warning is no denial.
    workspace.write("p.toml", &POLICY.replace("\"deny\"", "\"warn\""));
    let ran = workspace.typed(&["check", "p.toml", "--pipeline", "attest.yaml"]);
    assert!(
        ran.out.contains("attest.yaml at pipeline.validate: warn\n"),
        "{ran:?}"
    );
    assert_eq!(ran.code, 0);
}

#[test]
fn a_receipt_is_judged_as_before_its_signature() {
    let workspace = Workspace::new();
    let vectors = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../crates/attest-verify/tests/vectors/stamped/receipt.yaml"
    );
    workspace.write("p.toml", WHOLE);
    let ran = workspace.typed(&["check", "p.toml", "--receipt", vectors]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.out.contains(" at receipt.finalize: deny\n"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("`test*` has ended well\n"), "{}", ran.out);
    let args = ["check", "p.toml", "--receipt", vectors, "--format", "json"];
    let ran = workspace.typed(&args);
    assert!(!ran.out.contains("idle_rules"), "{}", ran.out);
    let bad = workspace.write("bad.yaml", "steps: []\n");
    let ran = workspace.typed(&["check", "p.toml", "--receipt", bad.to_str().unwrap()]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{ran:?}");
    let ran = workspace.typed(&["check", "p.toml", "--pipeline", "bad.yaml"]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{ran:?}");
}

#[test]
fn what_is_no_policy_has_line_and_key() {
    let workspace = Workspace::new();
    workspace.write("p.toml", &WHOLE.replacen("allow", "allowed", 1));
    let ran = workspace.typed(&["check", "p.toml"]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(
        ran.err
            .starts_with("error: `p.toml`: line 16: unknown field `allowed`"),
        "{}",
        ran.err
    );
}

#[test]
fn text_from_files_cannot_rule_a_terminal() {
    let workspace = Workspace::new();
    let pipeline = PIPELINE.replace("curl x", "curl \\x1b[31m");
    workspace.write("attest.yaml", &pipeline);
    let args = ["check", ".attest/policy.toml", "--pipeline", "attest.yaml"];
    let ran = workspace.typed(&args);
    assert_eq!(ran.code, 1);
    assert!(
        ran.out.contains("`curl \\u{1b}[31m` is denied"),
        "{}",
        ran.out
    );
    assert!(!ran.out.contains('\u{1b}'));
}

#[test]
fn the_policy_of_the_page_is_one() {
    let page = include_str!("../../../../docs/reference/attest-policy.md");
    let (_, rest) = page.split_once("```toml\nversion = 1").unwrap();
    let (policy, _) = rest.split_once("```").unwrap();
    let workspace = Workspace::new();
    workspace.write("p.toml", &format!("version = 1{policy}"));
    let ran = workspace.typed(&["check", "p.toml"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    assert!(ran.out.contains("p.toml: 5 rules"), "{}", ran.out);
}
