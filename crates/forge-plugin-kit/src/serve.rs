//! One session from its first byte to its last: read, run the handler, answer.
//!
//! Without `cancel` nothing is read after `execute` and the handler runs on the calling thread.
//! With it, one thread reads and another runs the handler, so that the answer to a cancellation
//! does not depend on either of them. The end of the input is told to the handler as well: a host
//! keeps it open until it has the answer, so one that closes it is gone.

use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use forge_plugin_protocol::{
    Capability, CommitSubject, FailureCategory, InvalidCapabilities, Operation, Outcome, Output,
    PluginEvent, PluginSession, ProtocolError, Report, SendError,
};

use crate::context::{Channel, SendOrWrite, flush};
use crate::plugin::{Plugin, complain};
use crate::{Cancel, Context, Edit, Failure, WorkspaceTask};

/// How long a cancelled handler may take to stop. The host waits 250 ms; the rest is for the
/// answer and the exit.
const CANCEL_GRACE: Duration = Duration::from_millis(200);

const READ_BYTES: usize = 65_536;

/// Why a session ended without an answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The plugin has no handler, or names a capability twice.
    #[error("the plugin's own capabilities are not usable")]
    Capabilities(#[source] InvalidCapabilities),
    /// The host broke the protocol.
    #[error("the host broke the protocol")]
    Protocol(#[source] ProtocolError),
    /// The host cannot be read from.
    #[error("cannot read from the host")]
    Read(#[source] io::Error),
    /// The host cannot be written to.
    #[error("cannot write to the host")]
    Write(#[source] io::Error),
    /// The session has no place for an answer.
    #[error("cannot answer the host")]
    Answer(#[source] SendError),
    /// The system has no thread to give.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
}

impl From<SendOrWrite> for ServeError {
    fn from(error: SendOrWrite) -> Self {
        match error {
            SendOrWrite::Send(error) => Self::Answer(error),
            SendOrWrite::Write(error) => Self::Write(error),
        }
    }
}

/// Serves one operation.
pub(crate) fn serve(
    plugin: Plugin,
    mut input: impl Read + Send + 'static,
    mut output: impl Write + Send + 'static,
) -> Result<(), ServeError> {
    let name = plugin.name.clone();
    let mut session =
        PluginSession::new(&plugin.capabilities()).map_err(ServeError::Capabilities)?;
    let operation = open(&mut session, &mut input, &mut output)?;
    let selected: Arc<[Capability]> = session
        .selection()
        .map(|all| all.iter().collect())
        .unwrap_or_default();
    let channel = Arc::new(Channel::new(session, Box::new(output)));
    let context = Context::new(selected, Cancel::new(), Arc::clone(&channel));
    let answer = if context.selected(Capability::Cancel) {
        watched(plugin, operation, &context, Arc::clone(&channel), input)?
    } else {
        guarded(plugin, operation, &context)
    };
    let answer = answer.and_then(|answer| answer.outcome(&context));
    let mut writer = channel.lock();
    match answer {
        Ok(outcome) => writer.succeed(&outcome)?,
        Err(failure) => {
            complain(&name, &failure);
            let category = if writer.cancelled {
                // Whatever goes wrong after the host has cancelled counts as the answer to that.
                FailureCategory::Cancelled
            } else {
                failure.category()
            };
            writer.fail(category)?;
        }
    }
    Ok(())
}

/// Reads up to `execute`. What the session says goes out even if the next frame is broken.
fn open(
    session: &mut PluginSession,
    input: &mut dyn Read,
    output: &mut dyn Write,
) -> Result<Operation, ServeError> {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let received = receive(session, input, &mut buffer)?;
        flush(session, output).map_err(ServeError::Write)?;
        received.map_err(ServeError::Protocol)?;
        if let Some(PluginEvent::Execute(operation)) = session.poll_event() {
            return Ok(operation);
        }
    }
}

/// Reads once; the end of the input is told to the session as well.
fn receive(
    session: &mut PluginSession,
    input: &mut dyn Read,
    buffer: &mut [u8],
) -> Result<Result<(), ProtocolError>, ServeError> {
    let count = read(input, buffer).map_err(ServeError::Read)?;
    Ok(match buffer.get(..count) {
        Some(bytes) if count > 0 => session.receive(bytes),
        _ => session.input_closed(),
    })
}

fn read(input: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match input.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// What a handler came to, before the limits of the protocol are applied.
enum Answer {
    Text(String),
    Edit(Edit),
}

impl Answer {
    /// Applies the limits; what the host did not ask for is left out.
    fn outcome(self, context: &Context) -> Result<Outcome, Failure> {
        let invalid = |what: &str, error: &dyn std::fmt::Display| {
            Failure::execution_failed(format!("the handler's {what} cannot be sent: {error}"))
        };
        match self {
            Self::Text(text) => Ok(Outcome::Text(
                Output::new(text).map_err(|error| invalid("output", &error))?,
            )),
            Self::Edit(Edit {
                commit_subject,
                report,
            }) => {
                let subject =
                    commit_subject.filter(|_| context.selected(Capability::CommitSubject));
                let subject = subject.map(CommitSubject::new).transpose();
                let report = report.filter(|_| context.selected(Capability::AgentReport));
                let report = report
                    .map(|(summary, changes)| Report::new(summary, changes))
                    .transpose();
                Ok(Outcome::Workspace {
                    subject: subject.map_err(|error| invalid("commit subject", &error))?,
                    report: report.map_err(|error| invalid("report", &error))?,
                })
            }
        }
    }
}

/// Runs the handler and turns a panic, whose message the panic hook has printed, into a failure.
fn guarded(plugin: Plugin, operation: Operation, context: &Context) -> Result<Answer, Failure> {
    let run = AssertUnwindSafe(|| match operation {
        Operation::Text { input } => match plugin.text {
            Some(handler) => handler(input.into(), context).map(Answer::Text),
            None => Err(Failure::incompatible("there is no handler for text")),
        },
        Operation::WorkspaceEdit {
            workspace,
            instruction,
            timeout_ms,
        } => match plugin.workspace {
            Some(handler) => {
                let task = WorkspaceTask {
                    workspace: workspace.as_str().into(),
                    instruction: instruction.into(),
                    timeout: timeout_ms.duration(),
                };
                handler(task, context).map(Answer::Edit)
            }
            None => Err(Failure::incompatible(
                "there is no handler for workspace_edit",
            )),
        },
    });
    catch_unwind(run).unwrap_or_else(|_| Err(Failure::execution_failed("the handler panicked")))
}

enum Signal {
    Done(Result<Answer, Failure>),
    /// The host has cancelled, or is gone.
    Cancelled,
    Broken(ServeError),
}

/// Runs the handler on a thread of its own while another one reads.
fn watched(
    plugin: Plugin,
    operation: Operation,
    context: &Context,
    channel: Arc<Channel>,
    input: impl Read + Send + 'static,
) -> Result<Result<Answer, Failure>, ServeError> {
    let (sender, signals) = mpsc::channel();
    spawn("forge-plugin-reader", {
        let (cancel, sender) = (context.cancel().clone(), sender.clone());
        move || listen(&channel, input, &cancel, &sender)
    })?;
    spawn("forge-plugin-handler", {
        let context = context.clone();
        // Nobody listens any more once the session has been given up.
        move || drop(sender.send(Signal::Done(guarded(plugin, operation, &context))))
    })?;
    wait(&signals)
}

fn wait(signals: &Receiver<Signal>) -> Result<Result<Answer, Failure>, ServeError> {
    let broken = match signals.recv() {
        Ok(Signal::Done(answer)) => return Ok(answer),
        Ok(Signal::Broken(error)) => Some(error),
        Ok(Signal::Cancelled) | Err(_) => None,
    };
    let stopped = match signals.recv_timeout(CANCEL_GRACE) {
        Ok(Signal::Done(answer)) => answer,
        Ok(Signal::Broken(error)) => return Err(error),
        Ok(Signal::Cancelled) | Err(_) => Err(Failure::cancelled()),
    };
    broken.map_or(Ok(stopped), Err)
}

/// Reads what comes after `execute`: at most one `cancel`, then the end.
fn listen(channel: &Channel, mut input: impl Read, cancel: &Cancel, signals: &Sender<Signal>) {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        // A `cancel` may have come together with `execute`, so look before the first read.
        let event = {
            let mut writer = channel.lock();
            let event = writer.session.poll_event();
            writer.cancelled |= event == Some(PluginEvent::Cancel);
            event
        };
        match event {
            Some(PluginEvent::Cancel) => {
                drop(signals.send(Signal::Cancelled));
                cancel.cancel();
            }
            Some(PluginEvent::InputClosed) => {
                // After the answer nobody listens, and a handler is told once.
                if !cancel.is_cancelled() {
                    drop(signals.send(Signal::Cancelled));
                    cancel.cancel();
                }
                return;
            }
            Some(PluginEvent::Execute(_)) => {}
            None => {
                let broken = match read(&mut input, &mut buffer) {
                    Err(error) => Some(ServeError::Read(error)),
                    Ok(count) => {
                        let mut writer = channel.lock();
                        let received = match buffer.get(..count) {
                            Some(bytes) if count > 0 => writer.session.receive(bytes),
                            _ => writer.session.input_closed(),
                        };
                        received.err().map(ServeError::Protocol)
                    }
                };
                if let Some(error) = broken {
                    drop(signals.send(Signal::Broken(error)));
                    cancel.cancel();
                    return;
                }
            }
        }
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), ServeError> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
        .map(drop)
        .map_err(ServeError::Thread)
}

#[cfg(test)]
mod tests;
