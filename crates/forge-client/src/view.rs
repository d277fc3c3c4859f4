//! What this client understands of a Gate's answers.
//!
//! Everything here is foreign text as it came: it is made visible where it is shown.

use strict_json::{Element, FieldError, Fields, Json};

/// A job as the Gate describes it; absent fields are `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its id.
    pub id: String,
    /// `coding` or `legacy`, where the Gate says so.
    pub kind: Option<String>,
    /// Its status, in the Gate's words.
    pub status: String,
    /// The attempt that has it or ended it.
    pub attempt_id: Option<String>,
    /// The slot of that attempt.
    pub worker_id: Option<String>,
    /// The repository of a coding job.
    pub repository_id: Option<String>,
    /// The commit it starts from.
    pub base_sha: Option<String>,
    /// The commit it made.
    pub candidate_sha: Option<String>,
    /// The pool whose Workers may have it.
    pub worker_pool: Option<String>,
    /// Why it failed.
    pub failure_code: Option<String>,
    /// Its priority, where it is not the default.
    pub priority: Option<i64>,
    /// The job of which it is a repetition.
    pub retry_of: Option<String>,
    /// When the next attempt is due.
    pub retry_at: Option<String>,
    /// When it was accepted.
    pub created_at: String,
    /// When it last changed.
    pub updated_at: String,
    /// What the attempt that has it says that it is doing, oldest first.
    pub activity: Vec<Activity>,
    /// Why it has not started, where the Gate says so.
    pub waiting: Option<WhyWaiting>,
}

/// Why a job has not started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhyWaiting {
    /// The reason, one of the Gate's list.
    pub reason: String,
    /// The same in words.
    pub message: String,
}

impl WhyWaiting {
    /// Whether it is over in a moment: a slot is free.
    #[must_use]
    pub fn is_about_to_end(&self) -> bool {
        self.reason == "starting"
    }
}

/// A stage that a running attempt says it has reached; nobody has verified it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// Its number in the attempt, from 1.
    pub sequence: u64,
    /// The stage, in the Gate's words.
    pub stage: String,
    /// When the Gate heard of it, where the Gate says so.
    pub received_at: Option<String>,
}

impl Activity {
    fn decode(element: Element) -> Result<Self, FieldError> {
        let mut fields = element.object()?;
        Ok(Self {
            sequence: fields.u64("sequence")?,
            stage: fields.text("stage")?,
            received_at: fields.opt_text("received_at")?,
        })
    }
}

impl Job {
    /// Whether nothing more will happen to it.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(self.status.as_str(), "succeeded" | "failed" | "cancelled")
    }

    /// Whether it ended well.
    #[must_use]
    pub fn has_succeeded(&self) -> bool {
        self.status == "succeeded"
    }

    /// Returns the ref that keeps its candidate, in the Worker's repository.
    #[must_use]
    pub fn candidate_ref(&self) -> Option<String> {
        self.candidate_sha.as_ref()?;
        let attempt = self.attempt_id.as_deref()?;
        Some(format!("refs/agent-forge/candidates/{}/{attempt}", self.id))
    }

    pub(crate) fn decode(json: &Json) -> Result<Self, FieldError> {
        Self::from_fields(object(json, "job")?)
    }

    fn from_fields(mut fields: Fields) -> Result<Self, FieldError> {
        let mut activities = Vec::new();
        for attempt in fields.opt_array("attempts")?.unwrap_or_default() {
            for activity in attempt.object()?.opt_array("activity")?.unwrap_or_default() {
                activities.push(Activity::decode(activity)?);
            }
        }
        Ok(Self {
            id: fields.text("id")?,
            kind: fields.opt_text("kind")?,
            status: fields.text("status")?,
            attempt_id: fields.opt_text("attempt_id")?,
            worker_id: fields.opt_text("worker_id")?,
            repository_id: fields.opt_text("repository_id")?,
            base_sha: fields.opt_text("base_sha")?,
            candidate_sha: fields.opt_text("candidate_sha")?,
            worker_pool: fields.opt_text("worker_pool")?,
            failure_code: fields.opt_text("failure_code")?,
            priority: fields.opt_i64("priority")?,
            retry_of: fields.opt_text("retry_of")?,
            retry_at: fields.opt_text("retry_at")?,
            created_at: fields.opt_text("created_at")?.unwrap_or_default(),
            updated_at: fields.opt_text("updated_at")?.unwrap_or_default(),
            activity: activities,
            waiting: fields.opt_object("waiting")?.map(waiting).transpose()?,
        })
    }
}

