//! One process led through a session, in one of several manners, and everything that it did.
//!
//! The frames are whatever bytes the caller hands in. Nothing here judges; it listens, and it
//! measures how far it was held up itself, so that a busy machine is not taken for a slow plugin.

use std::cell::RefCell;
use std::convert::Infallible;
use std::ffi::OsString;
use std::time::{Duration, Instant};

use cli_shell::clock;
use process_tree::{Child, ChildStdin, Exit, Ladder, Leftovers, Outlived, Spec, Status, Stdin};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdout;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::conduct::Manner;
use crate::heard::{self, Heard};
use crate::target::{Target, TargetError, keep_tail};
use crate::verdict::End;
use crate::wire::Frame;

/// How long a plugin is watched after its input has ended, before it counts as one that stays.
const LINGER: Duration = Duration::from_millis(1_250);

/// How long the slow reader reads nothing.
const SLOW_START: Duration = Duration::from_millis(300);

/// How much the slow reader takes at a time.
const SLOW_BYTES: usize = 1_024;

/// How long a plugin may work before it is cancelled, unless it shows that it works.
const UNDER_WAY: Duration = Duration::from_millis(100);

/// More output than a plugin can have a use for.
const FLOOD: usize = 8 * 1_048_576;

const TICK: Duration = Duration::from_millis(10);

/// What is said to a plugin, and how.
#[derive(Clone, Debug)]
pub(crate) struct Dialog {
    /// The first frame.
    pub(crate) opening: Vec<u8>,
    /// The second frame.
    pub(crate) execute: Vec<u8>,
    /// The way in which both are written and the answers read.
    pub(crate) manner: Manner,
}

/// Leads one process through a dialog.
pub(crate) async fn hold(
    target: &Target,
    environment: &[(OsString, OsString)],
    dialog: &Dialog,
    limit: Duration,
) -> Result<Heard, TargetError> {
    let spec = Spec::new(target.argv.iter().cloned())
        .env(environment.iter().cloned())
        .stdin(Stdin::Pipe)
        .leftovers(Leftovers::Fail);
    let mut child = process_tree::spawn(&target.wrapper, spec).await?;
    let inbox = Inbox::default();
    let (mut stderr, mut late) = (Vec::new(), Duration::ZERO);
    let exit = tokio::select! {
        exit = whole(&mut child, dialog, &inbox, &mut stderr) => Some(exit?),
        () = inbox.overdue(limit) => None,
        never = pulse(&mut late) => match never {},
    };
    let over = clock::instant();
    if exit.is_none() {
        child.cancel(Ladder::KILL).await;
    }
    let state = inbox.0.into_inner();
    let since = |begin: Option<Instant>, end: Option<Instant>| {
        begin.zip(end).map(|(begin, end)| end - begin)
    };
    Ok(Heard {
        end: match exit {
            Some(exit) => end(exit),
            None if state.bytes.len() > FLOOD => End::Flood,
            None if state.closed.is_some() => End::Timeout(LINGER),
            None => End::Timeout(limit),
        },
        descendants: exit.map_or(0, descendants),
        left_after: since(state.closed, Some(over)),
        stopped_after: since(state.cancelled, state.terminal),
        stdout: state.bytes,
        stderr,
        late,
    })
}

/// Speaks, listens and waits, all at once: whichever side is slow, nobody blocks.
async fn whole(
    child: &mut Child,
    dialog: &Dialog,
    inbox: &Inbox,
    tail: &mut Vec<u8>,
) -> Result<Exit, TargetError> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let wait = async {
        let exit = child.wait().await;
        inbox.update(|state| state.exited = true);
        exit
    };
    let ((), (), (), exit) = tokio::join!(
        speak(dialog, stdin, inbox),
        listen(dialog.manner, stdout, inbox),
        keep_tail(stderr, tail),
        wait
    );
    Ok(exit?)
}

async fn speak(dialog: &Dialog, stdin: Option<ChildStdin>, inbox: &Inbox) {
    let Some(mut stdin) = stdin else { return };
    // A plugin that goes away early shows that by its end; there is nothing to say to it then.
    let _gone = tell(dialog, &mut stdin, inbox).await;
    if !matches!(dialog.manner, Manner::ClosedEarly | Manner::ReaderGone) {
        inbox
            .until(|state| state.terminal.is_some() || state.over())
            .await;
        inbox.update(|state| state.closed = Some(clock::instant()));
    }
    drop(stdin);
}

