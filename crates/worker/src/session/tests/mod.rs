//! Connections against a scripted Gate, in memory and in simulated time.

mod activity;
mod attach;
mod cancel;
mod chaos;
mod drain;
mod jobs;
mod ready;
mod wire;

use std::collections::VecDeque;
use std::future::pending;
use std::sync::{Arc, Mutex};

use forge_domain::Stage::{Analyzing, Editing, PreparingResult, Testing};
use forge_domain::{
    Completion, EvidenceRecord, ExecutionLimits, Reason, SlotId, Stage, WorkerFailure,
};
use gate_link::{ActivityVersion, ControlVersion};
use tokio::sync::mpsc;
use tokio::time::{advance, sleep, sleep_until, timeout};

use self::wire::{Gate, MemoryLink, Sent, pair};
use super::*;
use crate::evidence::Recorder;
use crate::execution::{CleanUp, Control, Execution, Task};
use crate::link::{Closing, Connect, ConnectError, LinkDown};
use crate::results::Results;
use crate::slot::{Shared, supervise};

const JOB: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const ATTEMPT: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const SHA: &str = "1111111111111111111111111111111111111111";
const BEAT: Duration = Duration::from_secs(10);
/// The time to live in `lease`.
const TTL: Duration = Duration::from_secs(30);

/// A lease with a 30 s time to live, as `docs/protocols/gate-worker.md` samples it.
fn lease() -> String {
    format!(
        r#"{{"type":"lease","job_id":"{JOB}","attempt_id":"{ATTEMPT}","input":"hello","policy":{{"version":1,"worker_pool":"coding","lease_ttl_nanos":30000000000,"retry_base_nanos":1000000000,"max_attempts":3,"retry_algorithm":"exponential-v1","retry_max_nanos":86400000000000,"execution":{{"plugin_id":"reference","environment":[],"plugin_timeout_nanos":900000000000,"check_timeout_nanos":600000000000,"git_timeout_nanos":60000000000,"cleanup_timeout_nanos":10000000000,"plugin_output_bytes":1048576,"check_output_bytes":2048,"git_output_bytes":1048576}}}}}}"#
    )
}

fn message(kind: &str, rest: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"job_id\":\"{JOB}\",\"attempt_id\":\"{ATTEMPT}\"{rest}}}\n")
}

fn ack() -> String {
    message("ack", "")
}

fn heartbeat() -> Sent {
    Sent::Message(message("heartbeat", ",\"worker_id\":\"worker-1\""))
}

/// What a job does, and what became of it.
struct Job {
    takes: Duration,
    /// How long it takes to stop.
    stops: Duration,
    /// The stages that it reaches, and when.
    stages: Vec<(Duration, Stage)>,
    evidence: Vec<EvidenceRecord>,
    completion: Completion,
    /// What there is to clean up, and the record of that.
    cleanup: Option<Option<EvidenceRecord>>,
}

impl Job {
    fn new(seconds: u64, completion: Completion) -> Self {
        Self {
            takes: Duration::from_secs(seconds),
            stops: Duration::ZERO,
            stages: Vec::new(),
            evidence: Vec::new(),
            completion,
            cleanup: None,
        }
    }
}

type Log = Arc<Mutex<Vec<&'static str>>>;

/// The jobs in the order of their leases.
struct Script {
    jobs: Mutex<VecDeque<Job>>,
    log: Log,
}

impl Executor for Script {
    fn execute(&self, _: Lease, control: Control) -> Task<Execution> {
        let job = self.jobs.lock().unwrap().pop_front();
        let Job {
            takes,
            stops,
            stages,
            evidence,
            completion,
            cleanup,
        } = job.expect("a job for each lease");
        let log = Arc::clone(&self.log);
        let cleanup = cleanup.map(|record| {
            let log = Arc::clone(&log);
            Box::new(ScriptedCleanUp { record, log }) as Box<dyn CleanUp>
        });
        let execution = Execution {
            evidence,
            completion,
            cleanup,
        };
        let activity = control.activity.clone();
        Box::pin(async move {
            log.lock().unwrap().push("started");
            let since = Instant::now();
            let reaches = async {
                for (after, stage) in stages {
                    sleep_until(since + after).await;
                    activity.reached(stage);
                }
                pending::<Execution>().await
            };
            tokio::select! {
                biased;
                never = reaches => never,
                () = sleep(takes) => {
                    log.lock().unwrap().push(if control.fence.holds(Instant::now().into_std()) {
                        "done"
                    } else {
                        "done too late"
                    });
                    execution
                }
                () = control.cancel.cancelled() => {
                    sleep(stops).await;
                    log.lock().unwrap().push("cancelled");
                    Execution {
                        completion: Completion::Failed(WorkerFailure::ExecutionFailed),
                        ..execution
                    }
                }
            }
        })
    }
}

