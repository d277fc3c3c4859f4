//! Plugins that are shell scripts, and a host that runs them.

use std::collections::BTreeMap;
use std::future::Future;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attest_plugin_host::{
    Answer, Clock, Command, Declared, Host, HostOptions, OnFailure, Plugins, RunLog, SearchPath,
    StartError,
};
use attest_plugin_protocol::{BeforeStep, Hook, Payload};
use attest_receipt::receipt::PluginRecord;
use process_tree::Wrapper;
use tokio_util::sync::CancellationToken;

const WRAPPER: &str = env!("CARGO_BIN_EXE_attest-plugin-host-fixture");

/// What every script may call. `get` reads a message, `hello` answers the first one, `verdict`
/// answers with a decision and what else the verdict shall hold.
const PRELUDE: &str = r#"#!/bin/sh
get() {
  IFS= read -r line || exit 9
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  kind=${line#*\"kind\":\"}; kind=${kind%%\"*}
}
hello_ok() {
  printf '{"v":1,"id":1,"kind":"hello_ok","name":"%s","version":"1.2.3","protocol":1,"hooks":["pipeline.validate","step.pre","step.post","receipt.finalize"],"deterministic":true}\n' "$ATTEST_PLUGIN_NAME"
}
hello() { get; hello_ok; }
verdict() { printf '{"v":1,"id":%s,"kind":"verdict","decision":"%s"%s}\n' "$id" "$1" "$2"; }
"#;

/// Answers everything with `allow` until it is told to end.
pub(crate) const GOOD: &str = r#"
hello
while get; do
  case $kind in shutdown) exit 0 ;; *) verdict allow ;; esac
done
"#;

pub(crate) const BOTH: [OnFailure; 2] = [OnFailure::FailClosed, OnFailure::FailOpen];

/// A workspace, the plugins that it declares, and what was logged.
pub(crate) struct Bench {
    folder: tempfile::TempDir,
    pub(crate) plugins: Plugins,
    pub(crate) log: Arc<Kept>,
    pub(crate) clock: Clock,
    pub(crate) cancel: CancellationToken,
    pub(crate) search: String,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            plugins: Plugins::default(),
            log: Arc::default(),
            clock: Clock::adjustable(),
            cancel: CancellationToken::new(),
            search: "/usr/bin:/bin".to_owned(),
        }
    }

    /// One plugin called `p`.
    pub(crate) fn of(script: &str, on_failure: OnFailure) -> Self {
        let mut bench = Self::new();
        bench.add("p", script).on_failure = on_failure;
        bench
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Declares one more plugin, asked before steps.
    pub(crate) fn add(&mut self, name: &str, script: &str) -> &mut Declared {
        let file = self.path(&format!("plugin-{name}"));
        let text = format!("{PRELUDE}{script}");
        std::fs::write(&file, &text).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
        let digest = format!("blake3:{}", blake3::hash(text.as_bytes()));
        self.plugins.plugins.push(Declared {
            name: name.parse().unwrap(),
            command: Command::Absolute(file),
            digest: Some(digest.parse().unwrap()),
            hooks: vec![Hook::StepPre],
            deterministic: true,
            on_failure: OnFailure::FailClosed,
            timeout: Duration::from_secs(30),
            wants_output: false,
            env: BTreeMap::new(),
        });
        self.plugins.plugins.last_mut().unwrap()
    }

    pub(crate) fn options(&self) -> HostOptions {
        HostOptions {
            workspace: self.folder.path().to_owned(),
            attest_version: "9.8.7".to_owned(),
            search: SearchPath::new(&self.search),
            wrapper: Wrapper::new(WRAPPER),
            log: self.log.clone(),
            cancel: self.cancel.clone(),
        }
    }

    pub(crate) async fn start(&self) -> Result<Host, StartError> {
        Host::start_by(&self.plugins, self.options(), self.clock.clone()).await
    }

    /// Starts what has to start.
    pub(crate) async fn host(&self) -> Host {
        self.start().await.unwrap()
    }

    /// Waits for `future`, and lets `time` pass once a plugin has made the file `name`.
    pub(crate) async fn once<F: Future>(&self, name: &str, time: Duration, future: F) -> F::Output {
        let mut future = pin!(future);
        let path = self.path(name);
        tokio::select! {
            biased;
            early = &mut future => return early,
            () = exists(&path) => {}
        }
        self.clock.advance(time);
        future.await
    }
}

/// Waits for a file.
pub(crate) async fn exists(path: &Path) {
    while !path.exists() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Asks before a step.
pub(crate) async fn ask(host: &mut Host) -> Answer {
    ask_about(host, "build").await
}

pub(crate) async fn ask_about(host: &mut Host, step: &str) -> Answer {
    host.ask(Hook::StepPre, &mut |_| before(step)).await
}

pub(crate) fn before(step: &str) -> Payload {
    Payload::BeforeStep(BeforeStep {
        name: step.to_owned(),
        run: "make".to_owned(),
        needs: Vec::new(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        input_hash: "a".repeat(64),
        command_hash: "b".repeat(64),
        capsule_hash: None,
        cache_hit: false,
    })
}

/// The record of the only plugin.
pub(crate) fn record(host: &Host) -> PluginRecord {
    let mut records = host.records();
    assert_eq!(records.len(), 1);
    records.remove(0)
}

/// What was logged, as `NAME: LINE`.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Vec<String>>);

impl RunLog for Kept {
    fn line(&self, plugin: &str, line: &str) {
        self.0.lock().unwrap().push(format!("{plugin}: {line}"));
    }
}

impl Kept {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn has(&self, part: &str) -> bool {
        self.lines().iter().any(|line| line.contains(part))
    }
}

/// The process that a plugin named in a file.
pub(crate) fn pid_in(path: &Path) -> i32 {
    let text = std::fs::read_to_string(path).unwrap();
    text.trim().parse().unwrap()
}

/// Tells whether a process runs; a zombie does not.
pub(crate) fn runs(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap().starts_with(" Z"))
}

/// Waits until a process is gone; false if it still runs after ten seconds.
pub(crate) async fn goes(pid: i32) -> bool {
    for _ in 0..5_000 {
        if !runs(pid) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    false
}
