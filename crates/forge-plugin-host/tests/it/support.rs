//! Runs the fixture plugin.

use std::path::{Path, PathBuf};
use std::time::Duration;

use forge_plugin_host::{PluginCommand, RunError, RunLimits, run};
use forge_plugin_protocol::{Capability, Operation, Outcome, Progress};
use process_tree::Wrapper;
use tokio_util::sync::CancellationToken;

pub(crate) const FIXTURE: &str = env!("CARGO_BIN_EXE_forge-plugin-host-fixture");

/// What is offered to a plugin that turns text into text, with all the rest.
pub(crate) const OFFER: [Capability; 3] =
    [Capability::Text, Capability::Progress, Capability::Cancel];

/// One run of the fixture, with generous limits unless a test sets its own.
pub(crate) struct Run {
    pub(crate) command: PluginCommand,
    pub(crate) operation: Operation,
    pub(crate) limits: RunLimits,
    pub(crate) cancel: CancellationToken,
    /// Cancels when the plugin sends its first progress.
    pub(crate) cancel_at_progress: bool,
    pub(crate) progress: Vec<Progress>,
}

impl Run {
    /// A plugin with a script of words, split at spaces.
    pub(crate) fn script(words: &str) -> Self {
        Self::words(words.split_whitespace())
    }

    pub(crate) fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        Self::argv(std::iter::once(FIXTURE).chain(words))
    }

    pub(crate) fn argv<'a>(argv: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            command: PluginCommand {
                argv: argv.into_iter().map(str::to_owned).collect(),
                env: Vec::new(),
                cwd: None,
            },
            operation: Operation::text("hello").unwrap(),
            limits: RunLimits {
                timeout: Duration::from_secs(60),
                output_bytes: 10_000_000,
            },
            cancel: CancellationToken::new(),
            cancel_at_progress: false,
            progress: Vec::new(),
        }
    }

    pub(crate) fn timeout(mut self, milliseconds: u64) -> Self {
        self.limits.timeout = Duration::from_millis(milliseconds);
        self
    }

    pub(crate) fn output_bytes(mut self, bytes: u64) -> Self {
        self.limits.output_bytes = bytes;
        self
    }

    pub(crate) fn cancel_at_progress(mut self) -> Self {
        self.cancel_at_progress = true;
        self
    }

    pub(crate) async fn end(&mut self) -> Result<Outcome, RunError> {
        let (cancel, at_progress) = (self.cancel.clone(), self.cancel_at_progress);
        let progress = &mut self.progress;
        run(
            &Wrapper::new(FIXTURE),
            &self.command,
            &self.operation,
            &OFFER,
            &self.limits,
            &self.cancel,
            &mut |frame| {
                progress.push(frame);
                if at_progress {
                    cancel.cancel();
                }
            },
        )
        .await
    }

    /// The reason and the end of stderr of a run that must break the protocol.
    pub(crate) async fn broken(&mut self) -> (String, String) {
        match self.end().await {
            Err(RunError::Protocol {
                reason,
                stderr_tail,
                ..
            }) => (reason, stderr_tail),
            other => panic!("expected a broken protocol, got {other:?}"),
        }
    }

    pub(crate) async fn output(&mut self) -> String {
        match self.end().await {
            Ok(Outcome::Text(output)) => output.to_string(),
            other => panic!("expected an output, got {other:?}"),
        }
    }

    pub(crate) async fn is_cancelled(&mut self) {
        let end = self.end().await;
        assert!(matches!(end, Err(RunError::Cancelled)), "{end:?}");
    }
}

pub(crate) struct Scratch(tempfile::TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// The number that a process told in a file.
pub(crate) fn told(path: &Path) -> i32 {
    std::fs::read_to_string(path).unwrap().parse().unwrap()
}

/// Tells whether a process runs; a zombie does not.
pub(crate) fn runs(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap().starts_with(" Z"))
}
