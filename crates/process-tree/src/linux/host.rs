//! The host's side of a wrapped program.
//!
//! Kills by itself only when the wrapper cannot any more.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::Command;
use tokio::time::timeout;

use super::control::{self, Cancel, FRAME, Order, Report, STDIN};
use super::{descendants, wrapper};
use crate::child::Pipes;
use crate::error::{Rest, StartError, WaitError};
use crate::own;
use crate::program;
use crate::spec::{self, Exit, Ladder, Leftovers, Outlived, Spec, Status, Stdin};
use crate::wrapper::{ASKED, Wrapper};

/// How long the wrapper may take to say whether the program runs.
const START: Duration = Duration::from_secs(10);
/// How long the wrapper may take to end after its last word.
const LAST: Duration = Duration::from_millis(500);
/// How long the wrapper may take to end everything, after the grace of the ladder.
const KILL: Duration = Duration::from_millis(500);
/// How long the host's own killing may take after that.
const FORCE: Duration = Duration::from_millis(150);

/// A wrapped program.
#[derive(Debug)]
pub(crate) struct Tree {
    link: UnixStream,
    inbox: Vec<u8>,
    wrapper: tokio::process::Child,
    _own: own::Own,
    target: Option<(i32, OwnedFd)>,
    ended: Option<Exit>,
    exit: Option<Exit>,
}

/// Starts the program under the wrapper and waits until it runs.
pub(crate) async fn start(wrapper: &Wrapper, spec: &Spec) -> Result<(Tree, Pipes), StartError> {
    let file = program::find(spec)?;
    let (link, theirs) = StdUnixStream::pair().map_err(StartError::Pipes)?;
    let stdin = send_stdin(&link, spec.stdin).map_err(StartError::Pipes)?;
    link.set_nonblocking(true).map_err(StartError::Pipes)?;
    let link = UnixStream::from_std(link).map_err(StartError::Pipes)?;
    let policy = match spec.leftovers {
        Leftovers::Fail => wrapper::FAIL,
        Leftovers::KillAndWarn => wrapper::KILL_AND_WARN,
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "this crate is where processes start"
    )]
    let mut command = Command::new(wrapper.program());
    // The wrapper's own environment is the program's, so none of the host's can leak.
    command
        .arg0(wrapper.shown_as())
        .arg(ASKED)
        .args(wrapper::arguments(policy, file.clone(), &spec.argv))
        .env_clear()
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    if let Some(directory) = &spec.cwd {
        command.current_dir(directory);
    }
    let (mut child, own) = own::started(|| command.spawn()).map_err(|source| {
        let program = wrapper.program().to_path_buf();
        StartError::Wrapper { program, source }
    })?;
    // The command holds the wrapper's end of the link: as long as it lives here, the
    // wrapper's death would go unseen.
    drop(command);
    let pipes = Pipes {
        stdin,
        stdout: child.stdout.take(),
        stderr: child.stderr.take(),
    };
    let mut tree = Tree {
        link,
        inbox: Vec::new(),
        wrapper: child,
        _own: own,
        target: None,
        ended: None,
        exit: None,
    };
    let mut starting = false;
    let first = async {
        loop {
            match tree.report().await {
                Some((Report::Starting, _)) => starting = true,
                other => return other,
            }
        }
    };
    match timeout(START, first).await {
        Ok(Some((Report::Started { pid }, Some(pidfd)))) => {
            tree.target = Some((pid, pidfd));
            Ok((tree, pipes))
        }
        Ok(Some((Report::Refused { errno }, _))) => {
            tree.reap_wrapper().await;
            let source = io::Error::from_raw_os_error(errno);
            Err(program::explain(&file, spec.cwd.as_deref(), source))
        }
        // It ran, or was about to: that nobody knows its end is for `wait` to say.
        Ok(None) if starting => Ok((tree, pipes)),
        Ok(_) => {
            tree.reap_wrapper().await;
            Err(StartError::WrapperLost {
                program: wrapper.program().to_path_buf(),
            })
        }
        Err(_) => {
            tree.force().await;
            Err(StartError::WrapperSilent {
                program: wrapper.program().to_path_buf(),
                after: START,
            })
        }
    }
}

impl Tree {
    pub(crate) fn pid(&self) -> i32 {
        self.target.as_ref().map_or(0, |(pid, _)| *pid)
    }

    pub(crate) async fn wait(&mut self) -> Result<Exit, WaitError> {
        if let Some(exit) = self.exit {
            return Ok(exit);
        }
        while self.ended.is_none() {
            match self.report().await {
                Some((Report::Ended(exit), _)) => self.ended = Some(exit),
                Some(_) => {}
                None => return Err(self.lost().await),
            }
        }
        self.reap_wrapper().await;
        self.exit = self.ended;
        self.exit.ok_or_else(|| WaitError::WrapperLost {
            wrapper: "silent".to_owned(),
            rest: Rest::MayRun,
        })
    }

    pub(crate) fn ask(&self, signal: spec::Signal) {
        let signal = signal.to_nix() as i32;
        // A send that fails shows as the wrapper's end in the next wait.
        let _lost = control::send(&self.link, &Order::Ask { signal }.encode(), None);
    }

