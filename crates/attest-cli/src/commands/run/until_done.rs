//! Runs something to its end, with an ear for whoever wants it to end sooner.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::thread;
use std::time::Duration;

use cli_shell::CliError;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// How long the last words of an interrupted run may wait for a reader.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Runs something to its end on this thread; an interrupt or a request to end cancels it, and it
/// is waited for all the same, since it has processes to end.
///
/// What is left to say afterwards may meet a reader that never reads. An interrupt ends this
/// process then, with `code`; where there was one already, a moment later.
pub(crate) fn block_on<T>(
    code: u8,
    cancel: &CancellationToken,
    work: impl Future<Output = T>,
) -> Result<T, CliError> {
    let failed = |error| CliError::operation(error).because("cannot start the runtime");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    let mut requests = runtime.block_on(Requests::heard()).map_err(failed)?;
    let done = runtime.block_on(async {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = requests.next() => cancel.cancel(),
            }
        }
    });
    // The runtime moves on: a thread that still hashes a large tree for a cancelled run is not
    // waited for.
    let interrupted = cancel.is_cancelled();
    let afterwards = move || leave(&runtime, requests, interrupted, code);
    let started = thread::Builder::new().spawn(afterwards);
    started.map_err(failed)?;
    Ok(done)
}

#[expect(
    clippy::exit,
    reason = "the main thread may wait for a reader that never reads"
)]
fn leave(runtime: &Runtime, mut requests: Requests, interrupted: bool, code: u8) {
    runtime.block_on(async {
        if interrupted {
            // The first of several requests is heard; a second one is impatience.
            tokio::time::timeout(LAST_WORDS, requests.next()).await.ok();
        } else {
            requests.next().await;
        }
    });
    std::process::exit(i32::from(code));
}

/// The signals that ask a process to end.
struct Requests {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    quit: Signal,
}

impl Requests {
    async fn heard() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            Some(()) = self.interrupt.recv() => {}
            Some(()) = self.terminate.recv() => {}
            Some(()) = self.hangup.recv() => {}
            Some(()) = self.quit.recv() => {}
            else => std::future::pending().await,
        }
    }
}
