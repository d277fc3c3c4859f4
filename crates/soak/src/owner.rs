//! The owner of the jobs: submits them at a steady rate, repeats every request whose answer was
//! lost, cancels some, and watches how they end. It believes only what the Gate has answered.
#![expect(
    clippy::indexing_slicing,
    reason = "reading a JSON value by name yields null where it is absent, never a panic"
)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::http::{Answer, Gate};
use crate::random::Random;

/// The time between two submissions.
const PACE: Duration = Duration::from_millis(250);
/// More open jobs than this are not made: the end has to come in a bounded time.
const MOST_OPEN: usize = 40;
/// The pause between two rounds.
const TICK: Duration = Duration::from_millis(50);
/// Jobs that one round asks after.
const ASKED: usize = 8;

/// What a job must come to, unless it is cancelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Aim {
    /// This text.
    Text(String),
    /// A candidate.
    Candidate,
    /// A failed check.
    FailedCheck,
}

/// One job, as its owner knows it.
#[derive(Debug)]
pub(crate) struct Job {
    /// The idempotency key, also written by the job's command.
    pub(crate) key: String,
    /// What it must come to.
    pub(crate) aim: Aim,
    /// Whether the Gate has said that it is cancelled.
    pub(crate) cancelled: bool,
    /// The terminal state that was seen first.
    pub(crate) seen: Option<End>,
    id: Option<String>,
    body: String,
    wants_cancel: bool,
}

impl Job {
    /// The id, empty as long as no answer has come.
    pub(crate) fn id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }
}

/// A terminal state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct End {
    /// The status.
    pub(crate) status: String,
    /// The candidate, empty if there is none.
    pub(crate) candidate: String,
}

/// How the owner is told how far the run is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Phase(Arc<[AtomicBool; 2]>);

impl Phase {
    /// No further job is made.
    pub(crate) fn settle(&self) {
        self.set(0);
    }

    /// Nothing more is asked.
    pub(crate) fn finish(&self) {
        self.set(1);
    }

    fn set(&self, index: usize) {
        if let Some(flag) = self.0.get(index) {
            flag.store(true, Ordering::Relaxed);
        }
    }

    fn is(&self, index: usize) -> bool {
        self.0
            .get(index)
            .is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

/// What the owner has at the end.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// Every job.
    pub(crate) jobs: Vec<Job>,
    /// Requests that were sent again because no whole answer came.
    pub(crate) repeated: usize,
    /// What must not have been.
    pub(crate) findings: Vec<String>,
}

/// The owner at work.
#[derive(Debug)]
pub(crate) struct Owner {
    gate: Gate,
    base: String,
    seed: u64,
    random: Random,
    ledger: Ledger,
    next: Instant,
    asked: usize,
}

impl Owner {
    /// An owner whose jobs follow from the seed.
    pub(crate) fn new(gate: Gate, base: String, seed: u64) -> Self {
        Self {
            gate,
            base,
            seed,
            random: Random::branch(seed, 2),
            ledger: Ledger::default(),
            next: Instant::now(),
            asked: 0,
        }
    }

    /// Works until all jobs have ended, or it is told to finish.
    pub(crate) fn work(mut self, phase: &Phase) -> Ledger {
        loop {
            let settling = phase.is(0);
            if phase.is(1) || (settling && self.open() == 0) {
                self.report_open();
                return self.ledger;
            }
            if !settling && self.next <= Instant::now() && self.open() < MOST_OPEN {
                self.make();
                self.next = Instant::now() + PACE;
            }
            self.submit_unanswered();
            self.cancel_some();
            self.look();
            std::thread::sleep(TICK);
        }
    }

    fn open(&self) -> usize {
        let open = |job: &&Job| job.seen.is_none();
        self.ledger.jobs.iter().filter(open).count()
    }

    fn make(&mut self) {
        let number = self.ledger.jobs.len();
        let key = format!("soak-{:016x}-{number}", self.seed);
        let kind = self.random.below(8);
        let (aim, body) = if kind < 3 {
            let body = json!({"input": key});
            (Aim::Text(format!("FORGE: {}", key.to_uppercase())), body)
        } else {
            let pause = self.random.millis(0, 700).as_secs_f64();
            let (aim, check) = if kind == 3 {
                (Aim::FailedCheck, json!(["false"]))
            } else {
                (Aim::Candidate, json!(["grep", "-q", key, "answer.txt"]))
            };
            let body = json!({
                "repository_id": "main", "base_sha": self.base,
                "instruction": format!("{pause} {key}\n"), "tests": [["true"], check],
            });
            (aim, body)
        };
        let body = body.to_string();
        if self.random.one_in(20) {
            // An answer that nobody waits for must not make a second job later.
            drop(self.gate.post_and_leave("/v1/jobs", &key, &body));
            self.ledger.repeated += 1;
        }
        self.ledger.jobs.push(Job {
            key,
            aim,
            cancelled: false,
            seen: None,
            id: None,
            body,
            wants_cancel: self.random.one_in(20),
        });
    }

