//! The wrapper process: one thread, started by the host, adopting whatever the program leaves.
//!
//! It starts the program, reaps every child, obeys the host's orders, and kills everything
//! when the host is gone. It writes nothing to stdout or stderr: those are the program's.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigHandler, SigSet, Signal, killpg};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, WaitOptions, WaitStatus, pidfd_open, wait};

use super::control::{self, Cancel, FRAME, Order, Report, STDIN};
use super::descendants;
use crate::spec::{Exit, Outlived, Status};

/// How long processes that hold the output may take to end by themselves.
const HOLDERS_GRACE: Duration = Duration::from_millis(100);
/// How long killing and reaping may take.
const KILL_BOUND: Duration = Duration::from_millis(400);
/// The pause between two looks at the descendants, cut short by the end of any child.
const PASS: Duration = Duration::from_millis(5);
/// `__WALL`: also children that were made without an end signal.
const ALL_KINDS: u32 = 0x4000_0000;

/// The policy's name in the wrapper's arguments.
pub(super) const FAIL: &str = "fail";
/// The policy's name in the wrapper's arguments.
pub(super) const KILL_AND_WARN: &str = "kill-and-warn";

/// Acts as wrapper: arguments are the policy, the program's file and its argument vector.
pub(crate) fn run(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(policy), Some(file), Some(name)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return ExitCode::from(2);
    };
    let mut command = command(file);
    command.arg0(name).args(arguments);
    let ask_who_holds = policy != KILL_AND_WARN;
    match start(&mut command, ask_who_holds) {
        Ok(mut watch) => {
            let exit = watch.watch();
            report(Report::Ended(exit))
        }
        Err(error) => {
            let errno = error
                .raw_os_error()
                .unwrap_or(rustix::io::Errno::IO.raw_os_error());
            report(Report::Refused { errno })
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this crate is where processes start"
)]
fn command(file: OsString) -> Command {
    Command::new(file)
}

fn report(report: Report) -> ExitCode {
    match control::send(io::stdin(), &report.encode(), None) {
        Ok(()) => ExitCode::SUCCESS,
        // The host is gone, and so is the program: nobody is left to tell.
        Err(_) => ExitCode::FAILURE,
    }
}

fn start(command: &mut Command, ask_who_holds: bool) -> io::Result<Watch> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let mut first = [0];
    let stdin = match control::receive(io::stdin(), &mut first)? {
        (1, Some(stdin)) if first == [STDIN] => stdin,
        _ => return Err(io::Error::from(rustix::io::Errno::PROTO)),
    };
    close_on_exec()?;
    default_signals()?;
    let null = rustix::fs::open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    // Said before it is so: the program may kill this process as its first act.
    control::send(io::stdin(), &Report::Starting.encode(), None)?;
    let target = command
        .stdin(Stdio::from(stdin))
        .process_group(0)
        .spawn()?
        .id();
    let target = i32::try_from(target)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or(rustix::io::Errno::SRCH)?;
    // Our copies of the program's descriptors would hide from the host that it closed them.
    command.stdin(Stdio::null());
    let outputs = if ask_who_holds {
        descendants::own_outputs()
    } else {
        Vec::new()
    };
    nix::unistd::dup2_stdout(&null)?;
    nix::unistd::dup2_stderr(&null)?;
    let signals = signals()?;
    let watch = Watch {
        target,
        status: None,
        signals,
        outputs,
        inbox: Vec::new(),
        host_gone: false,
    };
    let started = Report::Started {
        pid: target.as_raw_nonzero().get(),
    };
    let pidfd = pidfd_open(target, PidfdFlags::empty())?;
    // A send that fails shows as the end of file at once, and that kills.
    let _host_gone = control::send(io::stdin(), &started.encode(), Some(pidfd.as_fd()));
    Ok(watch)
}

/// Blocks what would end this process before its children, and makes the end of any child
/// readable. After the program's start, so that the program does not inherit it.
fn signals() -> io::Result<SignalFd> {
    let mut mask = SigSet::empty();
    for signal in [
        Signal::SIGCHLD,
        Signal::SIGHUP,
        Signal::SIGINT,
        Signal::SIGQUIT,
        Signal::SIGTERM,
    ] {
        mask.add(signal);
    }
    mask.thread_block()?;
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    Ok(SignalFd::with_flags(&mask, flags)?)
}

