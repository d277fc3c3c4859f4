//! A receipt as lines of 80 columns. Every text in it is somebody else's: made visible, and cut
//! where nobody would read on.

use attest_receipt::receipt::{
    Artifact, CiProvider, Control, ControlStatus, Decision, Execution, Isolation, IsolationMode,
    PluginRecord, Provenance, Receipt, Source, StepResult,
};
use attest_verify::trust::PublicKey;
use cli_shell::layout::{cell, pairs, wrap};
use cli_shell::visible_lines;

use crate::shown::shown;

/// Digits of a hash where the whole one has no room.
const SHORT: usize = 8;
/// Columns of such a hash with its algorithm.
const HASH: usize = "blake3:".len() + SHORT + 1;

/// Lays a receipt out.
pub(crate) fn text(name: &str, receipt: &Receipt, problems: &[String], logs: bool) -> String {
    let mut out = head(name, receipt);
    for problem in problems {
        out.push_str(&wrap(&format!("problem: {}", shown(problem)), "", "  "));
    }
    // On a line of its own: the whole of it has no room beside a label.
    let hash = blake3(&shown(&receipt.pipeline_hash));
    out.push_str("\npipeline hash\n");
    out.push_str(&wrap(&hash, "  ", "  "));
    out.push_str(&steps(&receipt.steps));
    if let Some(provenance) = &receipt.provenance {
        out.push_str(&artifacts(&provenance.artifacts));
    }
    if let Some(isolation) = &receipt.isolation {
        out.push_str(&controls(isolation));
    }
    if let Some(plugins) = &receipt.plugins {
        out.push_str(&plugin_records(plugins));
    }
    if logs {
        for step in &receipt.steps {
            push_log(&mut out, &step.name, "stdout", &step.stdout);
            push_log(&mut out, &step.name, "stderr", &step.stderr);
        }
    }
    out
}

fn head(name: &str, receipt: &Receipt) -> String {
    let provenance = receipt.provenance.as_ref();
    let failed = receipt.failed_steps();
    let outcome = match failed {
        0 => "success".to_owned(),
        1 => "failure (1 failed step)".to_owned(),
        failed => format!("failure ({failed} failed steps)"),
    };
    let signature = match (&receipt.signature, &receipt.signer_public_key) {
        (Some(_), Some(_)) => "present, not checked here: `attest verify`",
        (None, None) => "none",
        _ => "incomplete",
    };
    let version = receipt.schema_version.unwrap_or(1);
    pairs(&[
        ("receipt", Some(shown(name))),
        ("execution", Some(outcome)),
        ("signature", Some(signature.to_owned())),
        (
            "public key",
            receipt.signer_public_key.as_deref().map(shown),
        ),
        (
            "key id",
            receipt.signer_public_key.as_deref().and_then(key_id),
        ),
        (
            "time token",
            receipt
                .timestamp_token
                .as_ref()
                .map(|_| "present".to_owned()),
        ),
        (
            "started",
            provenance
                .and_then(|one| one.started_at)
                .map(|time| time.to_string()),
        ),
        ("ended", Some(receipt.timestamp.to_string())),
        ("took", Some(format!("{} s", receipt.total_duration_secs))),
        (
            "pipeline",
            provenance
                .and_then(|one| one.pipeline_name.as_deref())
                .map(shown),
        ),
        ("command", provenance.and_then(command)),
        (
            "source",
            provenance.and_then(|one| one.source.as_ref()).map(source),
        ),
        (
            "runner",
            provenance.map(|one| format!("{} {}", shown(&one.runner_os), shown(&one.runner_arch))),
        ),
        ("ci", provenance.and_then(ci)),
        (
            "reproduced",
            receipt.reproducibility.as_ref().map(|one| {
                let verdict = if one.verified {
                    "verified"
                } else {
                    "NOT verified"
                };
                format!("{verdict}, {} runs, {}", one.runs, shown(&one.method))
            }),
        ),
        ("events", Some(receipt.causal_events.len().to_string())),
        (
            "written by",
            Some(format!(
                "attest {}, schema version {version}",
                shown(&receipt.attest_version)
            )),
        ),
    ])
}

/// The id by which `attest keys` and the trust store know a key.
fn key_id(key: &str) -> Option<String> {
    let key = PublicKey::from_hex(key).ok()?;
    Some(key.key_id().to_string())
}

fn command(provenance: &Provenance) -> Option<String> {
    match &provenance.execution {
        Some(Execution::Wrapped { command }) => {
            let words: Vec<String> = command.iter().map(|word| format!("{word:?}")).collect();
            Some(shown(&words.join(" ")))
        }
        Some(Execution::Native) | None => None,
    }
}

fn source(source: &Source) -> String {
    let mut text = format!("commit {}", shown(&source.commit));
    if source.tracked_dirty {
        text.push_str(", tracked files changed");
    }
    if let Some(branch) = &source.branch {
        text.push_str(&format!("\nbranch {}", shown(branch)));
    }
    if let Some(repository) = &source.repository {
        text.push_str(&format!("\nof {}", shown(repository)));
    }
    text
}

fn ci(provenance: &Provenance) -> Option<String> {
    let ci = provenance.ci.as_ref()?;
    let mut text = match ci.provider {
        CiProvider::Github => "github".to_owned(),
        CiProvider::Gitlab => "gitlab".to_owned(),
    };
    for (name, value) in [("run", &ci.run_id), ("job", &ci.job_id)] {
        if let Some(value) = value {
            text.push_str(&format!(", {name} {}", shown(value)));
        }
    }
    Some(text)
}

