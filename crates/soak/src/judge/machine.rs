//! The machine of a job, written down once more from its description: which journal is a legal
//! path, and how often each attempt ends in it.

use std::collections::{BTreeMap, BTreeSet};

/// An entry of a journal: a kind and its detail line.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The kind.
    pub(crate) kind: String,
    /// `name=value` words.
    pub(crate) detail: String,
}

impl Entry {
    fn value(&self, name: &str) -> Option<&str> {
        self.detail
            .split(' ')
            .find_map(|word| word.split_once('=').filter(|(key, _)| *key == name))
            .map(|(_, value)| value)
    }

    fn attempt(&self) -> Result<String, String> {
        let found = self.value("attempt").map(str::to_owned);
        found.ok_or_else(|| format!("`{}` names no attempt", self.kind))
    }
}

/// Where a path has led.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Start,
    Pending,
    Leased(String),
    /// The attempt has ended; what becomes of the job is the next entry.
    Ended(String),
    Waiting,
    Terminal(&'static str),
}

/// What a legal journal says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Path {
    /// The status of the job.
    pub(crate) status: &'static str,
    /// The status of each attempt that was not withdrawn, by its id.
    pub(crate) attempts: BTreeMap<String, (u16, &'static str)>,
}

/// Follows a journal.
pub(crate) fn follow(journal: &[Entry]) -> Result<Path, String> {
    let mut walk = Walk {
        state: State::Start,
        attempts: BTreeMap::new(),
        stopped: BTreeSet::new(),
        count: 0,
    };
    for entry in journal {
        let before = walk.state.clone();
        walk.step(entry).map_err(|reason| {
            format!(
                "`{} {}` after {before:?}: {reason}",
                entry.kind, entry.detail
            )
        })?;
    }
    let status = match walk.state {
        State::Terminal(status) => status,
        State::Pending => "pending",
        State::Leased(_) => "leased",
        State::Waiting => "retry_wait",
        State::Start => return Err("the journal is empty".to_owned()),
        State::Ended(_) => return Err("nothing follows the end of an attempt".to_owned()),
    };
    Ok(Path {
        status,
        attempts: walk.attempts,
    })
}

struct Walk {
    state: State,
    attempts: BTreeMap<String, (u16, &'static str)>,
    /// Attempts of which the Worker has said that nothing runs any more.
    stopped: BTreeSet<String>,
    /// Attempts that count.
    count: u16,
}

const ILLEGAL: &str = "the machine has no such edge";

impl Walk {
    fn step(&mut self, entry: &Entry) -> Result<(), String> {
        let next = match (&self.state, entry.kind.as_str()) {
            (State::Start, "submitted") => State::Pending,
            (State::Pending | State::Waiting, "leased") => self.leased(entry)?,
            (State::Leased(live), "attempt_reattached") => {
                same(live, entry)?;
                State::Leased(live.clone())
            }
            (State::Leased(live), "attempt_withdrawn") => {
                same(live, entry)?;
                self.attempts.remove(&live.clone());
                self.count = self.count.saturating_sub(1);
                if self.count == 0 {
                    State::Pending
                } else {
                    State::Waiting
                }
            }
            (State::Leased(live), "lease_expired" | "retryable_failed") => {
                same(live, entry)?;
                let live = live.clone();
                let ended = if entry.kind == "lease_expired" {
                    "expired"
                } else {
                    "retryable_failed"
                };
                self.end(&live, ended)?;
                State::Ended(live)
            }
            (State::Ended(ended), "retry_scheduled") => {
                same(ended, entry)?;
                State::Waiting
            }
            (State::Ended(ended), "failed") => {
                same(ended, entry)?;
                State::Terminal("failed")
            }
            (State::Waiting, "retry_requested") => State::Waiting,
            (State::Leased(live), "failed") => {
                self.end(&live.clone(), "terminal_failed")?;
                State::Terminal("failed")
            }
            (State::Leased(live), "succeeded") => {
                self.end(&live.clone(), "succeeded")?;
                State::Terminal("succeeded")
            }
            (State::Leased(live), "cancelled") => {
                same(live, entry)?;
                self.end(&live.clone(), "cancelled")?;
                State::Terminal("cancelled")
            }
            (State::Pending | State::Waiting, "cancelled") => State::Terminal("cancelled"),
            // That nothing of an attempt runs any more may be told whenever it has ended.
            (state, "attempt_stopped") => {
                let state = state.clone();
                self.stop(entry.attempt()?)?;
                state
            }
            _ => return Err(ILLEGAL.to_owned()),
        };
        self.state = next;
        Ok(())
    }

    fn leased(&mut self, entry: &Entry) -> Result<State, String> {
        let attempt = entry.attempt()?;
        self.count += 1;
        if entry.value("ordinal") != Some(self.count.to_string().as_str()) {
            return Err(format!("the ordinal should be {}", self.count));
        }
        let fresh = (self.count, "leased");
        if self.attempts.insert(attempt.clone(), fresh).is_some() {
            return Err("the attempt has been before".to_owned());
        }
        Ok(State::Leased(attempt))
    }

