//! A part of the appliance as a process of its own, with its log in a file.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use cli_shell::{env, visible};
use forge_client::wrap;
use process_tree::{Child, Ladder, Leftovers, Signal, Spec, Wrapper, spawn};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::error::DemoError;

/// How long a part may take to say that it is there.
const FIRST_STEP: Duration = Duration::from_secs(20);
const SHOWN_LINES: usize = 12;

/// A running part.
#[derive(Debug)]
pub(crate) struct Server {
    name: &'static str,
    child: Child,
    log: PathBuf,
    lines: mpsc::UnboundedReceiver<String>,
    pumps: JoinSet<()>,
}

impl Server {
    /// Starts `PROGRAM ROLE --config FILE` with no more of the environment than it needs.
    pub(crate) async fn start(
        wrapper: &Wrapper,
        name: &'static str,
        argv: Vec<OsString>,
        variables: &[String],
        log: PathBuf,
    ) -> Result<Self, DemoError> {
        let names = variables.iter().map(String::as_str);
        let spec = Spec::new(argv)
            .env(env::pick(
                ["PATH", cli_shell::logging::FILTER_VARIABLE]
                    .into_iter()
                    .chain(names),
            ))
            .cwd("/")
            .leftovers(Leftovers::KillAndWarn);
        let file = fs_err::tokio::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .await
            .map_err(|source| DemoError::Write {
                path: log.clone(),
                source,
            })?;
        let mut child = spawn(wrapper, spec)
            .await
            .map_err(|source| DemoError::Start { name, source })?;
        let (sender, lines) = mpsc::unbounded_channel();
        let mut pumps = JoinSet::new();
        if let Some(stderr) = child.stderr.take() {
            pumps.spawn(pump(stderr, file, sender));
        }
        // These programs print nothing else; what they might print must not block them.
        if let Some(mut stdout) = child.stdout.take() {
            pumps.spawn(async move {
                drop(tokio::io::copy(&mut stdout, &mut tokio::io::sink()).await);
            });
        }
        Ok(Self {
            name,
            child,
            log,
            lines,
            pumps,
        })
    }

    /// Waits for the log event of that name and returns one of its fields.
    pub(crate) async fn event(
        &mut self,
        event: &str,
        field: &str,
        what: &'static str,
    ) -> Result<String, DemoError> {
        let found = async {
            while let Some(line) = self.lines.recv().await {
                let Ok(line) = serde_json::from_str::<Value>(&line) else {
                    continue;
                };
                if line.get("event").and_then(Value::as_str) == Some(event) {
                    return line.get(field).and_then(Value::as_str).map(str::to_owned);
                }
            }
            None
        };
        match tokio::time::timeout(FIRST_STEP, found).await {
            Ok(Some(value)) => Ok(value),
            // Its standard error is closed, so it ends or has ended.
            Ok(None) => Err(self.ended().await),
            Err(_) => Err(self.late(what)),
        }
    }

    pub(crate) fn late(&self, what: &'static str) -> DemoError {
        DemoError::Late {
            name: self.name,
            what,
            seconds: FIRST_STEP.as_secs(),
        }
    }

    /// Waits for its end, which nobody asked for.
    pub(crate) async fn ended(&mut self) -> DemoError {
        let how = match self.child.wait().await {
            Ok(exit) => exit.status.to_string(),
            Err(error) => error.to_string(),
        };
        DemoError::Ended {
            name: self.name,
            how,
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.pid()
    }

    /// Ends it with everything that it started, and waits for its last log line.
    pub(crate) async fn stop(mut self) {
        self.child.cancel(Ladder::ask(Signal::Terminate)).await;
        while self.pumps.join_next().await.is_some() {}
    }

    /// What its log has of warnings and errors, the last ones, fit to print.
    pub(crate) fn complaints(&self) -> String {
        complaints(&fs_err::read_to_string(&self.log).unwrap_or_default())
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }
}

/// How long a part may take for its first step, for those who wait elsewhere.
pub(crate) const fn first_step() -> Duration {
    FIRST_STEP
}

async fn pump(
    from: impl AsyncRead + Unpin,
    mut to: fs_err::tokio::File,
    lines: mpsc::UnboundedSender<String>,
) {
    let mut from = BufReader::new(from).lines();
    while let Ok(Some(line)) = from.next_line().await {
        let whole = format!("{line}\n");
        drop(to.write_all(whole.as_bytes()).await);
        drop(lines.send(line));
    }
    drop(to.flush().await);
}

fn complaints(log: &str) -> String {
    let said: Vec<String> = log.lines().filter_map(complaint).collect();
    let from = said.len().saturating_sub(SHOWN_LINES);
    said.into_iter().skip(from).collect()
}

/// A line that is a warning or an error, or no log line at all, such as the last words of a start.
fn complaint(line: &str) -> Option<String> {
    let Ok(Value::Object(fields)) = serde_json::from_str(line) else {
        return Some(wrap(&visible(line), "  ", "    "));
    };
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    if !matches!(text("level"), Some("WARN" | "ERROR")) {
        return None;
    }
    let mut words = text("msg").unwrap_or_default().to_owned();
    for name in [
        "event",
        "failure_code",
        "reason",
        "detail",
        "error",
        "cause",
    ] {
        if let Some(value) = text(name).filter(|value| !value.is_empty()) {
            words.push_str(&format!("; {value}"));
        }
    }
    Some(wrap(&visible(&words), "  ", "    "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_are_warnings_errors_and_foreign_lines() {
        let log = r#"{"level":"INFO","msg":"worker started"}
{"level":"WARN","msg":"job failed","reason":"plugin_failed","detail":"\u001b[2J"}
error: no such file
"#;
        assert_eq!(
            complaints(log),
            "  job failed; plugin_failed; \\u{1b}[2J\n  error: no such file\n"
        );
        let many = "error\n".repeat(SHOWN_LINES + 1);
        assert_eq!(complaints(&many).lines().count(), SHOWN_LINES);
    }
}
