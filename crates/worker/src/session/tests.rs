//! One connection against a scripted Gate, in memory and in simulated time.

use std::sync::{Arc, Mutex};

use forge_domain::Stage::{Analyzing, Editing, PreparingResult, Testing};
use forge_domain::{ExecutionLimits, Reason, SlotId};
use gate_link::ActivityVersion;
use tokio::sync::mpsc;
use tokio::time::{advance, sleep, timeout};

use super::*;
use crate::evidence::Recorder;
use crate::execution::{CleanUp, Task};

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

#[derive(Debug, PartialEq, Eq)]
enum Sent {
    Message(String),
    /// The Close frame, and the message that left with it.
    Last(Option<String>),
    Ping(u64),
    Closed(Closing),
}

/// The Worker's end of a connection in memory.
struct MemoryLink {
    incoming: mpsc::UnboundedReceiver<Result<Incoming, LinkDown>>,
    sent: mpsc::UnboundedSender<Sent>,
    /// From here on writing never ends, as with a full socket buffer.
    stuck: Arc<Mutex<bool>>,
}

impl MemoryLink {
    async fn put(&self, sent: Sent) -> Result<(), LinkDown> {
        if *self.stuck.lock().unwrap() {
            pending::<()>().await;
        }
        self.sent
            .send(sent)
            .map_err(|_| LinkDown::Failed("broken pipe".to_owned()))
    }
}

impl Link for MemoryLink {
    async fn receive(&mut self) -> Result<Incoming, LinkDown> {
        match self.incoming.recv().await {
            Some(incoming) => incoming,
            None => Err(LinkDown::Closed("gone".to_owned())),
        }
    }

    async fn send(&mut self, frame: Vec<u8>) -> Result<(), LinkDown> {
        self.put(Sent::Message(String::from_utf8(frame).unwrap()))
            .await
    }

    async fn send_last(&mut self, frame: Option<Vec<u8>>) -> Result<(), LinkDown> {
        let frame = frame.map(|frame| String::from_utf8(frame).unwrap());
        self.put(Sent::Last(frame)).await
    }

    async fn ping(&mut self, number: u64) -> Result<(), LinkDown> {
        self.put(Sent::Ping(number)).await
    }

    fn set_write_patience(&self, _: Duration) {}

    async fn close(&mut self, closing: Closing) {
        self.sent.send(Sent::Closed(closing)).ok();
    }
}

/// The Gate's end.
struct Gate {
    outgoing: mpsc::UnboundedSender<Result<Incoming, LinkDown>>,
    sent: mpsc::UnboundedReceiver<Sent>,
    stuck: Arc<Mutex<bool>>,
}

impl Gate {
    fn say(&self, text: impl Into<String>) {
        self.outgoing
            .send(Ok(Incoming::Message(text.into().into_bytes())))
            .unwrap();
    }

    fn close(&self) {
        let closed = LinkDown::Closed("1001".to_owned());
        self.outgoing.send(Err(closed)).ok();
    }

    fn pong(&self, number: u64) {
        self.outgoing.send(Ok(Incoming::Pong(number))).ok();
    }

    async fn next(&mut self) -> Sent {
        timeout(Duration::from_secs(1000), self.sent.recv())
            .await
            .unwrap()
            .unwrap()
    }

    async fn text(&mut self) -> String {
        match self.next().await {
            Sent::Message(text) => text,
            other => panic!("expected a message, got {other:?}"),
        }
    }
}

/// What a job does, and what became of it.
struct Script {
    takes: Duration,
    /// The stages that it reaches, and when.
    stages: Vec<(Duration, Stage)>,
    execution: Mutex<Option<Execution>>,
    log: Arc<Mutex<Vec<&'static str>>>,
}

