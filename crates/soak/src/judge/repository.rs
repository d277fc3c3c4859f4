//! What the repositories of the Workers hold: the recorded candidates, and nothing that no attempt
//! made.

use std::collections::BTreeMap;

use anyhow::Result;

use super::database::Rows;
use crate::faults::WORKERS;
use crate::owner::Job;
use crate::place::{Place, git};

const PREFIX: &str = "refs/agent-forge/candidates/";

/// A candidate ref.
#[derive(Debug)]
struct Found {
    job: String,
    attempt: String,
    commit: String,
    parent: String,
    worker: usize,
}

/// Checks all of them and returns how many belong to attempts that were lost after the Worker
/// had made them.
pub(crate) fn compare(
    place: &Place,
    rows: &Rows,
    owned: &[Job],
    findings: &mut Vec<String>,
) -> Result<usize> {
    let keys: BTreeMap<&str, &str> = owned.iter().map(|job| (job.id(), &*job.key)).collect();
    let mut recorded = BTreeMap::new();
    let mut lost = 0;
    for found in candidates(place)? {
        match judge(&found, rows, &place.base) {
            Err(reason) => findings.push(format!("{PREFIX}{}: {reason}", found.job)),
            Ok(false) => lost += 1,
            Ok(true) => {
                let holds = git(
                    &place.repository(found.worker),
                    &["show", &format!("{}:answer.txt", found.commit)],
                )?;
                if keys.get(found.job.as_str()) != Some(&holds.as_str()) {
                    findings.push(format!("the candidate of {} holds `{holds}`", found.job));
                }
                *recorded.entry(found.job).or_insert(0) += 1;
            }
        }
    }
    for (id, row) in &rows.jobs {
        let wanted = usize::from(!row.candidate.is_empty());
        let there = recorded.get(id).copied().unwrap_or(0);
        if there != wanted {
            findings.push(format!(
                "job {id} has {there} refs of its recorded candidate instead of {wanted}"
            ));
        }
    }
    for index in 0..WORKERS {
        if let Err(error) = git(&place.repository(index), &["fsck", "--no-dangling"]) {
            findings.push(format!("repository {index}: {error}"));
        }
    }
    Ok(lost)
}

/// Whether the ref is the recorded one of its job; a ref of an attempt that was lost is not.
fn judge(found: &Found, rows: &Rows, base: &str) -> Result<bool, String> {
    let attempts = rows.jobs.get(&found.job).map(|row| &row.attempts);
    let attempt = attempts
        .ok_or("no such job")?
        .iter()
        .find(|attempt| attempt.id == found.attempt)
        .ok_or_else(|| format!("no such attempt: {}", found.attempt))?;
    if found.parent != base {
        return Err(format!("its parent is `{}`", found.parent));
    }
    match attempt.status.as_str() {
        "succeeded" if attempt.candidate == found.commit => Ok(true),
        "expired" | "cancelled" => Ok(false),
        other => Err(format!("attempt {} is {other}", found.attempt)),
    }
}

fn candidates(place: &Place) -> Result<Vec<Found>> {
    let mut all = Vec::new();
    for worker in 0..WORKERS {
        let format = "--format=%(refname) %(objectname) %(parent)";
        let listed = git(&place.repository(worker), &["for-each-ref", format, PREFIX])?;
        all.extend(listed.lines().filter_map(|line| {
            let (name, rest) = line.strip_prefix(PREFIX)?.split_once(' ')?;
            let (job, attempt) = name.split_once('/')?;
            let (commit, parent) = rest.split_once(' ')?;
            Some(Found {
                job: job.to_owned(),
                attempt: attempt.to_owned(),
                commit: commit.to_owned(),
                parent: parent.to_owned(),
                worker,
            })
        }));
    }
    Ok(all)
}
