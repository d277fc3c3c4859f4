//! What a command writes goes on to this program's own outputs, unchanged.

use std::io;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use attest_engine::output::{Observer, Stream};
use cli_shell::{CliError, Ui, visible};
use rustix::io::Errno;

use super::aside::{Queue, Turn};

/// How long an output that takes nothing right now, and does not wait itself, is left alone.
const AGAIN: Duration = Duration::from_millis(5);
/// There is nothing to do in silence.
const IDLE: Duration = Duration::from_secs(3600);

/// Does the work while what its command writes is passed on as it comes. All of it is written
/// before this returns, unless its reader went away.
pub(super) fn pass<R>(
    ui: &Ui,
    work: impl FnOnce(&dyn Observer) -> Result<R, CliError>,
) -> Result<Passed<R>, CliError> {
    let open_line = AtomicBool::new(false);
    let through = Through::default();
    let show_out = |turn: Turn<Vec<u8>>| match turn {
        Turn::Show(bytes) => write(io::stdout(), &bytes),
        Turn::Idle => ControlFlow::Continue(()),
    };
    let show_err = |turn: Turn<Said>| {
        match turn {
            Turn::Show(Said::Bytes(bytes)) => {
                if let Some(last) = bytes.last() {
                    open_line.store(*last != b'\n', Ordering::Relaxed);
                }
                return write(io::stderr(), &bytes);
            }
            Turn::Show(Said::Warning(message)) => ui.warn(visible(&message)),
            Turn::Show(Said::Status(message)) => ui.status(visible(&message)),
            Turn::Idle => {}
        }
        ControlFlow::Continue(())
    };
    let Through { out, err } = &through;
    let work = || work(&through);
    let done = out.shown(IDLE, show_out, || err.shown(IDLE, show_err, work))?;
    Ok(Passed {
        done,
        open_line: open_line.load(Ordering::Relaxed),
    })
}

/// What the work came to.
pub(super) struct Passed<R> {
    pub(super) done: R,
    /// The command's last line on standard error has no end.
    pub(super) open_line: bool,
}

enum Said {
    Bytes(Vec<u8>),
    Warning(String),
    Status(String),
}

/// Passes on what a command writes.
#[derive(Default)]
struct Through {
    out: Queue<Vec<u8>>,
    err: Queue<Said>,
}

impl Observer for Through {
    fn output(&self, _step: &str, stream: Stream, bytes: &[u8]) {
        match stream {
            Stream::Out => self.out.put(bytes.to_vec(), bytes.len()),
            Stream::Err => self.err.put(Said::Bytes(bytes.to_vec()), bytes.len()),
        }
    }

    fn warning(&self, message: &str) {
        let bytes = message.len();
        self.err.put(Said::Warning(message.to_owned()), bytes);
    }

    fn waiting(&self, message: &str) {
        let bytes = message.len();
        self.err.put(Said::Status(message.to_owned()), bytes);
    }

    fn room(&self, stream: Stream) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        match stream {
            Stream::Out => self.out.room(),
            Stream::Err => self.err.room(),
        }
    }

    fn gone(&self, stream: Stream) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        match stream {
            Stream::Out => self.out.gone(),
            Stream::Err => self.err.gone(),
        }
    }
}

/// Writes all of it, past every buffer; breaks off where nobody will ever read again.
fn write(to: impl AsFd, mut bytes: &[u8]) -> ControlFlow<()> {
    while !bytes.is_empty() {
        match rustix::io::write(&to, bytes) {
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => thread::sleep(AGAIN),
            Err(Errno::PIPE) => return ControlFlow::Break(()),
            // A disk that is full is no reason to end the command, which may do more than write.
            Err(_) => return ControlFlow::Continue(()),
        }
    }
    ControlFlow::Continue(())
}