impl Executor for Script {
    fn execute(&self, _: Lease, control: Control) -> Task<Execution> {
        let execution = self
            .execution
            .lock()
            .unwrap()
            .take()
            .expect("one execution a script");
        let (takes, log) = (self.takes, Arc::clone(&self.log));
        let (stages, activity) = (self.stages.clone(), control.activity.clone());
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
    log: Arc<Mutex<Vec<&'static str>>>,
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

struct Bench {
    gate: Gate,
    stop: Stop,
    log: Arc<Mutex<Vec<&'static str>>>,
    served: tokio::task::JoinHandle<(bool, Broken)>,
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
    let offer = Some(ActivityVersion::V1);
    bench(
        takes,
        completion,
        Vec::new(),
        Some(None),
        offer,
        stages.collect(),
    )
}

fn stage_with(
    takes: Duration,
    completion: Completion,
    evidence: Vec<EvidenceRecord>,
    cleanup: Option<Option<EvidenceRecord>>,
) -> Bench {
    bench(takes, completion, evidence, cleanup, None, Vec::new())
}

fn bench(
    takes: Duration,
    completion: Completion,
    evidence: Vec<EvidenceRecord>,
    cleanup: Option<Option<EvidenceRecord>>,
    offer: Option<ActivityVersion>,
    stages: Vec<(Duration, Stage)>,
) -> Bench {
    let (outgoing, incoming) = mpsc::unbounded_channel();
    let (sender, sent) = mpsc::unbounded_channel();
    let stuck = Arc::new(Mutex::new(false));
    let log = Arc::new(Mutex::new(Vec::new()));
    let mut link = MemoryLink {
        incoming,
        sent: sender,
        stuck: Arc::clone(&stuck),
    };
    let cleanup = cleanup.map(|record| {
        Box::new(ScriptedCleanUp {
            record,
            log: Arc::clone(&log),
        }) as Box<dyn CleanUp>
    });
    let script = Script {
        takes,
        stages,
        execution: Mutex::new(Some(Execution {
            evidence,
            completion,
            cleanup,
        })),
        log: Arc::clone(&log),
    };
    let stop = Stop::default();
    let task_stop = stop.clone();
    #[expect(clippy::disallowed_methods, reason = "each test awaits the handle")]
    let served = tokio::spawn(async move {
        let slot = SlotId::new("worker-1".parse().unwrap(), 3).unwrap();
        let query = ConnectQuery {
            activity_version: offer,
            ..ConnectQuery::new(slot)
        };
        let serving = Serving {
            query: &query,
            heartbeat_interval: BEAT,
            executor: &script,
            stop: &task_stop,
        };
        serve(&mut link, &serving).await
    });
    Bench {
        gate: Gate {
            outgoing,
            sent,
            stuck,
        },
        stop,
        log,
        served,
    }
}

#[tokio::test(start_paused = true)]
async fn text_job_is_lease_result_ack_and_again() {
    let mut stage = stage(Duration::from_secs(1), text("HELLO"));
    stage.gate.say(lease());
    assert_eq!(
        stage.gate.text().await,
        message("result", ",\"result\":\"HELLO\"")
    );
    stage.gate.say(ack());
    stage.stop.drain();
    assert_eq!(stage.gate.next().await, Sent::Last(None));
    let (proved, broken) = stage.end().await;
    assert!(proved);
    assert!(matches!(broken, Broken::Drained));
}

#[tokio::test(start_paused = true)]
async fn heartbeats_name_the_base_id_and_go_on_until_the_last_ack() {
    let mut stage = stage(Duration::from_secs(25), text("x"));
    stage.gate.say(lease());
    let since = Instant::now();
    for number in 1..=2 {
        assert_eq!(stage.gate.next().await, heartbeat());
        assert_eq!(stage.gate.next().await, Sent::Ping(number));
        assert_eq!(since.elapsed(), BEAT * u32::try_from(number).unwrap());
    }
    assert_eq!(
        stage.gate.text().await,
        message("result", ",\"result\":\"x\"")
    );
    // No ack yet: the lease is kept alive.
    assert_eq!(stage.gate.next().await, heartbeat());
    assert_eq!(stage.gate.next().await, Sent::Ping(3));
    stage.gate.say(ack());
    sleep(TTL).await;
    stage.stop.drain();
    assert_eq!(stage.gate.next().await, Sent::Last(None));
}

#[tokio::test(start_paused = true)]
async fn evidence_then_cleanup_then_result() {
    let evidence = vec![recorder().event(Reason::PluginStartFailed, Duration::from_millis(7))];
    let failed = Completion::Failed(WorkerFailure::ExecutionFailed);
    let mut stage = stage_with(Duration::ZERO, failed, evidence, Some(None));
    stage.gate.say(lease());
    let sent = stage.gate.text().await;
    let head = message("evidence", "");
    assert!(
        sent.starts_with(head.trim_end().trim_end_matches('}')),
        "{sent}"
    );
    assert!(
        sent.contains(r#""phase":"plugin","reason":"plugin_start_failed","duration_ms":7,"#),
        "{sent}"
    );
    sleep(Duration::from_secs(1)).await;
    assert_eq!(
        stage.log(),
        ["started", "done"],
        "cleaned before the evidence was stored"
    );
    stage.gate.say(ack());
    let result = message(
        "result",
        ",\"error\":\"execution_failed\",\"disposition\":\"retryable\"",
    );
    assert_eq!(stage.gate.text().await, result);
    assert_eq!(stage.log(), ["started", "done", "cleaned"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_cleanup_is_a_batch_of_its_own() {
    let cleanup = recorder().event(Reason::CleanupFailed, Duration::from_millis(9));
    let sha = Completion::Candidate {
        sha: "2".repeat(40).parse().unwrap(),
        report: None,
    };
    let mut stage = stage_with(Duration::ZERO, sha, Vec::new(), Some(Some(cleanup)));
    stage.gate.say(lease());
    let sent = stage.gate.text().await;
    assert!(
        sent.contains(r#""phase":"cleanup","reason":"cleanup_failed""#),
        "{sent}"
    );
    stage.gate.say(ack());
    let result = message(
        "result",
        &format!(",\"candidate_sha\":\"{}\"", "2".repeat(40)),
    );
    assert_eq!(stage.gate.text().await, result);
}

#[tokio::test(start_paused = true)]
async fn whatever_is_no_lease_ends_an_idle_connection() {
    let strangers = [
        (ack(), Closing::Protocol),
        (message("result", ",\"result\":\"x\""), Closing::Protocol),
        (
            "{\"type\":\"error\",\"error\":\"request failed\"}\n".to_owned(),
            Closing::Drop,
        ),
        ("{".to_owned(), Closing::Protocol),
        (
            lease().replace(
                "\"input\"",
                "\"activity\":{\"sequence\":1,\"stage\":\"analyzing\"},\"input\"",
            ),
            Closing::Protocol,
        ),
        (
            lease().replace(
                "\"input\"",
                "\"activity_version\":\"live_activity/v9\",\"input\"",
            ),
            Closing::Protocol,
        ),
        (
            lease().replace(
                "\"input\"",
                "\"activity_version\":\"live_activity/v1\",\"input\"",
            ),
            Closing::Protocol,
        ),
        (
            lease().replace("\"input\"", "\"extra\":1,\"input\""),
            Closing::Protocol,
        ),
    ];
    for (stranger, closing) in strangers {
        let mut stage = stage(Duration::ZERO, text("x"));
        stage.gate.say(stranger.clone());
        assert_eq!(stage.gate.next().await, Sent::Closed(closing), "{stranger}");
        assert!(stage.log().is_empty(), "{stranger}");
        let (proved, _) = stage.end().await;
        assert!(!proved, "{stranger}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_out_of_bounds_is_answered_with_invalid_task() {
    let mut stage = stage(Duration::ZERO, text("x"));
    stage
        .gate
        .say(lease().replace("\"max_attempts\":3", "\"max_attempts\":101"));
    let refusal = message(
        "result",
        ",\"error\":\"invalid_task\",\"disposition\":\"terminal\"",
    );
    assert_eq!(stage.gate.text().await, refusal);
    stage.gate.say(ack());
    // The slot is good for the next one.
    stage.gate.say(lease());
    assert_eq!(
        stage.gate.text().await,
        message("result", ",\"result\":\"x\"")
    );
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_ends_before_a_heartbeat_is_refused() {
    for ttl in ["10000000000", "9999999999"] {
        let mut stage = stage(Duration::ZERO, text("x"));
        stage.gate.say(lease().replace("30000000000", ttl));
        let refusal = message(
            "result",
            ",\"error\":\"invalid_task\",\"disposition\":\"terminal\"",
        );
        assert_eq!(stage.gate.text().await, refusal);
        assert!(stage.log().is_empty());
    }
    let mut stage = stage(Duration::ZERO, text("x"));
    stage
        .gate
        .say(lease().replace("30000000000", "10000000001"));
    assert_eq!(
        stage.gate.text().await,
        message("result", ",\"result\":\"x\"")
    );
}

#[tokio::test(start_paused = true)]
async fn a_message_during_execution_cancels_the_job_and_ends_the_connection() {
    for stranger in [ack(), lease(), message("evidence", ",\"evidence\":[]")] {
        let mut stage = stage_with(TTL, text("x"), Vec::new(), Some(None));
        stage.gate.say(lease());
        sleep(Duration::from_secs(1)).await;
        stage.gate.say(stranger);
        assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Protocol));
        assert_eq!(stage.log(), ["started", "cancelled", "cleaned"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_closed_connection_cancels_the_job_at_once() {
    let mut stage = stage_with(Duration::from_secs(600), text("x"), Vec::new(), Some(None));
    stage.gate.say(lease());
    sleep(Duration::from_secs(1)).await;
    let since = Instant::now();
    stage
        .gate
        .outgoing
        .send(Err(LinkDown::Closed("1006".to_owned())))
        .unwrap();
    assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Drop));
    assert_eq!(since.elapsed(), Duration::ZERO);
    assert_eq!(stage.log(), ["started", "cancelled", "cleaned"]);
    let (proved, broken) = stage.end().await;
    assert!(proved && matches!(broken, Broken::Down(_)), "{broken:?}");
}

#[tokio::test(start_paused = true)]
async fn a_failed_heartbeat_write_cancels_the_job() {
    let mut stage = stage_with(Duration::from_secs(600), text("x"), Vec::new(), Some(None));
    stage.gate.say(lease());
    sleep(Duration::from_secs(1)).await;
    stage.gate.sent.close();
    sleep(BEAT).await;
    assert_eq!(stage.log(), ["started", "cancelled", "cleaned"]);
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_stuck_write_cancels_the_job_before_the_lease_could_be_given_away() {
    let mut stage = stage_with(Duration::from_secs(600), text("x"), Vec::new(), Some(None));
    stage.gate.say(lease());
    assert_eq!(stage.gate.next().await, heartbeat());
    let renewed = Instant::now();
    assert_eq!(stage.gate.next().await, Sent::Ping(1));
    *stage.gate.stuck.lock().unwrap() = true;
    assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Drop));
    assert_eq!(renewed.elapsed(), TTL - Duration::from_secs(1));
    assert_eq!(stage.log(), ["started", "cancelled", "cleaned"]);
    assert!(matches!(stage.end().await.1, Broken::LeaseLost));
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_stops_answering_pings_loses_the_job_in_time() {
    let mut stage = stage(Duration::from_secs(600), text("x"));
    stage.gate.say(lease());
    assert_eq!(stage.gate.next().await, heartbeat());
    let renewed = Instant::now();
    assert_eq!(stage.gate.next().await, Sent::Ping(1));
    stage.gate.pong(1);
    // The writes below still succeed: the peer's machine takes them, the Gate does not.
    for number in 2..=3 {
        assert_eq!(stage.gate.next().await, heartbeat());
        assert_eq!(stage.gate.next().await, Sent::Ping(number));
    }
    assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Drop));
    assert_eq!(renewed.elapsed(), TTL - Duration::from_secs(1));
    assert_eq!(stage.log(), ["started", "cancelled"]);
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_answers_pings_keeps_the_job_for_long() {
    let mut stage = stage(Duration::from_secs(95), text("x"));
    stage.gate.say(lease());
    for number in 1..=9 {
        assert_eq!(stage.gate.next().await, heartbeat());
        assert_eq!(stage.gate.next().await, Sent::Ping(number));
        stage.gate.pong(number);
    }
    assert_eq!(
        stage.gate.text().await,
        message("result", ",\"result\":\"x\"")
    );
    assert_eq!(stage.log(), ["started", "done"]);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_was_stopped_past_the_lease_lets_go_first() {
    let mut stage = stage(Duration::from_secs(300), text("x"));
    stage.gate.say(lease());
    sleep(Duration::from_secs(1)).await;
    advance(Duration::from_secs(200)).await; // SIGSTOP, SIGCONT
    assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Drop));
    assert_eq!(stage.log(), ["started", "cancelled"]);
    assert!(matches!(stage.end().await.1, Broken::LeaseLost));
}

#[tokio::test(start_paused = true)]
async fn an_ack_for_another_attempt_is_refused_and_the_result_is_dropped() {
    let mut stage = stage(Duration::ZERO, text("x"));
    stage.gate.say(lease());
    stage.gate.text().await;
    stage.gate.say(ack().replace(ATTEMPT, &"c".repeat(32)));
    assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Protocol));
}

#[tokio::test(start_paused = true)]
async fn an_ack_with_an_unknown_field_is_refused() {
    let mut stage = stage(Duration::ZERO, text("x"));
    stage.gate.say(lease());
    stage.gate.text().await;
    stage.gate.say(ack().replace('}', ",\"extra\":1}"));
    assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Protocol));
}

#[tokio::test(start_paused = true)]
async fn evidence_without_ack_still_cleans_up() {
    let evidence = vec![recorder().event(Reason::NoChanges, Duration::ZERO)];
    let failed = Completion::Failed(WorkerFailure::ExecutionFailed);
    let mut stage = stage_with(Duration::ZERO, failed, evidence, Some(None));
    stage.gate.say(lease());
    stage.gate.text().await;
    stage
        .gate
        .outgoing
        .send(Err(LinkDown::Closed("1006".to_owned())))
        .unwrap();
    assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Drop));
    assert_eq!(stage.log(), ["started", "done", "cleaned"]);
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_never_acknowledges_is_left() {
    let mut stage = stage(Duration::ZERO, text("x"));
    stage.gate.say(lease());
    stage.gate.text().await;
    let since = Instant::now();
    loop {
        match stage.gate.next().await {
            Sent::Ping(number) => stage.gate.pong(number),
            Sent::Message(text) => assert!(text.contains("heartbeat"), "{text}"),
            Sent::Closed(closing) => {
                assert_eq!(closing, Closing::Protocol);
                break;
            }
            Sent::Last(last) => panic!("{last:?}"),
        }
    }
    assert_eq!(since.elapsed(), ACK_TIMEOUT);
}

/// A lease that selects what was offered.
fn selecting() -> String {
    lease().replace(
        "\"input\"",
        "\"activity_version\":\"live_activity/v1\",\"input\"",
    )
}

fn activity(sequence: u8, stage: &str) -> String {
    let head = format!(
        "{{\"activity_version\":\"live_activity/v1\",\"activity\":{{\"sequence\":{sequence},\"stage\":\"{stage}\"}},"
    );
    message("activity", ",\"worker_id\":\"worker-1\"").replacen('{', &head, 1)
}

#[tokio::test(start_paused = true)]
async fn stages_are_sent_as_they_come_and_the_last_before_the_result() {
    let stages = [
        (1, Analyzing),
        (2, Editing),
        (2, Editing),
        (3, Analyzing),
        (4, Testing),
        (5, PreparingResult),
    ];
    let mut stage = active(Duration::from_secs(5), &stages, text("x"));
    stage.gate.say(selecting());
    let since = Instant::now();
    for (sequence, name, second) in [
        (1, "analyzing", 1),
        (2, "editing", 2),
        (3, "testing", 4),
        (4, "preparing_result", 5),
    ] {
        assert_eq!(stage.gate.text().await, activity(sequence, name));
        assert_eq!(since.elapsed().as_secs(), second);
    }
    let result = message("result", ",\"result\":\"x\"");
    assert_eq!(stage.gate.text().await, result);
    stage.gate.say(ack());
    stage.stop.drain();
    assert_eq!(stage.gate.next().await, Sent::Last(None));
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_does_not_select_activity_hears_none() {
    let stages = [(1, Analyzing), (2, Testing)];
    let mut stage = active(Duration::from_secs(3), &stages, text("x"));
    stage.gate.say(lease());
    assert_eq!(
        stage.gate.text().await,
        message("result", ",\"result\":\"x\"")
    );
    // Where nothing was offered, nothing can be selected.
    let mut silent = self::stage(Duration::ZERO, text("x"));
    silent.gate.say(selecting());
    assert_eq!(silent.gate.next().await, Sent::Closed(Closing::Protocol));
    assert!(silent.log().is_empty());
}

#[tokio::test(start_paused = true)]
async fn activity_and_heartbeats_go_side_by_side() {
    let stages = [(10, Analyzing), (15, Editing)];
    let mut stage = active(Duration::from_secs(16), &stages, text("x"));
    stage.gate.say(selecting());
    let mut sent = Vec::new();
    loop {
        match stage.gate.next().await {
            Sent::Message(text) if text.contains("\"result\"") => break,
            Sent::Message(text) => sent.push(text),
            Sent::Ping(number) => stage.gate.pong(number),
            other => panic!("{other:?}"),
        }
    }
    sent.sort();
    let Sent::Message(heartbeat) = heartbeat() else {
        panic!("no message")
    };
    let expected = [activity(1, "analyzing"), activity(2, "editing"), heartbeat];
    assert_eq!(sent, expected);
}

#[tokio::test(start_paused = true)]
async fn a_failed_activity_write_cancels_the_job() {
    let stages = [(2, Analyzing)];
    let mut stage = active(Duration::from_secs(600), &stages, text("x"));
    stage.gate.say(selecting());
    sleep(Duration::from_secs(1)).await;
    stage.gate.sent.close();
    sleep(Duration::from_secs(2)).await;
    assert_eq!(stage.log(), ["started", "cancelled", "cleaned"]);
    assert!(matches!(stage.end().await.1, Broken::Down(_)));
}

#[tokio::test(start_paused = true)]
async fn a_stuck_activity_write_cancels_the_job_before_the_lease_could_be_given_away() {
    let stages = [(2, Analyzing)];
    let mut stage = active(Duration::from_secs(600), &stages, text("x"));
    stage.gate.say(selecting());
    let since = Instant::now();
    sleep(Duration::from_secs(1)).await;
    *stage.gate.stuck.lock().unwrap() = true;
    assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Drop));
    assert_eq!(since.elapsed(), TTL - Duration::from_secs(1));
    assert_eq!(stage.log(), ["started", "cancelled", "cleaned"]);
    assert!(matches!(stage.end().await.1, Broken::LeaseLost));
}

/// The result of the one job, which leaves with the Close frame.
fn last() -> Sent {
    Sent::Last(Some(message("result", ",\"result\":\"x\"")))
}

fn handed_back() -> String {
    message(
        "result",
        ",\"error\":\"execution_failed\",\"disposition\":\"retryable\"",
    )
}

#[tokio::test(start_paused = true)]
async fn draining_lets_the_job_finish_and_closes_with_its_result() {
    let mut stage = stage(Duration::from_secs(25), text("x"));
    stage.gate.say(lease());
    sleep(Duration::from_secs(1)).await;
    stage.stop.drain();
    for number in 1..=2 {
        assert_eq!(stage.gate.next().await, heartbeat());
        assert_eq!(stage.gate.next().await, Sent::Ping(number));
        stage.gate.pong(number);
    }
    assert_eq!(stage.gate.next().await, last());
    // Nothing follows the Close frame, however long the answer takes.
    sleep(ACK_TIMEOUT - Duration::from_secs(1)).await;
    assert!(stage.gate.sent.try_recv().is_err());
    stage.gate.say(ack());
    stage.gate.close();
    assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Drop));
    assert_eq!(stage.log(), ["started", "done"]);
    let (proved, broken) = stage.end().await;
    assert!(proved && matches!(broken, Broken::Drained), "{broken:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_behind_the_close_is_neither_begun_nor_answered() {
    // One that comes with the acknowledgement, and one of a Gate that reads the Close late.
    for late in [Duration::ZERO, Duration::from_millis(50)] {
        let mut stage = stage(Duration::from_secs(5), text("x"));
        stage.gate.say(lease());
        sleep(Duration::from_secs(1)).await;
        stage.stop.drain();
        assert_eq!(stage.gate.next().await, last());
        let since = Instant::now();
        stage.gate.say(ack());
        sleep(late).await;
        stage.gate.say(lease());
        assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Drop));
        assert_eq!(since.elapsed(), LAST_WORDS, "a Gate that never closes");
        assert_eq!(stage.log(), ["started", "done"]);
        let (proved, broken) = stage.end().await;
        assert!(proved && matches!(broken, Broken::Drained), "{broken:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_closes_without_an_acknowledgement_leaves_the_result_open() {
    let mut stage = stage(Duration::from_secs(5), text("x"));
    stage.gate.say(lease());
    sleep(Duration::from_secs(1)).await;
    stage.stop.drain();
    assert_eq!(stage.gate.next().await, last());
    stage.gate.close();
    assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Drop));
    assert!(matches!(stage.end().await.1, Broken::Unsure(_)));
}