    pub(crate) async fn cancel(&mut self, ladder: Ladder) -> Exit {
        if let Some(exit) = self.exit {
            return exit;
        }
        let grace = ladder.bounded_grace();
        let order = Order::Cancel(Cancel {
            ask: ladder.ask.map(|signal| signal.to_nix() as i32),
            grace,
        });
        // Past tokio, which may not have noticed yet that the link can be written to. A send that
        // fails shows as the wrapper's end in the wait that follows.
        let _lost = control::send(&self.link, &order.encode(), None);
        match timeout(grace + KILL, self.wait()).await {
            Ok(Ok(exit)) => exit,
            Ok(Err(_)) => Exit {
                status: Status::Lost,
                leftovers: Outlived::None,
            },
            Err(_) => self.force().await,
        }
    }

    /// The wrapper's next word; none when it is gone.
    async fn report(&mut self) -> Option<(Report, Option<OwnedFd>)> {
        let mut carried = None;
        loop {
            if let Some(frame) = control::take_frame(&mut self.inbox) {
                return Report::decode(&frame).map(|report| (report, carried));
            }
            self.link.readable().await.ok()?;
            let mut bytes = [0; FRAME];
            let received = self.link.try_io(Interest::READABLE, || {
                control::receive(&self.link, &mut bytes)
            });
            match received {
                Ok((0, _)) => return None,
                Ok((count, descriptor)) => {
                    carried = descriptor.or(carried);
                    self.inbox
                        .extend_from_slice(bytes.get(..count).unwrap_or_default());
                }
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                    ) => {}
                Err(_) => return None,
            }
        }
    }

    /// Waits for the wrapper process itself, which has nothing left to do.
    async fn reap_wrapper(&mut self) {
        if timeout(LAST, self.wrapper.wait()).await.is_err() {
            self.force().await;
        }
    }

    /// The wrapper died by another's hand: kills what can still be found.
    async fn lost(&mut self) -> WaitError {
        // Its link closes a moment before it is gone. A group that is stopped in between would be
        // hung up on and continued by the system, as one that has just lost its parent.
        let wrapper = match timeout(LAST, self.wrapper.kill()).await {
            Ok(Ok(())) => match self.wrapper.try_wait() {
                Ok(Some(status)) => status.to_string(),
                Ok(None) | Err(_) => "no status".to_owned(),
            },
            Ok(Err(_)) | Err(_) => "no status".to_owned(),
        };
        self.kill_target();
        let rest = own::end_the_adopted().await;
        tracing::warn!(
            program.pid = self.pid(),
            wrapper,
            rest = %rest,
            "a process wrapper was killed"
        );
        WaitError::WrapperLost { wrapper, rest }
    }

    /// The wrapper does not do its work in time: does it from here.
    async fn force(&mut self) -> Exit {
        let killed = match self.wrapper.id().and_then(|id| i32::try_from(id).ok()) {
            Some(wrapper) => {
                let mut killed = BTreeSet::new();
                for _ in 0..3 {
                    descendants::kill_pass(wrapper, &mut killed);
                }
                killed.len()
            }
            None => 0,
        };
        self.kill_target();
        let _reaped = timeout(FORCE, self.wrapper.kill()).await;
        let _gone = timeout(FORCE, own::end_the_adopted()).await;
        tracing::warn!(
            program.pid = self.pid(),
            killed,
            "a process wrapper did not end in time and was killed"
        );
        let exit = Exit {
            status: Status::Lost,
            leftovers: match u32::try_from(killed) {
                Ok(0) => Outlived::None,
                Ok(n) => Outlived::Killed(n),
                Err(_) => Outlived::Killed(u32::MAX),
            },
        };
        self.exit = Some(exit);
        exit
    }

    /// Kills the program, its group and its descendants, as long as its number is its own.
    fn kill_target(&self) {
        let Some((pid, pidfd)) = &self.target else {
            return;
        };
        if ended(pidfd) {
            return;
        }
        // Stopped before anything dies: a shell whose command was killed would run the next one.
        let group = nix::unistd::Pid::from_raw(*pid);
        let _gone = killpg(group, Signal::SIGSTOP);
        let _gone = rustix::process::pidfd_send_signal(pidfd, rustix::process::Signal::STOP);
        // Descendants first: they are found through the program only while it lives.
        descendants::end_below(*pid);
        if ended(pidfd) {
            // The number may be a stranger's by now, whom this does no harm. What was stopped with
            // the group must not stay so.
            let _gone = killpg(group, Signal::SIGCONT);
        } else {
            let _gone = killpg(group, Signal::SIGKILL);
            let _gone = rustix::process::pidfd_send_signal(pidfd, rustix::process::Signal::KILL);
        }
    }
}

/// Tells whether the process behind a pidfd has ended.
fn ended(pidfd: &OwnedFd) -> bool {
    let mut ready = [PollFd::new(pidfd, PollFlags::IN)];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    !matches!(poll(&mut ready, Some(&at_once)), Ok(0))
}

/// Puts the program's stdin on its way to the wrapper; returns the host's end of it.
fn send_stdin(link: &StdUnixStream, stdin: Stdin) -> io::Result<Option<crate::child::ChildStdin>> {
    match stdin {
        Stdin::Null => {
            let null =
                rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
            control::send(link, &[STDIN], Some(null.as_fd()))?;
            Ok(None)
        }
        Stdin::Pipe => {
            let (theirs, ours) = io::pipe()?;
            control::send(link, &[STDIN], Some(theirs.as_fd()))?;
            let ours = pipe::Sender::from_owned_fd(OwnedFd::from(ours))?;
            Ok(Some(ours.into()))
        }
        Stdin::Inherit => {
            control::send(link, &[STDIN], Some(io::stdin().as_fd()))?;
            Ok(None)
        }
    }
}
