//! How jobs, attempts, checks and reports look to people.
//!
//! What a Worker recorded and what an agent says of itself stand apart and are labelled.

use cli_shell::{visible, visible_lines};

use crate::layout::{milliseconds, moment, pairs, wrap};
use crate::view::{Activity, Attempt, Event, Evidence, Job, JobResult, Report, WhyWaiting};

/// Describes a job.
#[must_use]
pub fn job_text(job: &Job) -> String {
    let value = |text: &Option<String>| text.as_deref().map(visible);
    let status = match &job.failure_code {
        Some(code) if *code != job.status => {
            format!("{} ({})", visible(&job.status), failure(code))
        }
        _ => visible(&job.status),
    };
    let mut text = pairs(&[
        ("job", Some(visible(&job.id))),
        ("status", Some(status)),
        (
            "waiting",
            job.waiting
                .as_ref()
                .map(|waiting| visible(&waiting.message)),
        ),
        ("stage", job.activity.last().map(stage_text)),
        ("repository", value(&job.repository_id)),
        ("base", value(&job.base_sha)),
        ("candidate", value(&job.candidate_sha)),
        ("worker", value(&job.worker_id)),
        ("attempt", value(&job.attempt_id)),
        ("pool", value(&job.worker_pool)),
        (
            "priority",
            job.priority
                .filter(|level| *level != 0)
                .map(|level| level.to_string()),
        ),
        ("retry of", value(&job.retry_of)),
        ("next try", job.retry_at.as_deref().map(moment)),
        ("submitted", present(&job.created_at)),
        ("changed", present(&job.updated_at)),
    ]);
    if let Some(reference) = job.candidate_ref() {
        // On a line of its own and in one piece, so that it can be copied.
        text.push_str(&format!("ref\n{}\n", visible(&reference)));
    }
    text
}

/// Describes a stage, in the words of the one line that it gets.
#[must_use]
pub fn stage_text(activity: &Activity) -> String {
    visible(&activity.stage).replace('_', " ")
}

/// Says why a job has not started, in one line.
#[must_use]
pub fn waiting_text(waiting: &WhyWaiting) -> String {
    format!("waiting: {}", visible(&waiting.message))
}

/// Describes a job that has ended: its attempts, their checks and the agent's report.
#[must_use]
pub fn result_text(result: &JobResult) -> String {
    let mut text = job_text(&result.job);
    for attempt in &result.attempts {
        text.push('\n');
        text.push_str(&attempt_text(attempt));
    }
    if let Some(report) = &result.report {
        text.push('\n');
        text.push_str(&report_text(report));
    }
    text
}

/// Describes the checks and other findings that a Worker recorded, a line each; the commands are
/// those of the checks, where they are known.
#[must_use]
pub fn checks_text(evidence: &[Evidence], commands: &[Vec<String>]) -> String {
    evidence
        .iter()
        .map(|record| wrap(&finding(record, commands), "  ", "    "))
        .collect()
}

/// Describes an agent's report, labelled as what it is.
#[must_use]
pub fn report_text(report: &Report) -> String {
    let mut text = String::from("agent report (self-reported, not verified)\n");
    text.push_str(&wrap(&visible_lines(&report.summary), "  ", "  "));
    for change in &report.changes {
        text.push_str(&wrap(&visible(change), "  - ", "    "));
    }
    text
}

/// Describes an entry of a job's journal in a few words.
#[must_use]
pub fn event_text(event: &Event) -> String {
    let mut words = visible(&event.kind).replace('_', " ");
    if let Some(phase) = &event.phase {
        words.push_str(&format!(" ({})", visible(phase)));
    }
    if let Some(code) = &event.failure_code {
        words.push_str(&format!(" - {}", failure(code)));
    }
    words
}

fn attempt_text(attempt: &Attempt) -> String {
    let worker = attempt.worker_id.as_deref().map(visible);
    let worker = worker
        .map(|worker| format!(" on {worker}"))
        .unwrap_or_default();
    let code = attempt.failure_code.as_deref().map(failure);
    let code = code.map(|code| format!(" ({code})")).unwrap_or_default();
    let mut text = wrap(
        &format!(
            "attempt {}{worker}: {}{code}",
            attempt.ordinal,
            visible(&attempt.status)
        ),
        "",
        "  ",
    );
    if attempt.evidence.is_empty() {
        text.push_str("  no checks were recorded\n");
    } else {
        text.push_str("  recorded by the Worker:\n");
        text.push_str(&checks_text(&attempt.evidence, &[]));
    }
    text
}

fn finding(record: &Evidence, commands: &[Vec<String>]) -> String {
    let took = milliseconds(record.duration_ms);
    let exit = match record.exit_code {
        Some(code) => format!(", exit {code}"),
        None => String::new(),
    };
    let verdict = match record.reason.as_str() {
        "scoped_check_passed" => format!("passed{exit}, {took}"),
        "scoped_check_failed" => format!("FAILED{exit}, {took}"),
        "scoped_check_timeout" => format!("TIMED OUT after {took}"),
        reason => format!("{}{exit}, {took}", visible(reason)),
    };
    let Some(index) = record.check_index else {
        return format!("{}: {verdict}", visible(&record.phase));
    };
    let command = usize::try_from(index)
        .ok()
        .and_then(|index| commands.get(index));
    let command = command.map(|words| format!(" `{}`", visible(&words.join(" "))));
    format!(
        "check {}{} {verdict}",
        index.saturating_add(1),
        command.unwrap_or_default()
    )
}

/// A failure code with what it means, where it is known.
pub(crate) fn failure(code: &str) -> String {
    let meaning = match code {
        "invalid_task" => "the Worker refused the task",
        "scoped_test_failed" => "a declared check failed",
        "execution_failed" => "plugin, git or workspace failed",
        "max_attempts_exceeded" => "no attempts left",
        _ => return visible(code),
    };
    format!("{code}: {meaning}")
}

fn present(time: &str) -> Option<String> {
    (!time.is_empty()).then(|| moment(time))
}
