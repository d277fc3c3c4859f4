//! What a command writes goes on to this program's own outputs, unchanged.

use std::io;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

/// Takes a line that is nobody's output, from any thread, to where people see it.
pub(super) type Aside = Arc<dyn Fn(String) + Send + Sync>;

/// Does the work while what its command writes is passed on as it comes. All of it is written
/// before this returns, unless its reader went away.
pub(super) fn pass<R>(
    ui: &Ui,
    work: impl FnOnce(&Through) -> Result<R, CliError>,
) -> Result<Passed<R>, CliError> {
    let lines = Mutex::new(Lines::default());
    let through = Through::default();
    let show_out = |turn: Turn<Vec<u8>>| match turn {
        Turn::Show(bytes) => write(io::stdout(), &bytes),
        Turn::Idle => ControlFlow::Continue(()),
    };
    let show_err = |turn: Turn<Said>| {
        match turn {
            Turn::Show(Said::Bytes(bytes)) => {
                let write = |bytes: &[u8]| write(io::stderr(), bytes);
                return locked(&lines).pass(&bytes, write, |line| ui.status(line));
            }
            Turn::Show(Said::Aside(line)) => locked(&lines).aside(line, |line| ui.status(line)),
            Turn::Show(Said::Warning(message)) => ui.warn(visible(&message)),
            Turn::Show(Said::Status(message)) => ui.status(visible(&message)),
            Turn::Idle => {}
        }
        ControlFlow::Continue(())
    };
    let Through { out, err } = &through;
    let work = || work(&through);
    let done = out.shown(IDLE, show_out, || err.shown(IDLE, show_err, work))?;
    let mut lines = locked(&lines);
    Ok(Passed {
        done,
        open_line: lines.end(|line| ui.status(line)),
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
    Aside(String),
    Warning(String),
    Status(String),
}

/// Passes on what a command writes.
#[derive(Default)]
pub(super) struct Through {
    out: Queue<Vec<u8>>,
    err: Arc<Queue<Said>>,
}

impl Through {
    /// Returns what takes lines beside the command's own.
    pub(super) fn asides(&self) -> Aside {
        let err = Arc::clone(&self.err);
        Arc::new(move |line: String| {
            let bytes = line.len();
            err.put(Said::Aside(line), bytes);
        })
    }
}

/// The lines of a command's standard error, and those that others have to say meanwhile: they
/// wait until the command's line has its end.
#[derive(Default)]
struct Lines {
    open: bool,
    held: Vec<String>,
}

impl Lines {
    fn pass(
        &mut self,
        bytes: &[u8],
        mut write: impl FnMut(&[u8]) -> ControlFlow<()>,
        show: impl Fn(&str),
    ) -> ControlFlow<()> {
        let ends = bytes.iter().rposition(|byte| *byte == b'\n');
        let (whole, rest) = bytes.split_at(ends.map_or(0, |end| end + 1));
        if !whole.is_empty() {
            self.open = false;
            write(whole)?;
            self.held.drain(..).for_each(|line| show(&line));
        }
        if rest.is_empty() {
            return ControlFlow::Continue(());
        }
        self.open = true;
        write(rest)
    }

    fn aside(&mut self, line: String, show: impl Fn(&str)) {
        if self.open {
            self.held.push(line);
        } else {
            show(&line);
        }
    }

    /// Shows what still waits, and tells whether a line is left open.
    fn end(&mut self, show: impl Fn(&str)) -> bool {
        for (place, line) in self.held.drain(..).enumerate() {
            let start = if place == 0 { "\n" } else { "" };
            show(&format!("{start}{line}"));
            self.open = false;
        }
        self.open
    }
}

fn locked(lines: &Mutex<Lines>) -> MutexGuard<'_, Lines> {
    lines.lock().unwrap_or_else(PoisonError::into_inner)
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn a_line_beside_the_commands_own_waits_for_the_end_of_that() {
        let seen = RefCell::new(String::new());
        let write = |bytes: &[u8]| {
            seen.borrow_mut().push_str(&String::from_utf8_lossy(bytes));
            ControlFlow::Continue(())
        };
        let show = |line: &str| seen.borrow_mut().push_str(&format!("{line}\n"));
        let mut lines = Lines::default();
        lines.aside("one".into(), show);
        assert!(lines.pass(b"a\nb", write, show).is_continue());
        lines.aside("two".into(), show);
        assert!(lines.pass(b"c", write, show).is_continue());
        assert!(lines.pass(b"d\ne", write, show).is_continue());
        assert!(lines.end(show));
        lines.aside("three".into(), show);
        lines.aside("four".into(), show);
        assert!(!lines.end(show));
        assert_eq!(*seen.borrow(), "one\na\nbcd\ntwo\ne\nthree\nfour\n");
    }
}