fn steps(steps: &[StepResult]) -> String {
    let row = |name: &str, code: &str, time: &str, input: &str, output: &str, note: &str| {
        let row = format!(
            "  {} {} {}  {} {} {}",
            cell(name, 16),
            right(code, 5),
            right(time, 8),
            cell(input, HASH),
            cell(output, HASH),
            cell(note, 11),
        );
        format!("{}\n", row.trim_end())
    };
    let mut out = format!("\nsteps ({})\n", steps.len());
    out.push_str(&row("name", "code", "time", "input", "output", ""));
    for step in steps {
        let note = match (step.cache_hit, &step.capsule_hash) {
            (true, _) => "from cache",
            (false, Some(_)) => "in capsule",
            (false, None) => "",
        };
        out.push_str(&row(
            &shown(&step.name),
            &step.exit_code.to_string(),
            &format!("{} s", step.duration_secs),
            &blake3(&short(&step.input_hash)),
            &blake3(&short(&step.output_hash)),
            note,
        ));
    }
    out
}

fn artifacts(artifacts: &[Artifact]) -> String {
    if artifacts.is_empty() {
        return String::new();
    }
    let mut out = format!("\nartifacts ({})\n", artifacts.len());
    for artifact in artifacts {
        let (step, path) = (shown(&artifact.step), shown(&artifact.path));
        let what = format!("{step}: {path}");
        out.push_str(&wrap(&what, "  ", "    "));
        let digest = format!("{}:{}", shown(&artifact.algorithm), shown(&artifact.digest));
        out.push_str(&wrap(&digest, "    ", "    "));
    }
    out
}

fn controls(isolation: &Isolation) -> String {
    let mode = match isolation.mode {
        IsolationMode::None => "none",
        IsolationMode::Process => "process",
        IsolationMode::Container => "container",
        IsolationMode::StrictContainer => "strict-container",
    };
    let mut out = format!("\nisolation: {mode}, on {}\n", shown(&isolation.platform));
    for Control {
        name,
        status,
        detail,
    } in &isolation.controls
    {
        let status = match status {
            ControlStatus::Enforced => "enforced",
            ControlStatus::NotEnforced => "not enforced",
            ControlStatus::NotAvailable => "not available",
        };
        let first = format!("  {} {} ", cell(&shown(name), 13), cell(status, 13));
        out.push_str(&wrap(&shown(detail), &first, &" ".repeat(30)));
    }
    if !isolation.capsule_steps.is_empty() {
        let steps = shown(&isolation.capsule_steps.join(", "));
        out.push_str(&wrap(&format!("in capsules: {steps}"), "  ", "    "));
    }
    out
}

fn plugin_records(plugins: &[PluginRecord]) -> String {
    let mut out = format!("\nplugins ({})\n", plugins.len());
    for plugin in plugins {
        let decision = match plugin.decision {
            Decision::Skipped => "skipped",
            Decision::Allow => "allow",
            Decision::Warn => "warn",
            Decision::Deny => "deny",
            Decision::Error => "error",
        };
        let kind = if plugin.deterministic {
            "deterministic"
        } else {
            "not deterministic"
        };
        // One that did not get as far as to say its version has none.
        let called = format!("{} {}", shown(&plugin.name), shown(&plugin.version));
        let line = format!(
            "{}: {decision} (protocol {}, {kind})",
            called.trim_end(),
            plugin.protocol,
        );
        out.push_str(&wrap(&line, "  ", "    "));
        out.push_str(&wrap(&shown(&plugin.digest), "    ", "    "));
        if let Some(reason) = &plugin.reason {
            out.push_str(&wrap(
                &format!("reason: {}", shown(reason)),
                "    ",
                "      ",
            ));
        }
        if let Some(annotation) = &plugin.annotation {
            out.push_str("    what it says, which nobody has checked:\n");
            let text = String::from_utf8_lossy(&strict_json::to_line(annotation)).into_owned();
            out.push_str(&wrap(&shown(&text), "    | ", "    | "));
        }
    }
    out.push_str(
        "  Releases 0.1.0 to 0.4.0 of the original attest refuse this receipt: `plugins`\n  is a field that they do not know.\n",
    );
    out
}

fn push_log(out: &mut String, step: &str, stream: &str, text: &str) {
    if text.is_empty() {
        return;
    }
    out.push_str(&wrap(&format!("{stream} of {}:", shown(step)), "\n", "  "));
    // Not laid out: what a step wrote is shown line by line as it was.
    for line in visible_lines(text).lines() {
        out.push_str(&format!("  | {line}\n"));
    }
}

/// A hash with its algorithm, as people are shown it; the receipt has the digits alone.
fn blake3(hash: &str) -> String {
    if hash.is_empty() {
        return String::new();
    }
    format!("blake3:{hash}")
}

fn short(hash: &str) -> String {
    let hash = shown(hash);
    match hash.char_indices().nth(SHORT) {
        Some((at, _)) => format!("{}…", hash.get(..at).unwrap_or_default()),
        None => hash,
    }
}

fn right(text: &str, columns: usize) -> String {
    format!("{text:>columns$}")
}
