//! The plugin under test: how one fresh process of it is started and watched.

use std::ffi::OsString;
use std::time::Duration;

use process_tree::{
    Child, Ladder, Leftovers, Outlived, Spec, StartError, Status, Stdin, WaitError, Wrapper,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use crate::scenario::Rejection;
use crate::verdict::{End, Observed};

/// How much more than the right answer is read before the plugin counts as endless.
const SURPLUS: usize = 65_536;

/// How much of the end of standard error is kept.
const STDERR_TAIL: usize = 4_096;

/// The executable under test, its arguments and its environment.
#[derive(Clone, Debug)]
pub struct Target {
    /// The command: the executable, by path or by a name in PATH, and its arguments.
    pub argv: Vec<OsString>,
    /// The whole environment of every process of it.
    pub env: Vec<(OsString, OsString)>,
    /// The executable that watches over each process.
    pub wrapper: Wrapper,
}

/// Why there is nothing to judge.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The plugin could not be started.
    #[error("the plugin cannot be started")]
    Start(#[from] StartError),
    /// The end of the plugin could not be learnt.
    #[error("the end of the plugin cannot be observed")]
    Wait(#[from] WaitError),
}

/// The outputs of a process as far as they have come.
#[derive(Default)]
struct Outputs {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// Why watching stopped before the process ended.
enum Stop {
    Flood,
    Wait(WaitError),
}

impl Target {
    /// Runs one process, writes the bytes of a rejection, and reports what it did within the limit.
    pub(crate) async fn refuse(
        &self,
        rejection: &Rejection,
        limit: Duration,
    ) -> Result<Observed, TargetError> {
        let spec = Spec::new(self.argv.iter().cloned())
            .env(self.env.iter().cloned())
            .stdin(Stdin::Pipe)
            .leftovers(Leftovers::Fail);
        let mut child = process_tree::spawn(&self.wrapper, spec).await?;
        let mut outputs = Outputs::default();
        let enough = rejection.answer.len() + SURPLUS;
        let watched = watch(&mut child, &rejection.wire, enough, &mut outputs);
        let end = match tokio::time::timeout(limit, watched).await {
            Ok(Ok(end)) => end,
            Ok(Err(Stop::Wait(error))) => return Err(error.into()),
            Ok(Err(Stop::Flood)) => {
                child.cancel(Ladder::KILL).await;
                End::Flood
            }
            Err(_elapsed) => {
                child.cancel(Ladder::KILL).await;
                End::Timeout(limit)
            }
        };
        Ok(Observed {
            stdout: outputs.stdout,
            stderr: outputs.stderr,
            end,
        })
    }
}

/// Writes, reads both outputs and waits, all at once: whichever side is slow, nobody blocks.
async fn watch(
    child: &mut Child,
    wire: &[u8],
    enough: usize,
    outputs: &mut Outputs,
) -> Result<End, Stop> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let Some(mut stdin) = stdin {
            // A plugin that has seen enough may leave before everything is written.
            drop(stdin.write_all(wire).await);
        }
        Ok(())
    };
    let Outputs {
        stdout: out,
        stderr: err,
    } = outputs;
    let read = async {
        if read_up_to(stdout, enough, out).await {
            Ok(())
        } else {
            Err(Stop::Flood)
        }
    };
    let drain = async {
        keep_tail(stderr, err).await;
        Ok(())
    };
    let wait = async { child.wait().await.map_err(Stop::Wait) };
    let ((), (), (), exit) = tokio::try_join!(write, read, drain, wait)?;
    Ok(match (exit.leftovers, exit.status) {
        (Outlived::HeldOutput(_), _) => End::HeldOutput,
        (_, Status::Code(code)) => End::Code(code),
        (_, Status::Signal(signal)) => End::Signal(signal),
        (_, Status::Lost) => End::Lost,
    })
}

/// Reads to the end and says so, or stops once there is more than enough.
async fn read_up_to(
    from: Option<impl AsyncRead + Unpin>,
    enough: usize,
    into: &mut Vec<u8>,
) -> bool {
    let Some(mut from) = from else { return true };
    while let Ok(count) = from.read_buf(into).await {
        if count == 0 {
            return true;
        }
        if into.len() > enough {
            return false;
        }
    }
    true
}

pub(crate) async fn keep_tail(from: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) {
    let Some(mut from) = from else { return };
    while from.read_buf(into).await.is_ok_and(|count| count > 0) {
        if into.len() > 2 * STDERR_TAIL {
            into.drain(..into.len() - STDERR_TAIL);
        }
    }
}