/// Undoes what the host ignores or blocks, which an exec would hand down: the program would be
/// deaf to what asks it to end, and without SIGCHLD nobody could be reaped.
fn default_signals() -> io::Result<()> {
    // A broken pipe must not end this process; for the program std restores it.
    let fixed = [Signal::SIGKILL, Signal::SIGSTOP, Signal::SIGPIPE];
    for signal in Signal::iterator().filter(|signal| !fixed.contains(signal)) {
        #[expect(unsafe_code, reason = "no safe call sets what a signal does")]
        // SAFETY: the default action installs no handler, so no code runs in signal context,
        // and this process has one thread.
        unsafe { nix::sys::signal::signal(signal, SigHandler::SigDfl) }?;
    }
    Ok(SigSet::empty().thread_set_mask()?)
}

/// Marks every descriptor from 3 up, so that the program starts with 0, 1 and 2 only.
fn close_on_exec() -> io::Result<()> {
    use nix::libc;
    let flags = libc::CLOSE_RANGE_CLOEXEC.cast_signed();
    #[expect(
        unsafe_code,
        reason = "no safe call marks descriptors that this process does not know of"
    )]
    // SAFETY: with CLOSE_RANGE_CLOEXEC the call closes nothing now and takes no pointer; it
    // only sets a flag on open descriptors, which no safe code can observe before an exec.
    let done = unsafe { libc::close_range(3, libc::c_uint::MAX, flags) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Children {
    None,
    Some,
}

/// The program and everything below this process.
struct Watch {
    target: Pid,
    status: Option<Status>,
    signals: SignalFd,
    /// The program's stdout and stderr, if it matters who holds them.
    outputs: Vec<PathBuf>,
    inbox: Vec<u8>,
    host_gone: bool,
}

impl Watch {
    fn watch(&mut self) -> Exit {
        let leftovers = loop {
            let children = self.reap();
            if self.status.is_some() {
                break match children {
                    Children::None => Outlived::None,
                    Children::Some => self.settle(),
                };
            }
            if children == Children::None {
                // Somebody else reaped the program; waiting for its end would never end.
                break Outlived::None;
            }
            if self.host_gone {
                break self.kill_all();
            }
            match self.order() {
                Some(Order::Cancel(cancel)) => {
                    self.ask(cancel);
                    break self.kill_all();
                }
                Some(Order::Ask { signal }) => self.signal(signal),
                None => self.sleep(None),
            }
        };
        Exit {
            status: self.status.unwrap_or(Status::Lost),
            leftovers,
        }
    }

    /// Asks the program to end and waits for it, but not for what it leaves behind.
    fn ask(&mut self, cancel: Cancel) {
        let Some(signal) = cancel.ask else {
            return;
        };
        self.signal(signal);
        let deadline = now() + cancel.grace;
        while self.status.is_none() && !self.host_gone && now() < deadline {
            self.sleep(Some(deadline));
            self.reap();
        }
    }

    /// Sends a signal to the program's group; only while the program is not reaped, so that its
    /// number and its group's are its own.
    fn signal(&self, signal: i32) {
        if let Ok(signal) = Signal::try_from(signal)
            && self.status.is_none()
        {
            let group = nix::unistd::Pid::from_raw(self.target.as_raw_nonzero().get());
            let _gone = killpg(group, signal);
        }
    }

    /// The program ended by itself and left children.
    fn settle(&mut self) -> Outlived {
        let outputs = std::mem::take(&mut self.outputs);
        let own = own_pid();
        let held = || {
            !outputs.is_empty()
                && descendants::below(own)
                    .into_iter()
                    .any(|process| descendants::holds(process, &outputs))
        };
        let mut is_held = held();
        if is_held {
            // A helper at the end of a pipe may be about to end: give it a moment.
            let deadline = now() + HOLDERS_GRACE;
            while !self.host_gone && !self.cancelled() && now() < deadline {
                self.sleep(Some(deadline));
                if self.reap() == Children::None {
                    return Outlived::None;
                }
            }
            is_held = held();
        }
        match self.kill_all() {
            Outlived::None | Outlived::Killed(0) if is_held => Outlived::HeldOutput(1),
            Outlived::Killed(n) if is_held => Outlived::HeldOutput(n),
            other => other,
        }
    }

    /// Kills and reaps everything below this process, as often as new ones appear.
    fn kill_all(&mut self) -> Outlived {
        let own = own_pid();
        let mut killed = BTreeSet::new();
        let deadline = now() + KILL_BOUND;
        while self.reap() == Children::Some {
            if now() >= deadline {
                let left = descendants::below(own).len();
                return Outlived::Survived(u32::try_from(left).unwrap_or(u32::MAX));
            }
            if self.status.is_none() {
                // Without /proc the program at least goes with its own group.
                let group = nix::unistd::Pid::from_raw(self.target.as_raw_nonzero().get());
                let _gone = killpg(group, Signal::SIGKILL);
            }
            descendants::kill_pass(own, &mut killed);
            self.sleep(Some((now() + PASS).min(deadline)));
        }
        let target = self.target.as_raw_nonzero().get();
        match killed.iter().filter(|(pid, _)| *pid != target).count() {
            0 => Outlived::None,
            n => Outlived::Killed(u32::try_from(n).unwrap_or(u32::MAX)),
        }
    }

    /// Reaps all children that have ended.
    fn reap(&mut self) -> Children {
        let options = WaitOptions::NOHANG | WaitOptions::from_bits_retain(ALL_KINDS);
        loop {
            match wait(options) {
                Ok(Some((pid, status))) => {
                    if pid == self.target
                        && let Some(status) = plain(status)
                    {
                        self.status = Some(status);
                    }
                }
                Ok(None) => return Children::Some,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return Children::None,
            }
        }
    }

    /// Sleeps until a child ends, the host says something, or the deadline.
    fn sleep(&mut self, deadline: Option<Instant>) {
        let stdin = io::stdin();
        let mut ready = [
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN),
        ];
        // A host that is gone stays readable for ever.
        let watched = if self.host_gone { 1 } else { 2 };
        let watched = ready.get_mut(..watched).unwrap_or_default();
        let timeout = deadline.map(|deadline| {
            // At least a millisecond, so that rounding never spins.
            let left = deadline.saturating_duration_since(now());
            let left = left.max(Duration::from_millis(1));
            Timespec::try_from(left).unwrap_or(Timespec {
                tv_sec: 1,
                tv_nsec: 0,
            })
        });
        // EINTR is a wake-up like any other.
        let _woken = poll(watched, timeout.as_ref());
        let host = ready
            .get(1)
            .is_some_and(|host| !self.host_gone && !host.revents().is_empty());
        while let Ok(Some(_signal)) = self.signals.read_signal() {}
        if host {
            self.listen();
        }
    }

    fn listen(&mut self) {
        let mut bytes = [0; FRAME];
        match control::receive(io::stdin(), &mut bytes) {
            Ok((0, _)) => self.host_gone = true,
            Ok((count, _)) => self
                .inbox
                .extend_from_slice(bytes.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.host_gone = true,
        }
    }

    fn order(&mut self) -> Option<Order> {
        control::take_frame(&mut self.inbox).and_then(|frame| Order::decode(&frame))
    }

    /// Tells whether the host gave up on a program that has ended; it cannot be asked any more.
    fn cancelled(&mut self) -> bool {
        while let Some(order) = self.order() {
            if matches!(order, Order::Cancel(_)) {
                return true;
            }
        }
        false
    }
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

fn plain(status: WaitStatus) -> Option<Status> {
    if let Some(code) = status.exit_status() {
        Some(Status::Code(code))
    } else {
        status.terminating_signal().map(Status::Signal)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the wrapper is a process of its own; its bounds are real time"
)]
fn now() -> Instant {
    Instant::now()
}

/// What the program's file is called in the wrapper's own arguments.
pub(super) fn arguments(
    policy: &'static str,
    file: PathBuf,
    argv: &[OsString],
) -> impl Iterator<Item = OsString> {
    [OsString::from(policy), file.into_os_string()]
        .into_iter()
        .chain(argv.iter().cloned())
}
