//! What the Gate's database holds, read after the Gate has stopped.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use rusqlite::{Connection, OpenFlags};

use super::machine::{Entry, follow};
use crate::owner::{Aim, Job};

/// One attempt.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// Its id.
    pub(crate) id: String,
    /// Its number.
    pub(crate) ordinal: u16,
    /// How it ended.
    pub(crate) status: String,
    /// Its candidate, empty if it has none.
    pub(crate) candidate: String,
}

/// One job with all that hangs on it.
#[derive(Debug)]
pub(crate) struct Row {
    /// Its status.
    pub(crate) status: String,
    /// Its candidate, empty if it has none.
    pub(crate) candidate: String,
    /// Attempts, as the job counts them.
    pub(crate) count: u16,
    /// From its submission to its end.
    pub(crate) nanos: i64,
    /// The attempts.
    pub(crate) attempts: Vec<Attempt>,
    journal: Vec<Entry>,
}

/// Every job by its id, and the id by idempotency key.
#[derive(Debug)]
pub(crate) struct Rows {
    /// The jobs.
    pub(crate) jobs: BTreeMap<String, Row>,
    keys: BTreeMap<String, String>,
}

/// Reads a database; what is wrong with the file itself goes into `findings`.
pub(crate) fn read(path: &Path, findings: &mut Vec<String>) -> Result<Rows> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(path, flags)
        .with_context(|| format!("cannot open `{}`", path.display()))?;
    let said: Vec<String> = database
        .prepare("PRAGMA integrity_check")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    if said != ["ok"] {
        findings.push(format!("integrity_check: {}", said.join("; ")));
    }
    let dangling: i64 =
        database.query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| {
            row.get(0)
        })?;
    if dangling > 0 {
        findings.push(format!("foreign_key_check: {dangling} rows"));
    }
    rows(&database).context("cannot read the database")
}

fn rows(database: &Connection) -> Result<Rows> {
    let mut jobs = BTreeMap::new();
    let mut statement = database.prepare(
        "SELECT id, status, coalesce(candidate_sha, ''), attempts, updated_at - created_at FROM jobs",
    )?;
    let found = statement.query_map([], |row| {
        let job = Row {
            status: row.get(1)?,
            candidate: row.get(2)?,
            count: row.get(3)?,
            nanos: row.get(4)?,
            attempts: Vec::new(),
            journal: Vec::new(),
        };
        Ok((row.get::<_, String>(0)?, job))
    })?;
    for row in found {
        let (id, job) = row?;
        jobs.insert(id, job);
    }
    let mut statement = database.prepare(
        "SELECT j.id, a.id, a.ordinal, a.status, coalesce(a.candidate_sha, '') \
         FROM attempts a JOIN jobs j ON j.seq = a.job ORDER BY a.seq",
    )?;
    let found = statement.query_map([], |row| {
        let attempt = Attempt {
            id: row.get(1)?,
            ordinal: row.get(2)?,
            status: row.get(3)?,
            candidate: row.get(4)?,
        };
        Ok((row.get::<_, String>(0)?, attempt))
    })?;
    for row in found {
        let (job, attempt) = row?;
        let job = jobs.get_mut(&job).context("an attempt of no job")?;
        job.attempts.push(attempt);
    }
    let mut statement = database.prepare(
        "SELECT j.id, e.kind, e.detail FROM events e JOIN jobs j ON j.seq = e.job ORDER BY e.seq",
    )?;
    let found = statement.query_map([], |row| {
        let entry = Entry {
            kind: row.get(1)?,
            detail: row.get(2)?,
        };
        Ok((row.get::<_, String>(0)?, entry))
    })?;
    for row in found {
        let (job, entry) = row?;
        let job = jobs.get_mut(&job).context("an event of no job")?;
        job.journal.push(entry);
    }
    let keys = database
        .prepare("SELECT k.key, j.id FROM idempotency_keys k JOIN jobs j ON j.seq = k.job")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    Ok(Rows { jobs, keys })
}