struct ScriptedCleanUp {
    record: Option<EvidenceRecord>,
    log: Log,
}

impl CleanUp for ScriptedCleanUp {
    fn run(self: Box<Self>) -> Task<Option<EvidenceRecord>> {
        Box::pin(async move {
            self.log.lock().unwrap().push("cleaned");
            self.record
        })
    }
}

fn recorder() -> Recorder {
    let second = Duration::from_secs(1);
    let limits = ExecutionLimits {
        plugin_timeout: second,
        check_timeout: second,
        git_timeout: second,
        cleanup_timeout: second,
        plugin_output_bytes: 1,
        check_output_bytes: 1,
        git_output_bytes: 1,
    };
    Recorder::new(SHA.parse().unwrap(), limits)
}

/// Where one slot is tested.
struct Bench {
    gate: Gate,
    stop: Stop,
    log: Log,
    served: tokio::task::JoinHandle<(bool, Broken)>,
    _state: tempfile::TempDir,
}

impl Bench {
    fn log(&self) -> Vec<&'static str> {
        self.log.lock().unwrap().clone()
    }

    async fn end(self) -> (bool, Broken) {
        timeout(Duration::from_secs(1000), self.served)
            .await
            .unwrap()
            .unwrap()
    }
}

fn text(result: &str) -> Completion {
    Completion::Text {
        result: result.to_owned(),
    }
}

/// Starts a session whose one job takes this long and ends like this.
fn stage(takes: Duration, completion: Completion) -> Bench {
    stage_with(takes, completion, Vec::new(), None)
}

/// A session that has offered live activity, and a job that reaches these stages.
fn active(takes: Duration, stages: &[(u64, Stage)], completion: Completion) -> Bench {
    let stages = stages
        .iter()
        .map(|(after, stage)| (Duration::from_secs(*after), *stage));
    let job = Job {
        takes,
        stages: stages.collect(),
        cleanup: Some(None),
        ..Job::new(0, completion)
    };
    bench(job, Some(ActivityVersion::V1))
}

fn stage_with(
    takes: Duration,
    completion: Completion,
    evidence: Vec<EvidenceRecord>,
    cleanup: Option<Option<EvidenceRecord>>,
) -> Bench {
    let job = Job {
        takes,
        evidence,
        cleanup,
        ..Job::new(0, completion)
    };
    bench(job, None)
}

fn slot() -> SlotId {
    SlotId::new("worker-1".parse().unwrap(), 3).unwrap()
}

fn state() -> (tempfile::TempDir, Arc<Results>) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap().join("state");
    let (results, kept) = Results::open(&root, slot().worker(), 4).unwrap();
    assert!(kept.is_empty());
    (dir, Arc::new(results))
}

/// One connection of a slot that offers job control, as always.
fn bench(job: Job, activity_version: Option<ActivityVersion>) -> Bench {
    let (mut link, gate) = pair();
    let (state, results) = state();
    let log = Log::default();
    let script = Script {
        jobs: Mutex::new([job].into()),
        log: Arc::clone(&log),
    };
    let stop = Stop::default();
    let task_stop = stop.clone();
    #[expect(clippy::disallowed_methods, reason = "each test awaits the handle")]
    let served = tokio::spawn(async move {
        let query = ConnectQuery {
            activity_version,
            control_version: Some(ControlVersion::V1),
            ..ConnectQuery::new(slot())
        };
        let home = Home {
            slot: slot(),
            results,
        };
        let guard = DiskGuard::with_probe(None);
        let serving = Serving {
            query: &query,
            heartbeat_interval: BEAT,
            executor: &script,
            stop: &task_stop,
            home: &home,
            guard: &guard,
        };
        serve(&mut link, &serving, &mut None).await
    });
    Bench {
        gate,
        stop,
        log,
        served,
        _state: state,
    }
}

/// A slot from its start to its end, over as many connections as the test opens.
struct Life {
    links: mpsc::UnboundedSender<MemoryLink>,
    stop: Stop,
    log: Log,
    ended: tokio::task::JoinHandle<()>,
    state: tempfile::TempDir,
}

/// Hands out the connections that the test has opened, and waits for the next one.
struct Dialled(tokio::sync::Mutex<mpsc::UnboundedReceiver<MemoryLink>>);