#[tokio::test(start_paused = true)]
async fn a_last_result_that_nobody_acknowledges_is_waited_for_as_any_other() {
    let mut stage = stage(Duration::from_secs(5), text("x"));
    stage.gate.say(lease());
    stage.stop.drain();
    // Drained before it was read: it is handed back.
    assert_eq!(stage.gate.next().await, Sent::Last(Some(handed_back())));
    let since = Instant::now();
    assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Protocol));
    assert_eq!(since.elapsed(), ACK_TIMEOUT);
    assert!(stage.log().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_signal_between_result_and_acknowledgement_hands_the_next_lease_back() {
    for late in [Duration::ZERO, CROSSING - Duration::from_millis(1)] {
        let mut stage = stage(Duration::from_secs(5), text("x"));
        stage.gate.say(lease());
        assert_eq!(
            stage.gate.text().await,
            message("result", ",\"result\":\"x\"")
        );
        stage.stop.drain();
        sleep(Duration::from_secs(1)).await;
        stage.gate.say(ack());
        sleep(late).await;
        stage.gate.say(lease());
        assert_eq!(stage.gate.next().await, Sent::Last(Some(handed_back())));
        stage.gate.say(ack());
        stage.gate.close();
        assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Drop));
        assert_eq!(stage.log(), ["started", "done"], "the second is not begun");
        assert!(matches!(stage.end().await.1, Broken::Drained));
    }
}

