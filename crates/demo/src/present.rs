//! What is shown at the end: the candidate, its proof, its evidence, and the agent's own words.

use std::path::Path;

use cli_shell::{CliError, Ui, visible, visible_lines};
use forge_client::{Job, JobResult, checks_text, report_text};
use serde_json::json;

use crate::project::Project;

const SHOWN_LINES: usize = 200;

/// Everything that came out, proven.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Where the Gate listened, and would again.
    pub(crate) address: String,
    pub(crate) project: Project,
    pub(crate) job: Job,
    pub(crate) result: JobResult,
    pub(crate) candidate: String,
    pub(crate) reference: String,
    pub(crate) subject: String,
    pub(crate) diff: String,
}

/// Shows the outcome, as JSON in one record.
pub(crate) fn outcome(outcome: &Outcome, kept: Option<&Path>, ui: &Ui) -> Result<(), CliError> {
    let evidence: Vec<_> = outcome
        .result
        .attempts
        .iter()
        .flat_map(|attempt| &attempt.evidence)
        .cloned()
        .collect();
    let report = outcome.result.report.as_ref();
    let record = json!({
        "part": "forge",
        "job_id": outcome.job.id,
        "status": outcome.job.status,
        "repository": outcome.project.repository,
        "base_sha": outcome.project.base,
        "candidate_sha": outcome.candidate,
        "parent_sha": outcome.project.base,
        "ref": outcome.reference,
        "subject": outcome.subject,
        "checks": evidence.iter().map(|record| json!({
            "phase": record.phase,
            "reason": record.reason,
            "check_index": record.check_index,
            "exit_code": record.exit_code,
            "duration_ms": record.duration_ms,
        })).collect::<Vec<_>>(),
        "agent_report": report.map(|report| json!({
            "summary": report.summary,
            "changes": report.changes,
        })),
        "diff": outcome.diff,
        "state": kept,
    });
    ui.record(&record, |_| {
        let mut text = format!("\n{}\n", ui.heading("candidate commit"));
        text.push_str(&format!("  {}\n", outcome.candidate));
        text.push_str(&format!("  {}\n", visible(&outcome.subject)));
        text.push_str(&format!(
            "  its only parent is the base {}\n",
            outcome.project.base
        ));
        text.push_str(&format!("\n{}\n", ui.heading("what it changes")));
        text.push_str(&colored(&outcome.diff, ui));
        text.push_str(&format!(
            "\n{}\n",
            ui.heading("evidence, recorded by the Worker")
        ));
        if evidence.is_empty() {
            text.push_str("  no checks were declared\n");
        }
        text.push_str(&checks_text(&evidence, &outcome.project.checks));
        if let Some(report) = report {
            text.push('\n');
            text.push_str(&report_text(report));
        }
        text.push_str(&format!("\n{}\n", ui.heading("where it is")));
        text.push_str(&format!("  {}\n", outcome.reference));
        text.push_str("  branches and files of the repository are as they were\n");
        text
    })?;
    if !outcome.project.is_ours {
        ui.status(format!(
            "look further:\n  git -C {} show {}\ntake it back:\n  git -C {} update-ref -d {}",
            quoted(&outcome.project.repository),
            outcome.reference,
            quoted(&outcome.project.repository),
            outcome.reference,
        ));
    } else if kept.is_none() {
        ui.status("the state is gone; `forge demo --keep` leaves it for a closer look");
    }
    Ok(())
}

/// Says how to go on with the kept state.
pub(crate) fn kept(state: &Path, program: &Path, outcome: Option<&Outcome>, ui: &Ui) {
    let (state, program) = (quoted(state), quoted(program));
    ui.status(format!("the state is kept in {state}"));
    if let Some(outcome) = outcome {
        let repository = quoted(&outcome.project.repository);
        ui.status(format!(
            "look at the commit:\n  git -C {repository} show {}\n\
             start the Gate again and ask it:\n  {program} __gate --config {state}/gate.json &\n  \
             export FORGE_GATE_URL=http://{}\n  \
             export FORGE_OWNER_TOKEN_FILE={state}/owner.token\n  \
             {program} result {}\n\
             start the Worker again:\n  {program} __worker --config {state}/worker.json",
            outcome.reference, outcome.address, outcome.job.id
        ));
    }
    ui.status(format!(
        "logs: {state}/gate.log {state}/worker.log\nremove it all: rm -r {state}"
    ));
}

/// A diff within reason, its lines coloured where colours are wanted; file content is foreign text.
fn colored(diff: &str, ui: &Ui) -> String {
    let mut text = String::new();
    let count = diff.lines().count();
    for line in diff.lines().take(SHOWN_LINES) {
        let line = visible_lines(line);
        let line = match line.as_bytes().first() {
            Some(b'+') => ui.good(&line),
            Some(b'-') => ui.bad(&line),
            _ => line,
        };
        text.push_str(&format!("  {line}\n"));
    }
    if count > SHOWN_LINES {
        text.push_str(&format!("  … {} more lines\n", count - SHOWN_LINES));
    }
    text
}

/// A path that can be pasted into a shell.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+@".contains(letter);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", visible(&text).replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_can_be_pasted() {
        assert_eq!(quoted(Path::new("/tmp/forge-demo-1")), "/tmp/forge-demo-1");
        assert_eq!(quoted(Path::new("/a b/it's")), "'/a b/it'\\''s'");
    }

    #[test]
    fn a_long_diff_is_cut_and_says_so() {
        let (ui, _) = Ui::captured(&cli_shell::GlobalOpts::default());
        let exact = "+x\n".repeat(SHOWN_LINES);
        assert_eq!(colored(&exact, &ui).lines().count(), SHOWN_LINES);
        let text = colored(&(exact + "+y\u{1b}\n+z\n"), &ui);
        assert!(text.ends_with("  … 2 more lines\n"));
        assert!(!text.contains('\u{1b}'));
    }
}