impl Connect for Dialled {
    type Link = MemoryLink;

    async fn connect(&self, query: &ConnectQuery) -> Result<MemoryLink, ConnectError> {
        assert_eq!(query.control_version, Some(ControlVersion::V1));
        let link = self.0.lock().await.recv().await;
        link.ok_or_else(|| ConnectError::Failed("refused".to_owned()))
    }
}

impl Life {
    fn new(jobs: impl Into<VecDeque<Job>>) -> Self {
        Self::with(
            jobs,
            DiskGuard::with_probe(None),
            tempfile::tempdir().unwrap(),
        )
    }

    /// A slot on the state folder of an earlier one.
    fn with(jobs: impl Into<VecDeque<Job>>, guard: DiskGuard, state: tempfile::TempDir) -> Self {
        let root = state.path().canonicalize().unwrap().join("state");
        let (results, mut kept) = Results::open(&root, slot().worker(), 4).unwrap();
        let (links, dialled) = mpsc::unbounded_channel();
        let (log, stop) = (Log::default(), Stop::default());
        let script = Script {
            jobs: Mutex::new(jobs.into()),
            log: Arc::clone(&log),
        };
        let shared = Arc::new(Shared {
            connector: Dialled(tokio::sync::Mutex::new(dialled)),
            executor: script,
            heartbeat_interval: BEAT,
            stop: stop.clone(),
            results: Arc::new(results),
            guard,
        });
        let query = ConnectQuery {
            activity_version: Some(ActivityVersion::V1),
            control_version: Some(ControlVersion::V1),
            ..ConnectQuery::new(slot())
        };
        #[expect(clippy::disallowed_methods, reason = "each test awaits the handle")]
        let ended = tokio::spawn(async move {
            let guard = shared.guard.clone();
            tokio::select! {
                never = guard.keep_looking() => match never {},
                () = supervise(shared, query, kept.pop()) => {}
            }
        });
        Self {
            links,
            stop,
            log,
            ended,
            state,
        }
    }

    /// The next connection of the slot.
    fn connection(&self) -> Gate {
        let (link, gate) = pair();
        assert!(self.links.send(link).is_ok(), "the slot has ended");
        gate
    }

    /// The next connection, greeted by a Gate with job control.
    async fn greeted(&self) -> Gate {
        let mut gate = self.connection();
        gate.say(ping(1));
        assert_eq!(gate.text().await, pong(1));
        gate
    }

    fn log(&self) -> Vec<&'static str> {
        self.log.lock().unwrap().clone()
    }

    /// The files of the results, and of those that were moved aside.
    fn files(&self) -> (Vec<String>, Vec<String>) {
        let list = |folder: &str| {
            let mut names: Vec<_> = fs_err::read_dir(self.state.path().join(folder))
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .filter(|name| name != "refused")
                .collect();
            names.sort();
            names
        };
        (list("state/results"), list("state/results/refused"))
    }

    async fn ended(self) -> tempfile::TempDir {
        timeout(Duration::from_secs(1000), self.ended)
            .await
            .unwrap()
            .unwrap();
        self.state
    }
}

const TOKEN: &str = "dddddddddddddddddddddddddddddddd";

/// A lease that selects job control and live activity.
fn controlled() -> String {
    lease().replacen(
        '{',
        &format!(
            "{{\"activity_version\":\"live_activity/v1\",\"control_version\":\"job_control/v1\",\"attach_token\":\"{TOKEN}\","
        ),
        1,
    )
}

fn ping(n: u64) -> String {
    format!("{{\"type\":\"ping\",\"n\":{n}}}\n")
}

fn pong(n: u64) -> String {
    format!("{{\"type\":\"pong\",\"n\":{n}}}\n")
}

fn attach() -> String {
    message("attach", &format!(",\"attach_token\":\"{TOKEN}\""))
}

fn attached(deadline_ms: u64) -> String {
    message("attached", &format!(",\"deadline_ms\":{deadline_ms}"))
}

fn cancel() -> String {
    message("cancel", ",\"reason\":\"operator\"")
}

fn refuses(reason: &str) -> String {
    format!("{{\"type\":\"ready\",\"accepting\":false,\"reason\":\"{reason}\"}}\n")
}

fn result(text: &str) -> String {
    message("result", &format!(",\"result\":\"{text}\""))
}

fn failed() -> String {
    message(
        "result",
        ",\"error\":\"execution_failed\",\"disposition\":\"retryable\"",
    )
}