/// Holds the rows against what their owner knows.
pub(crate) fn compare(rows: &Rows, owned: &[Job], findings: &mut Vec<String>) {
    if rows.jobs.len() != owned.len() {
        findings.push(format!(
            "{} jobs are stored, {} were submitted",
            rows.jobs.len(),
            owned.len()
        ));
    }
    for job in owned {
        let stored = rows.keys.get(&job.key).map(String::as_str);
        if stored != Some(job.id()) {
            findings.push(format!(
                "{} was answered as `{}` and is stored as {stored:?}",
                job.key,
                job.id()
            ));
        }
        match rows.jobs.get(job.id()) {
            None => findings.push(format!("the accepted job {} is lost", job.id())),
            Some(row) => findings.extend(
                same(row, job)
                    .err()
                    .map(|reason| format!("job {}: {reason}", job.id())),
            ),
        }
    }
    for (id, row) in &rows.jobs {
        let lawful = lawful(row);
        findings.extend(lawful.err().map(|reason| format!("job {id}: {reason}")));
    }
}

fn same(row: &Row, job: &Job) -> Result<(), String> {
    let Some(seen) = &job.seen else {
        return Ok(()); // its owner has complained already
    };
    if (&row.status, &row.candidate) != (&seen.status, &seen.candidate) {
        return Err(format!(
            "it was seen as {seen:?} and is stored as {} `{}`",
            row.status, row.candidate
        ));
    }
    let candidate = job.aim == Aim::Candidate && row.status == "succeeded";
    if candidate == row.candidate.is_empty() {
        return Err(format!(
            "`{}` is no candidate for {:?}",
            row.candidate, job.aim
        ));
    }
    Ok(())
}

/// Journal, attempts and job tell one and the same legal story.
fn lawful(row: &Row) -> Result<(), String> {
    let path = follow(&row.journal)?;
    if path.status != row.status {
        return Err(format!(
            "the journal ends as {}, the job is {}",
            path.status, row.status
        ));
    }
    if !matches!(path.status, "succeeded" | "failed" | "cancelled") {
        return Err(format!("it is {} at the end", path.status));
    }
    let attempts: BTreeMap<String, (u16, &str)> = row
        .attempts
        .iter()
        .map(|attempt| (attempt.id.clone(), (attempt.ordinal, &*attempt.status)))
        .collect();
    if attempts != path.attempts {
        return Err(format!(
            "the journal tells of {:?}, stored are {attempts:?}",
            path.attempts
        ));
    }
    if usize::from(row.count) != row.attempts.len() {
        return Err(format!(
            "it counts {} attempts of {}",
            row.count,
            row.attempts.len()
        ));
    }
    let mut candidates = row.attempts.iter().filter(|a| !a.candidate.is_empty());
    let (first, second) = (candidates.next(), candidates.next());
    if second.is_some() || first.map_or("", |attempt| &attempt.candidate) != row.candidate {
        return Err("its candidate is not the one of its one successful attempt".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(status: &str, attempts: &[(&str, u16, &str, &str)], journal: &[(&str, &str)]) -> Row {
        Row {
            status: status.to_owned(),
            candidate: String::new(),
            count: u16::try_from(attempts.len()).unwrap(),
            nanos: 1,
            attempts: attempts
                .iter()
                .map(|(id, ordinal, status, candidate)| Attempt {
                    id: (*id).to_owned(),
                    ordinal: *ordinal,
                    status: (*status).to_owned(),
                    candidate: (*candidate).to_owned(),
                })
                .collect(),
            journal: journal
                .iter()
                .map(|(kind, detail)| Entry {
                    kind: (*kind).to_owned(),
                    detail: (*detail).to_owned(),
                })
                .collect(),
        }
    }

    const JOURNAL: [(&str, &str); 3] = [
        ("submitted", "job accepted"),
        ("leased", "attempt=a ordinal=1 lease_expires=x"),
        ("succeeded", "result stored"),
    ];

    #[test]
    fn a_job_whose_parts_agree_is_lawful() {
        lawful(&row("succeeded", &[("a", 1, "succeeded", "")], &JOURNAL)).unwrap();
    }

    #[test]
    fn parts_that_tell_different_stories_are_found() {
        for (bad, reason) in [
            (
                row("failed", &[("a", 1, "succeeded", "")], &JOURNAL),
                "ends as",
            ),
            (
                row("succeeded", &[("a", 1, "expired", "")], &JOURNAL),
                "tells of",
            ),
            (row("succeeded", &[], &JOURNAL), "tells of"),
            (
                row("succeeded", &[("a", 1, "succeeded", "1")], &JOURNAL),
                "candidate",
            ),
            (
                row("leased", &[("a", 1, "leased", "")], &JOURNAL[..2]),
                "at the end",
            ),
        ] {
            let found = lawful(&bad).unwrap_err();
            assert!(found.contains(reason), "{found}");
        }
    }
}
