//! A program in a process group of its own, without a wrapper.
//!
//! Ends the group, not what left it. The group is signalled only while its leader is not
//! reaped, so its number cannot belong to anybody else.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::Command;
use tokio::time::timeout;

use crate::child::Pipes;
use crate::error::{StartError, WaitError};
use crate::own;
use crate::program;
use crate::spec::{self, Exit, Ladder, Outlived, Spec, Status, Stdin};

/// How long a killed leader may take until it is reaped.
const REAP: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct Group {
    leader: tokio::process::Child,
    _own: own::Own,
    ended: Ended,
    pid: Pid,
    exit: Option<Exit>,
}

/// Starts the program as leader of a new process group.
pub(crate) fn start(spec: &Spec) -> Result<(Group, Pipes), StartError> {
    let file = program::find(spec)?;
    let ended = Ended::before_start().map_err(StartError::Pipes)?;
    #[expect(
        clippy::disallowed_methods,
        reason = "this crate is where processes start"
    )]
    let mut command = Command::new(&file);
    command
        .args(spec.argv.iter().skip(1))
        .env_clear()
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .stdin(match spec.stdin {
            Stdin::Null => Stdio::null(),
            Stdin::Pipe => Stdio::piped(),
            Stdin::Inherit => Stdio::inherit(),
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    if let Some(name) = spec.argv.first() {
        command.arg0(name);
    }
    if let Some(directory) = &spec.cwd {
        command.current_dir(directory);
    }
    let (mut leader, own) = own::started(|| command.spawn())
        .map_err(|source| program::explain(&file, spec.cwd.as_deref(), source))?;
    let pid = leader
        .id()
        .and_then(|id| i32::try_from(id).ok())
        .map(Pid::from_raw)
        .ok_or_else(|| StartError::Pipes(io::Error::from(nix::errno::Errno::ESRCH)))?;
    let pipes = Pipes {
        stdin: leader.stdin.take().map(Into::into),
        stdout: leader.stdout.take(),
        stderr: leader.stderr.take(),
    };
    let ended = ended.after_start(pid);
    let mut group = Group {
        leader,
        _own: own,
        ended: Ended::placeholder(),
        pid,
        exit: None,
    };
    // The group exists before the watch is in place, so that a failure here still kills it.
    group.ended = ended.map_err(StartError::Pipes)?;
    Ok((group, pipes))
}

impl Group {
    pub(crate) fn pid(&self) -> i32 {
        self.pid.as_raw()
    }

    pub(crate) async fn wait(&mut self) -> Result<Exit, WaitError> {
        if let Some(exit) = self.exit {
            return Ok(exit);
        }
        self.ended.wait(self.pid).await.map_err(WaitError::Wait)?;
        self.kill();
        let status = self.leader.wait().await.map_err(WaitError::Wait)?;
        let exit = Exit {
            status: plain(status),
            leftovers: Outlived::None,
        };
        self.exit = Some(exit);
        Ok(exit)
    }

    pub(crate) fn ask(&self, signal: spec::Signal) {
        // The leader's number is its own until it is reaped.
        if self.exit.is_none() && self.leader.id().is_some() {
            let _gone = killpg(self.pid, signal.to_nix());
        }
    }

    pub(crate) async fn cancel(&mut self, ladder: Ladder) -> Exit {
        if self.exit.is_none() {
            if let Some(signal) = ladder.ask {
                // ESRCH only: the group is ours.
                let _gone = killpg(self.pid, signal.to_nix());
                if let Ok(Ok(exit)) = timeout(ladder.bounded_grace(), self.wait()).await {
                    return exit;
                }
            }
            self.kill();
        }
        match timeout(REAP, self.wait()).await {
            Ok(Ok(exit)) => exit,
            Ok(Err(_)) | Err(_) => Exit {
                status: Status::Lost,
                leftovers: Outlived::Survived(1),
            },
        }
    }

    fn kill(&self) {
        // ESRCH only: the group is ours.
        let _gone = killpg(self.pid, Signal::SIGKILL);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.exit.is_none() && self.leader.id().is_some() {
            self.kill();
        }
    }
}

fn plain(status: ExitStatus) -> Status {
    match (status.code(), status.signal()) {
        (Some(code), _) => Status::Code(code),
        (None, Some(signal)) => Status::Signal(signal),
        (None, None) => Status::Lost,
    }
}

#[cfg(all(target_os = "linux", not(portable_process)))]
use pidfd::Ended;
#[cfg(not(all(target_os = "linux", not(portable_process))))]
use sigchld::Ended;

/// Waits for the end of the leader without reaping it, by its pidfd.
#[cfg(all(target_os = "linux", not(portable_process)))]
mod pidfd {
    use std::io;
    use std::os::fd::OwnedFd;

    use nix::unistd::Pid;
    use rustix::process::{PidfdFlags, pidfd_open};
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    #[derive(Debug)]
    pub(super) struct Ended(Option<AsyncFd<OwnedFd>>);

    impl Ended {
        pub(super) fn placeholder() -> Self {
            Self(None)
        }

        pub(super) fn before_start() -> io::Result<Self> {
            Ok(Self(None))
        }

        pub(super) fn after_start(self, pid: Pid) -> io::Result<Self> {
            let pid = rustix::process::Pid::from_raw(pid.as_raw())
                .ok_or_else(|| io::Error::from(rustix::io::Errno::SRCH))?;
            let pidfd = pidfd_open(pid, PidfdFlags::NONBLOCK)?;
            #[expect(unsafe_code, reason = "the safe constructors are deprecated")]
            // SAFETY: the `AsyncFd` owns the `OwnedFd`, which hands out the same open
            // descriptor until it is dropped with it.
            let watched = unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) }?;
            Ok(Self(Some(watched)))
        }

        pub(super) async fn wait(&mut self, _pid: Pid) -> io::Result<()> {
            match &self.0 {
                Some(pidfd) => pidfd.readable().await.map(|mut ready| ready.retain_ready()),
                None => Ok(()),
            }
        }
    }
}

/// Waits for the end of the leader without reaping it, woken by SIGCHLD.
#[cfg(not(all(target_os = "linux", not(portable_process))))]
mod sigchld {
    use std::io;

    use nix::unistd::Pid;
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    use tokio::signal::unix::{Signal, SignalKind, signal};

    #[derive(Debug)]
    pub(super) struct Ended(Option<Signal>);

    impl Ended {
        pub(super) fn placeholder() -> Self {
            Self(None)
        }

        /// Subscribes before the start, so that no end goes unseen.
        pub(super) fn before_start() -> io::Result<Self> {
            Ok(Self(Some(signal(SignalKind::child())?)))
        }

        #[expect(clippy::unnecessary_wraps, reason = "the same shape as by pidfd")]
        pub(super) fn after_start(self, _pid: Pid) -> io::Result<Self> {
            Ok(self)
        }

        pub(super) async fn wait(&mut self, pid: Pid) -> io::Result<()> {
            let pid = rustix::process::Pid::from_raw(pid.as_raw())
                .ok_or_else(|| io::Error::from(rustix::io::Errno::SRCH))?;
            let Some(signals) = &mut self.0 else {
                return Ok(());
            };
            let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            loop {
                match waitid(WaitId::Pid(pid), look) {
                    Ok(Some(_)) => return Ok(()),
                    Ok(None) => {}
                    Err(rustix::io::Errno::INTR) => continue,
                    Err(error) => return Err(error.into()),
                }
                if signals.recv().await.is_none() {
                    return Ok(());
                }
            }
        }
    }
}