    fn submit_unanswered(&mut self) {
        let again = self.random.one_in(10);
        for job in &mut self.ledger.jobs {
            if job.id.is_some() {
                continue;
            }
            let Ok(answer) = self.gate.post("/v1/jobs", Some(&job.key), &job.body) else {
                self.ledger.repeated += 1;
                break; // the Gate is away; the next round tries again
            };
            let id = answer.json()["id"].as_str().map(str::to_owned);
            if !matches!(answer.status, 200 | 201) || id.is_none() {
                self.ledger.findings.push(unexpected("submit", &answer));
            }
            job.id = id;
        }
        if again && let Some(job) = pick(&mut self.random, &self.ledger.jobs) {
            let key = Some(job.key.as_str());
            if let Ok(answer) = self.gate.post("/v1/jobs", key, &job.body)
                && (answer.status != 200 || answer.json()["id"].as_str() != job.id.as_deref())
            {
                let finding = unexpected("the same request again", &answer);
                self.ledger.findings.push(finding);
            }
        }
    }

    fn cancel_some(&mut self) {
        let due = |job: &&mut Job| job.wants_cancel && job.id.is_some();
        for job in self.ledger.jobs.iter_mut().filter(due) {
            let path = format!("/v1/jobs/{}/cancel", job.id());
            let Ok(answer) = self.gate.post(&path, None, "") else {
                self.ledger.repeated += 1;
                return;
            };
            match answer.status {
                200 => job.cancelled = true,
                409 => {} // it has ended before
                _ => self.ledger.findings.push(unexpected("cancel", &answer)),
            }
            job.wants_cancel = false;
        }
    }

    /// Asks after the next few open jobs, and after one that has ended.
    fn look(&mut self) {
        let count = self.ledger.jobs.len();
        let open: Vec<usize> = (0..count)
            .map(|step| (self.asked + step) % count)
            .filter(|index| {
                let job = self.ledger.jobs.get(*index);
                job.is_some_and(|job| job.seen.is_none() && job.id.is_some())
            })
            .take(ASKED)
            .collect();
        self.asked = open.last().map_or(0, |last| last + 1);
        let any = usize::try_from(self.random.below(count as u64)).unwrap_or_default();
        for index in open.into_iter().chain([any]) {
            if let Some(job) = self.ledger.jobs.get_mut(index)
                && job.id.is_some()
                && let Err(finding) = watch(&self.gate, job)
            {
                self.ledger.findings.push(finding);
            }
        }
    }

    fn report_open(&mut self) {
        let open = self.ledger.jobs.iter().filter(|job| job.seen.is_none());
        let findings: Vec<String> = open
            .map(|job| format!("job `{}` of {} has not ended in time", job.id(), job.key))
            .collect();
        self.ledger.findings.extend(findings);
    }
}

/// Reads a job's state; one that was terminal must be as it was. No answer is no finding.
fn watch(gate: &Gate, job: &mut Job) -> Result<(), String> {
    let Ok(answer) = gate.get(&format!("/v1/jobs/{}/status", job.id())) else {
        return Ok(());
    };
    if answer.status != 200 {
        return Err(unexpected("status", &answer));
    }
    let now = end_of(&answer);
    let id = job.id().to_owned();
    match (&job.seen, now) {
        (None, now) => job.seen = now,
        (Some(before), Some(now)) if *before == now => {}
        (Some(before), now) => {
            return Err(format!("job {id} was {before:?} and is {now:?}"));
        }
    }
    Ok(())
}

/// Checks every job over HTTP once more, with its result or text.
pub(crate) fn confirm(gate: &Gate, ledger: &mut Ledger) {
    let mut by_id: BTreeMap<String, String> = BTreeMap::new();
    for job in &mut ledger.jobs {
        if let Some(other) = by_id.insert(job.id().to_owned(), job.key.clone()) {
            let finding = format!("{} and {other} became one job", job.key);
            ledger.findings.push(finding);
        }
        let findings = watch(gate, job).and_then(|()| fulfilled(gate, job));
        ledger.findings.extend(findings.err());
    }
}

fn fulfilled(gate: &Gate, job: &Job) -> Result<(), String> {
    let end = job.seen.as_ref().ok_or("a job has not ended")?;
    let wanted = match (&job.aim, job.cancelled) {
        (_, true) => "cancelled",
        (Aim::FailedCheck, false) => "failed",
        (Aim::Text(_) | Aim::Candidate, false) => "succeeded",
    };
    if end.status != wanted {
        let id = job.id();
        return Err(format!(
            "job {id} ended as {} instead of {wanted}",
            end.status
        ));
    }
    if let (Aim::Text(text), "succeeded") = (&job.aim, wanted) {
        let path = format!("/v1/jobs/{}/output", job.id());
        let answer = gate.get(&path).map_err(|error| error.to_string())?;
        if answer.status != 200 || answer.body != *text {
            return Err(unexpected("output", &answer));
        }
    }
    Ok(())
}

fn end_of(answer: &Answer) -> Option<End> {
    let job = answer.json();
    let status = job["status"].as_str()?;
    matches!(status, "succeeded" | "failed" | "cancelled").then(|| End {
        status: status.to_owned(),
        candidate: job["candidate_sha"].as_str().unwrap_or_default().to_owned(),
    })
}

fn pick<'a>(random: &mut Random, jobs: &'a [Job]) -> Option<&'a Job> {
    let index = usize::try_from(random.below(jobs.len() as u64)).ok()?;
    jobs.get(index).filter(|job| job.id.is_some())
}

fn unexpected(what: &str, answer: &Answer) -> String {
    format!(
        "{what}: {} {}",
        answer.status,
        answer.body.trim_end().chars().take(300).collect::<String>()
    )
}