fn waiting(mut fields: Fields) -> Result<WhyWaiting, FieldError> {
    Ok(WhyWaiting {
        reason: fields.text("reason")?,
        message: fields.text("message")?,
    })
}

/// A job that has ended, with everything that is kept of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobResult {
    /// The job.
    pub job: Job,
    /// Its attempts, oldest first.
    pub attempts: Vec<Attempt>,
    /// What the agent of the successful attempt says of its work.
    pub report: Option<Report>,
}

impl JobResult {
    pub(crate) fn decode(json: &Json) -> Result<Self, FieldError> {
        let mut fields = object(json, "result")?;
        let mut job = fields.object("job")?;
        let mut report = opt_report(&mut fields)?;
        if report.is_none() {
            report = opt_report(&mut job)?;
        }
        let attempts: Vec<Attempt> = fields
            .opt_array("attempts")?
            .unwrap_or_default()
            .into_iter()
            .map(|attempt| Attempt::from_fields(attempt.object()?))
            .collect::<Result<_, _>>()?;
        if report.is_none() {
            report = attempts
                .iter()
                .rev()
                .find_map(|attempt| attempt.report.clone());
        }
        Ok(Self {
            job: Job::from_fields(job)?,
            attempts,
            report,
        })
    }
}

/// One lease of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Its id.
    pub id: String,
    /// Which one it is, from 1.
    pub ordinal: u64,
    /// The slot that had it.
    pub worker_id: Option<String>,
    /// How it ended.
    pub status: String,
    /// Why it failed.
    pub failure_code: Option<String>,
    /// The commit it made.
    pub candidate_sha: Option<String>,
    /// When it was leased.
    pub leased_at: Option<String>,
    /// When it ended.
    pub completed_at: Option<String>,
    /// What the Worker recorded.
    pub evidence: Vec<Evidence>,
    /// What the agent says of its work.
    pub report: Option<Report>,
}

impl Attempt {
    fn from_fields(mut fields: Fields) -> Result<Self, FieldError> {
        Ok(Self {
            id: fields.text("id")?,
            ordinal: fields.u64("ordinal")?,
            worker_id: fields.opt_text("worker_id")?,
            status: fields.text("status")?,
            failure_code: fields.opt_text("failure_code")?,
            candidate_sha: fields.opt_text("candidate_sha")?,
            leased_at: fields.opt_text("leased_at")?,
            completed_at: fields.opt_text("completed_at")?,
            evidence: fields
                .opt_array("evidence")?
                .unwrap_or_default()
                .into_iter()
                .map(Evidence::decode)
                .collect::<Result<_, _>>()?,
            report: opt_report(&mut fields)?,
        })
    }
}

/// One record that a Worker bound to an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// In which part of the work it was made.
    pub phase: String,
    /// What was found.
    pub reason: String,
    /// Which declared check it is about, from 0.
    pub check_index: Option<u64>,
    /// The check's exit code, where one is known.
    pub exit_code: Option<u64>,
    /// How long it took.
    pub duration_ms: u64,
    /// The candidate it speaks for.
    pub candidate_sha: Option<String>,
}

impl Evidence {
    fn decode(element: Element) -> Result<Self, FieldError> {
        let mut fields = element.object()?;
        Ok(Self {
            phase: fields.text("phase")?,
            reason: fields.text("reason")?,
            check_index: fields.opt_u64("check_index")?,
            exit_code: fields.opt_u64("exit_code")?,
            duration_ms: fields.opt_u64("duration_ms")?.unwrap_or_default(),
            candidate_sha: fields.opt_text("candidate_sha")?,
        })
    }
}

/// What an agent says of its own work; nobody has verified it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// In short.
    pub summary: String,
    /// Change by change.
    pub changes: Vec<String>,
}

/// One entry of a job's journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// What happened, such as `leased`.
    pub kind: String,
    /// When, by the Gate's clock.
    pub at: String,
    /// Which phase it concerns.
    pub phase: Option<String>,
    /// Why something failed.
    pub failure_code: Option<String>,
}