async fn tell(dialog: &Dialog, stdin: &mut ChildStdin, inbox: &Inbox) -> std::io::Result<()> {
    let Dialog {
        opening,
        execute,
        manner,
    } = dialog;
    match manner {
        Manner::OneWrite => {
            return stdin.write_all(&[&opening[..], execute].concat()).await;
        }
        Manner::ByteByByte => paced(stdin, opening).await?,
        _ => stdin.write_all(opening).await?,
    }
    inbox.until(|state| state.lines > 0 || state.over()).await;
    let cancels = inbox.selected("cancel");
    match manner {
        Manner::ByteByByte => paced(stdin, execute).await,
        Manner::CancelAtOnce if cancels => {
            let both = [&execute[..], &Frame::cancel().line()].concat();
            stdin.write_all(&both).await?;
            inbox.update(|state| state.cancelled = Some(clock::instant()));
            Ok(())
        }
        Manner::CancelUnderWay if cancels => {
            stdin.write_all(execute).await?;
            let shown = inbox.until(|state| state.lines > 1 || state.over());
            // The time is a bound on the wait; nothing depends on which of the two it was.
            let _either = tokio::time::timeout(UNDER_WAY, shown).await;
            if inbox.0.borrow().terminal.is_some() {
                return Ok(());
            }
            stdin.write_all(&Frame::cancel().line()).await?;
            inbox.update(|state| state.cancelled = Some(clock::instant()));
            Ok(())
        }
        Manner::ReaderGone => {
            inbox.update(|state| state.deaf = true);
            inbox.until(|state| state.ended || state.exited).await;
            stdin.write_all(execute).await
        }
        _ => stdin.write_all(execute).await,
    }
}

/// Writes one byte at a time, and leaves the plugin the time to see each of them alone.
async fn paced(stdin: &mut ChildStdin, bytes: &[u8]) -> std::io::Result<()> {
    for byte in bytes {
        stdin.write_all(std::slice::from_ref(byte)).await?;
        sleep(Duration::from_micros(500)).await;
    }
    Ok(())
}

async fn listen(manner: Manner, stdout: Option<ChildStdout>, inbox: &Inbox) {
    if let Some(mut stdout) = stdout {
        tokio::select! {
            () = take(manner, &mut stdout, inbox) => {}
            () = inbox.until(|state| state.deaf) => {}
        }
    }
    inbox.update(|state| state.ended = true);
}

async fn take(manner: Manner, stdout: &mut ChildStdout, inbox: &Inbox) {
    let mut buffer = vec![0; 65_536];
    let mut slow = false;
    loop {
        if manner == Manner::SlowReader && !slow && inbox.0.borrow().lines > 0 {
            sleep(SLOW_START).await;
            slow = true;
        }
        let end = if slow { SLOW_BYTES } else { buffer.len() };
        let Some(room) = buffer.get_mut(..end) else {
            return;
        };
        match stdout.read(room).await {
            Ok(0) | Err(_) => return,
            Ok(count) => {
                let bytes = room.get(..count).unwrap_or_default();
                inbox.update(|state| state.push(bytes));
            }
        }
        if slow {
            sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Measures by how much the tool itself came late, without an end.
async fn pulse(late: &mut Duration) -> Infallible {
    loop {
        let begin = clock::instant();
        sleep(TICK).await;
        *late = (*late).max(begin.elapsed().saturating_sub(TICK));
    }
}

fn end(exit: Exit) -> End {
    match (exit.leftovers, exit.status) {
        (Outlived::HeldOutput(_), _) => End::HeldOutput,
        (_, Status::Code(code)) => End::Code(code),
        (_, Status::Signal(signal)) => End::Signal(signal),
        (_, Status::Lost) => End::Lost,
    }
}

const fn descendants(exit: Exit) -> u32 {
    match exit.leftovers {
        Outlived::None => 0,
        Outlived::Killed(count) | Outlived::HeldOutput(count) | Outlived::Survived(count) => count,
    }
}

/// What has come so far, shared by those who speak, listen and wait.
#[derive(Default)]
struct Inbox(RefCell<State>, Notify);

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    /// Where the line that is not complete yet begins.
    line: usize,
    lines: usize,
    /// When the terminal frame, or a line that is none of the protocol's, was complete.
    terminal: Option<Instant>,
    cancelled: Option<Instant>,
    /// When the input was closed after the terminal frame.
    closed: Option<Instant>,
    /// The reader is to go away.
    deaf: bool,
    ended: bool,
    exited: bool,
}

impl State {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        while let Some(rest) = self.bytes.get(self.line..)
            && let Some(length) = rest.iter().position(|byte| *byte == b'\n')
        {
            let ends = heard::ends_session(rest.get(..length).unwrap_or_default());
            self.line += length + 1;
            self.lines += 1;
            if ends {
                self.terminal.get_or_insert_with(clock::instant);
            }
        }
    }

    const fn over(&self) -> bool {
        self.ended || self.exited
    }
}

impl Inbox {
    fn update(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.borrow_mut());
        self.1.notify_waiters();
    }

    async fn until(&self, holds: impl Fn(&State) -> bool) {
        loop {
            // Made before the look, so that no change falls between the two.
            let changed = self.1.notified();
            if holds(&self.0.borrow()) {
                return;
            }
            changed.await;
        }
    }

    fn selected(&self, capability: &str) -> bool {
        heard::selection(&self.0.borrow().bytes)
            .is_some_and(|all| all.iter().any(|one| one == capability))
    }

    /// Waits until nothing more is to be waited for.
    async fn overdue(&self, limit: Duration) {
        let closed = self.until(|state| state.closed.is_some() || state.bytes.len() > FLOOD);
        if tokio::time::timeout(limit, closed).await.is_ok() && self.0.borrow().bytes.len() <= FLOOD
        {
            let flood = self.until(|state| state.bytes.len() > FLOOD);
            // Either way it is over: the time is up, or far too much has come.
            let _either = tokio::time::timeout(LINGER, flood).await;
        }
    }
}