#[tokio::test(start_paused = true)]
async fn a_signal_between_result_and_acknowledgement_closes_when_no_lease_follows() {
    let mut stage = stage(Duration::from_secs(5), text("x"));
    stage.gate.say(lease());
    stage.gate.text().await;
    stage.stop.drain();
    stage.gate.say(ack());
    let since = Instant::now();
    assert_eq!(stage.gate.next().await, Sent::Last(None));
    assert_eq!(since.elapsed(), CROSSING);
}

#[tokio::test(start_paused = true)]
async fn an_idle_slot_closes_at_once_and_waits_for_the_answer() {
    let mut idle = stage(Duration::ZERO, text("x"));
    sleep(Duration::from_secs(1)).await;
    let since = Instant::now();
    idle.stop.drain();
    assert_eq!(idle.gate.next().await, Sent::Last(None));
    assert_eq!(since.elapsed(), Duration::ZERO);
    // What crosses the Close frame cannot be answered.
    idle.gate.say(lease());
    idle.gate.close();
    assert_eq!(idle.gate.next().await, Sent::Closed(Closing::Drop));
    assert_eq!(since.elapsed(), Duration::ZERO);
    assert!(idle.log().is_empty());
    assert!(matches!(idle.end().await.1, Broken::Drained));

    // A connection that takes no more bytes holds nobody up.
    let mut stuck = stage(Duration::ZERO, text("x"));
    *stuck.gate.stuck.lock().unwrap() = true;
    sleep(Duration::from_secs(1)).await;
    let since = Instant::now();
    stuck.stop.drain();
    assert_eq!(stuck.gate.next().await, Sent::Closed(Closing::Drop));
    assert_eq!(since.elapsed(), LAST_WORDS);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_has_come_when_the_signal_does_is_handed_back() {
    let mut stage = stage(Duration::from_secs(5), text("x"));
    sleep(Duration::from_secs(1)).await;
    stage.gate.say(lease());
    stage.stop.drain();
    assert_eq!(stage.gate.next().await, Sent::Last(Some(handed_back())));
    stage.gate.say(ack());
    stage.gate.close();
    assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Drop));
    assert!(stage.log().is_empty());
    assert!(matches!(stage.end().await.1, Broken::Drained));
}

#[tokio::test(start_paused = true)]
async fn cancelling_reports_the_job_as_failed_while_connected() {
    let mut stage = stage(Duration::from_secs(600), text("x"));
    stage.gate.say(lease());
    sleep(Duration::from_secs(1)).await;
    stage.stop.cancel();
    assert_eq!(stage.gate.next().await, Sent::Last(Some(handed_back())));
    stage.gate.say(ack());
    stage.gate.close();
    assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Drop));
}

#[tokio::test(start_paused = true)]
async fn killing_reports_nothing() {
    let mut stage = stage(Duration::from_secs(600), text("x"));
    stage.gate.say(lease());
    sleep(Duration::from_secs(1)).await;
    stage.stop.kill();
    assert_eq!(stage.gate.next().await, Sent::Closed(Closing::Drop));
    assert_eq!(stage.log(), ["started", "cancelled"]);
}