impl Event {
    pub(crate) fn decode(json: &Json) -> Result<Self, FieldError> {
        let mut fields = object(json, "event")?;
        Ok(Self {
            kind: fields.text("kind")?,
            at: fields.text("at")?,
            phase: fields.opt_text("phase")?,
            failure_code: fields.opt_text("failure_code")?,
        })
    }
}

/// One slot of a Worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    /// The slot's id.
    pub id: String,
    /// The pool whose jobs it takes.
    pub pool: Option<String>,
    /// Whether it is connected.
    pub connected: bool,
    /// When it was last heard of.
    pub last_seen: Option<String>,
    /// The job that it has.
    pub active_job: Option<String>,
    /// What it does, in the Gate's word; an older Gate has none.
    pub state: Option<String>,
    /// Why it takes no work, as its Worker last said.
    pub refuses: Option<String>,
}

impl Worker {
    pub(crate) fn decode(json: &Json) -> Result<Self, FieldError> {
        let mut fields = object(json, "worker")?;
        let last_seen = match fields.opt_value("last_seen") {
            Ok(Some(Json::Text(text))) => Some(text),
            _ => None, // null: never seen
        };
        Ok(Self {
            id: fields.text("id")?,
            pool: fields.opt_text("pool")?,
            connected: fields.bool("connected")?,
            last_seen,
            active_job: fields.opt_text("active_job_id").ok().flatten(),
            state: fields.opt_text("state")?,
            refuses: match fields.opt_object("refuses")? {
                Some(mut refuses) => Some(refuses.text("reason")?),
                None => None,
            },
        })
    }
}

/// A pool, what waits in it, and its slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// Its id.
    pub id: String,
    /// Whether it gives out no work.
    pub paused: bool,
    /// Since when.
    pub paused_since: Option<String>,
    /// Why, in somebody's words.
    pub pause_reason: Option<String>,
    /// Slots of the Gate's configuration.
    pub slots: u64,
    /// Those that are connected.
    pub connected: u64,
    /// Those that have a job.
    pub working: u64,
    /// Those that are connected and take none.
    pub refusing: u64,
    /// Jobs that wait for a slot.
    pub ready: u64,
    /// When the oldest of them was accepted.
    pub oldest_ready_at: Option<String>,
    /// Jobs that wait for their next attempt.
    pub retrying: u64,
    /// Jobs that run.
    pub leased: u64,
}

impl Pool {
    pub(crate) fn decode(json: &Json) -> Result<Self, FieldError> {
        let mut fields = object(json, "pool")?;
        Ok(Self {
            id: fields.text("id")?,
            paused: fields.bool("paused")?,
            paused_since: fields.opt_text("paused_since")?,
            pause_reason: fields.opt_text("pause_reason")?,
            slots: fields.u64("slots")?,
            connected: fields.u64("connected")?,
            working: fields.u64("working")?,
            refusing: fields.opt_u64("refusing")?.unwrap_or_default(),
            ready: fields.u64("ready")?,
            oldest_ready_at: fields.opt_text("oldest_ready_at")?,
            retrying: fields.u64("retrying")?,
            leased: fields.u64("leased")?,
        })
    }
}

/// Returns the items of a list: an array, or an object that holds one as `items`; and the cursor
/// of the next page.
pub(crate) fn items(json: Json) -> Result<(Vec<Json>, Option<String>), FieldError> {
    match json {
        Json::Array(items) => Ok((items, None)),
        json => {
            let mut fields = object(&json, "list")?;
            let cursor = fields.opt_text("next_cursor")?;
            let items = fields.array("items")?;
            let items = items.into_iter().map(Element::value);
            Ok((items.collect::<Result<_, _>>()?, cursor))
        }
    }
}

fn opt_report(fields: &mut Fields) -> Result<Option<Report>, FieldError> {
    let Some(mut report) = fields.opt_object("agent_report")? else {
        return Ok(None);
    };
    let changes = report.array("changes")?.into_iter().map(Element::text);
    Ok(Some(Report {
        summary: report.text("summary")?,
        changes: changes.collect::<Result<_, _>>()?,
    }))
}

fn object(json: &Json, path: &str) -> Result<Fields, FieldError> {
    match json {
        Json::Object(object) => Ok(object.clone().fields(path)),
        other => Err(FieldError::WrongType {
            path: path.to_owned(),
            expected: "an object",
            found: other.kind(),
        }),
    }
}
