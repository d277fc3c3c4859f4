//! What the Gate counts of itself, in the text format of OpenMetrics 1.0.
//!
//! Counters and histograms are fed by [`store::Measured`], which stands before the store, and by the
//! HTTP middleware; what can be looked up is looked up when somebody asks ([`scrape`]). Labels are
//! pools, outcomes, states, operations and routes: their number does not grow with the jobs.

mod scrape;
mod store;

use std::time::Duration;

use forge_domain::{AttemptStatus, FailureCode, JobStatus, PoolId};
use gate_store::{Cancelled, Completed, EndedLease, JobView};
use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

pub(crate) use self::scrape::scrape;
pub(crate) use self::store::Measured;

/// The content type of the format.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const PREFIX: &str = "forge_gate";

/// The outcome of a lease that a Worker gave back before it began.
const WITHDRAWN: &str = "withdrawn";

/// Upper bounds in seconds: from a claim in memory to a disk that has come to a halt.
const BUCKETS: [f64; 14] = [
    0.0001, 0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0,
];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfPool {
    pool: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ended {
    pool: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Operation {
    operation: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Http {
    method: &'static str,
    route: String,
    class: &'static str,
}

/// The counters of one Gate, from its start on.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    started: Timestamp,
    submitted: Family<OfPool, Counter>,
    jobs: Family<Ended, Counter>,
    leased: Family<OfPool, Counter>,
    attempts: Family<Ended, Counter>,
    claims: Histogram,
    operations: Family<Operation, Histogram>,
    http: Family<Http, Counter>,
    connections: Gauge,
}

impl Metrics {
    /// Starts to count; `pools` are those that are configured.
    pub(crate) fn new<'a>(now: Timestamp, pools: impl IntoIterator<Item = &'a PoolId>) -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix(PREFIX),
            started: now,
            submitted: Family::default(),
            jobs: Family::default(),
            leased: Family::default(),
            attempts: Family::default(),
            claims: histogram(),
            operations: Family::new_with_constructor(histogram),
            http: Family::default(),
            connections: Gauge::default(),
        };
        metrics.register();
        // A series that begins at nought shows its first step.
        for pool in pools {
            drop(metrics.submitted.get_or_create(&of(pool)));
            drop(metrics.leased.get_or_create(&of(pool)));
            drop(metrics.attempts.get_or_create(&ended(pool, WITHDRAWN)));
            for status in AttemptStatus::ALL {
                if status != AttemptStatus::Leased {
                    drop(
                        metrics
                            .attempts
                            .get_or_create(&ended(pool, status.as_str())),
                    );
                }
            }
            for status in JobStatus::ALL.into_iter().filter(|one| one.is_terminal()) {
                drop(metrics.jobs.get_or_create(&ended(pool, status.as_str())));
            }
        }
        metrics
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        let (version, commit) = cli_shell::version()
            .split_once(' ')
            .unwrap_or(("dev", "unknown"));
        let build = Info::new(vec![("version", version), ("commit", commit)]);
        registry.register("build", "The running program", build);
        registry.register(
            "jobs_submitted",
            "Jobs accepted since the start",
            self.submitted.clone(),
        );
        registry.register(
            "jobs_ended",
            "Jobs ended since the start",
            self.jobs.clone(),
        );
        registry.register(
            "attempts_leased",
            "Attempts given to a slot since the start",
            self.leased.clone(),
        );
        registry.register(
            "attempts_ended",
            "Attempts ended since the start",
            self.attempts.clone(),
        );
        registry.register_with_unit(
            "claim",
            "From asking for a job to having it on the disk",
            Unit::Seconds,
            self.claims.clone(),
        );
        registry.register_with_unit(
            "store_operation",
            "From asking the store to its answer",
            Unit::Seconds,
            self.operations.clone(),
        );
        registry.register(
            "http_requests",
            "Requests answered since the start",
            self.http.clone(),
        );
        registry.register(
            "connections",
            "Connections that are served over HTTP; a slot's only until it is a WebSocket",
            self.connections.clone(),
        );
    }

    /// The number of open connections, to be kept by who accepts them.
    pub(crate) fn connections(&self) -> Gauge {
        self.connections.clone()
    }

    /// A request was answered.
    pub(crate) fn answered(&self, method: &axum::http::Method, route: Option<&str>, status: u16) {
        let labels = Http {
            method: known_method(method),
            // What names no route is one series, whatever it names.
            route: route.unwrap_or("none").to_owned(),
            class: match status {
                100..200 => "1xx",
                200..300 => "2xx",
                300..400 => "3xx",
                400..500 => "4xx",
                _ => "5xx",
            },
        };
        self.http.get_or_create(&labels).inc();
    }

    fn took(&self, operation: &'static str, time: Duration) {
        self.operations
            .get_or_create(&Operation { operation })
            .observe(time.as_secs_f64());
    }

    fn accepted(&self, pool: &PoolId) {
        self.submitted.get_or_create(&of(pool)).inc();
    }

    fn claimed(&self, pool: &PoolId, time: Duration) {
        self.leased.get_or_create(&of(pool)).inc();
        self.claims.observe(time.as_secs_f64());
    }

    fn completed(&self, done: &Completed) {
        if done.repeated {
            return;
        }
        let job = &done.job;
        let outcome = match (job.status, job.failure_code) {
            (JobStatus::Succeeded, _) => AttemptStatus::Succeeded,
            (JobStatus::RetryWait, _) | (_, Some(FailureCode::MaxAttemptsExceeded)) => {
                AttemptStatus::RetryableFailed
            }
            _ => AttemptStatus::TerminalFailed,
        };
        self.attempt_ended(&job.worker_pool, outcome);
        self.job_moved(&job.worker_pool, job.status);
    }

    /// A Worker gave a lease back that it had not begun: it was no attempt.
    fn withdrawn(&self, job: &JobView) {
        self.attempts
            .get_or_create(&ended(&job.worker_pool, WITHDRAWN))
            .inc();
    }

    /// A lease ran out.
    pub(crate) fn expired(&self, lease: &EndedLease) {
        self.attempt_ended(&lease.pool, AttemptStatus::Expired);
        self.job_moved(&lease.pool, lease.status);
    }

    fn cancelled(&self, cancelled: &Cancelled) {
        if cancelled.repeated {
            return;
        }
        if let Some(lease) = &cancelled.ended {
            self.attempt_ended(&lease.pool, AttemptStatus::Cancelled);
        }
        self.job_moved(&cancelled.job.worker_pool, cancelled.job.status);
    }

    fn attempt_ended(&self, pool: &PoolId, outcome: AttemptStatus) {
        self.attempts
            .get_or_create(&ended(pool, outcome.as_str()))
            .inc();
    }

    fn job_moved(&self, pool: &PoolId, status: JobStatus) {
        if status.is_terminal() {
            self.jobs.get_or_create(&ended(pool, status.as_str())).inc();
        }
    }
}

fn histogram() -> Histogram {
    Histogram::new(BUCKETS)
}

fn of(pool: &PoolId) -> OfPool {
    OfPool {
        pool: pool.to_string(),
    }
}

fn ended(pool: &PoolId, outcome: &'static str) -> Ended {
    Ended {
        pool: pool.to_string(),
        outcome,
    }
}

/// A client can make up methods; they are one series.
fn known_method(method: &axum::http::Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "POST" => "POST",
        "HEAD" => "HEAD",
        "PUT" => "PUT",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        "PATCH" => "PATCH",
        _ => "other",
    }
}
