//! The line at the end.

use std::fmt;
use std::time::Duration;

use crate::judge::database::Rows;

/// How often what was done.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Times that the Gate was killed.
    pub(crate) gate_kills: usize,
    /// Times that a Worker was killed.
    pub(crate) worker_kills: usize,
    /// Times that a program was stopped for a while.
    pub(crate) freezes: usize,
    /// Times that a program was started again.
    pub(crate) restarts: usize,
    /// Requests that were sent again.
    pub(crate) repeated: usize,
    /// Candidate refs of attempts that were lost afterwards.
    pub(crate) lost_refs: usize,
}

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Summary {
    counts: Counts,
    ended: [(&'static str, usize); 3],
    jobs: usize,
    attempts: usize,
    most: usize,
    median: Duration,
    slowest: Duration,
}

impl Summary {
    /// Sums up.
    pub(crate) fn of(rows: &Rows, counts: Counts) -> Self {
        let jobs = rows.jobs.values();
        let mut times: Vec<i64> = jobs.clone().map(|job| job.nanos).collect();
        times.sort_unstable();
        let ended = ["succeeded", "failed", "cancelled"].map(|status| {
            let count = jobs.clone().filter(|job| job.status == status).count();
            (status, count)
        });
        Self {
            counts,
            ended,
            jobs: rows.jobs.len(),
            attempts: jobs.clone().map(|job| job.attempts.len()).sum(),
            most: jobs.map(|job| job.attempts.len()).max().unwrap_or(0),
            median: percentile(&times, 50),
            slowest: percentile(&times, 99),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts {
            gate_kills,
            worker_kills,
            freezes,
            restarts,
            repeated,
            lost_refs,
        } = self.counts;
        write!(f, "{} jobs (", self.jobs)?;
        for (index, (status, count)) in self.ended.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{count} {status}")?;
        }
        let each = self.attempts as f64 / self.jobs.max(1) as f64;
        write!(
            f,
            "), {each:.2} attempts per job (most {}), {} kills (Gate {gate_kills}, Workers {worker_kills}), \
             {freezes} stops, {restarts} restarts, {repeated} requests repeated, {lost_refs} refs of lost attempts, \
             time to end p50 {:.2} s p99 {:.2} s",
            self.most,
            gate_kills + worker_kills,
            self.median.as_secs_f64(),
            self.slowest.as_secs_f64(),
        )
    }
}

fn percentile(sorted: &[i64], percent: usize) -> Duration {
    let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    let nanos = sorted.get(index).copied().unwrap_or_default();
    Duration::from_nanos(u64::try_from(nanos).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_sorted_times() {
        let times: Vec<i64> = (0..100).collect();
        assert_eq!(percentile(&times, 50), Duration::from_nanos(50));
        assert_eq!(percentile(&times, 99), Duration::from_nanos(99));
        assert_eq!(percentile(&[7], 99), Duration::from_nanos(7));
        assert_eq!(percentile(&[], 99), Duration::ZERO);
    }
}