    fn stop(&mut self, attempt: String) -> Result<(), String> {
        let ended = self.attempts.get(&attempt).map(|(_, status)| *status);
        if !matches!(ended, Some("cancelled" | "expired")) {
            return Err(format!("the attempt is {ended:?}"));
        }
        if self.stopped.insert(attempt) {
            Ok(())
        } else {
            Err("the attempt has stopped before".to_owned())
        }
    }

    fn end(&mut self, attempt: &str, status: &'static str) -> Result<(), String> {
        match self.attempts.get_mut(attempt) {
            Some((_, now @ "leased")) => {
                *now = status;
                Ok(())
            }
            _ => Err("the attempt ends twice".to_owned()),
        }
    }
}

fn same(live: &str, entry: &Entry) -> Result<(), String> {
    if entry.attempt()? == live {
        Ok(())
    } else {
        Err(format!("the live attempt is {live}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(lines: &[&str]) -> Vec<Entry> {
        lines
            .iter()
            .map(|line| {
                let (kind, detail) = line.split_once(' ').unwrap_or((line, ""));
                Entry {
                    kind: kind.to_owned(),
                    detail: detail.to_owned(),
                }
            })
            .collect()
    }

    const LOST: [&str; 5] = [
        "submitted job accepted",
        "leased attempt=a ordinal=1 lease_expires=x",
        "lease_expired attempt=a ordinal=1 lease_expires=x",
        "retry_scheduled attempt=a ordinal=1 retry_at=x",
        "leased attempt=b ordinal=2 lease_expires=x",
    ];

    #[test]
    fn a_job_may_lose_an_attempt_and_succeed() {
        let lines = [LOST.as_slice(), &["succeeded candidate_sha=1"]].concat();
        let path = follow(&journal(&lines)).unwrap();
        assert_eq!(path.status, "succeeded");
        assert_eq!(path.attempts["a"], (1, "expired"));
        assert_eq!(path.attempts["b"], (2, "succeeded"));
    }

    #[test]
    fn other_legal_paths() {
        for (lines, status) in [
            (vec!["submitted x"], "pending"),
            (
                vec!["submitted x", "cancelled failure_code=cancelled"],
                "cancelled",
            ),
            (
                vec![
                    "submitted x",
                    "leased attempt=a ordinal=1",
                    "attempt_withdrawn attempt=a ordinal=1 reason=draining",
                    "leased attempt=b ordinal=1",
                    "attempt_reattached attempt=b ordinal=1",
                    "cancelled attempt=b ordinal=1",
                    "attempt_stopped attempt=b ordinal=1",
                ],
                "cancelled",
            ),
            (
                vec![
                    "submitted x",
                    "leased attempt=a ordinal=1",
                    "retryable_failed attempt=a ordinal=1",
                    "failed attempt=a ordinal=1",
                ],
                "failed",
            ),
            (
                vec![
                    "submitted x",
                    "leased attempt=a ordinal=1",
                    "failed failure_code=scoped_test_failed",
                ],
                "failed",
            ),
        ] {
            assert_eq!(
                follow(&journal(&lines)).unwrap().status,
                status,
                "{lines:?}"
            );
        }
    }

    #[test]
    fn what_ends_twice_or_takes_no_edge_is_found() {
        for (more, reason) in [
            (vec!["succeeded x", "succeeded x"], ILLEGAL),
            (vec!["succeeded x", "failed failure_code=x"], ILLEGAL),
            (vec!["succeeded x", "leased attempt=c ordinal=3"], ILLEGAL),
            (vec!["leased attempt=c ordinal=3"], ILLEGAL),
            (
                vec!["lease_expired attempt=a ordinal=1"],
                "the live attempt is b",
            ),
            (vec!["lease_expired attempt=b ordinal=2"], "nothing follows"),
            (
                vec![
                    "lease_expired attempt=b ordinal=2",
                    "retry_scheduled attempt=a",
                ],
                "the live attempt is b",
            ),
            (
                vec!["attempt_reattached attempt=a ordinal=1"],
                "the live attempt is b",
            ),
            (vec!["submitted x"], ILLEGAL),
            (
                vec![
                    "retryable_failed attempt=b ordinal=2",
                    "retry_scheduled attempt=b ordinal=2",
                    "leased attempt=c ordinal=4",
                ],
                "the ordinal should be 3",
            ),
            (
                vec![
                    "retryable_failed attempt=b ordinal=2",
                    "retry_scheduled attempt=b ordinal=2",
                    "leased attempt=a ordinal=3",
                ],
                "the attempt has been before",
            ),
            (
                vec!["attempt_stopped attempt=b ordinal=2"],
                "is Some(\"leased\")",
            ),
            (
                vec![
                    "attempt_stopped attempt=a ordinal=1",
                    "attempt_stopped attempt=a ordinal=1",
                ],
                "has stopped before",
            ),
            (vec!["unheard_of x"], ILLEGAL),
        ] {
            let lines = [LOST.as_slice(), &more].concat();
            let found = follow(&journal(&lines)).unwrap_err();
            assert!(found.contains(reason), "{more:?}: {found}");
        }
        assert!(follow(&[]).is_err());
    }
}
