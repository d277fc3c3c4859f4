//! A started program: its pipes, its end, and the ways to end it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;
use tokio::net::unix::pipe;
use tokio::process::{ChildStderr, ChildStdout};

use crate::error::{StartError, WaitError};
use crate::group::{self, Group};
use crate::spec::{Exit, Ladder, Signal, Spec};
use crate::wrapper::Wrapper;

/// Starts a program under the wrapper, and returns once it runs.
///
/// Where there is no wrapper (other systems than Linux) this is [`spawn_direct`].
///
/// # Errors
/// Nothing of the program is running when this fails; the variants say why.
pub async fn spawn(wrapper: &Wrapper, spec: Spec) -> Result<Child, StartError> {
    #[cfg(all(target_os = "linux", not(portable_process)))]
    {
        let (tree, pipes) = crate::linux::host::start(wrapper, &spec).await?;
        Ok(Child::new(Backend::Tree(tree), pipes))
    }
    #[cfg(not(all(target_os = "linux", not(portable_process))))]
    {
        let _unused = wrapper;
        spawn_direct(spec).await
    }
}

/// Starts a program in a process group of its own, without the wrapper: for short calls of
/// trusted programs that start nothing in the background.
///
/// # Errors
/// Nothing of the program is running when this fails; the variants say why.
pub async fn spawn_direct(spec: Spec) -> Result<Child, StartError> {
    let (group, pipes) = group::start(&spec)?;
    Ok(Child::new(Backend::Group(group), pipes))
}

/// A started program. Dropping it kills the program and all its descendants.
#[derive(Debug)]
pub struct Child {
    /// The writing end of the program's stdin, with [`Stdin::Pipe`](crate::Stdin::Pipe).
    pub stdin: Option<ChildStdin>,
    /// The reading end of the program's stdout.
    pub stdout: Option<ChildStdout>,
    /// The reading end of the program's stderr.
    pub stderr: Option<ChildStderr>,
    backend: Backend,
}

impl Child {
    /// The process id of the program itself, for messages; signals go through this type only.
    pub fn pid(&self) -> i32 {
        match &self.backend {
            #[cfg(all(target_os = "linux", not(portable_process)))]
            Backend::Tree(tree) => tree.pid(),
            Backend::Group(group) => group.pid(),
        }
    }

    /// Waits until the program ended and everything it left behind is gone.
    ///
    /// May be dropped and called again; the answer stays the same.
    ///
    /// # Errors
    /// The wrapper was killed, or the system refused to wait.
    pub async fn wait(&mut self) -> Result<Exit, WaitError> {
        match &mut self.backend {
            #[cfg(all(target_os = "linux", not(portable_process)))]
            Backend::Tree(tree) => tree.wait().await,
            Backend::Group(group) => group.wait().await,
        }
    }

    /// Sends a signal to the program's process group, once, and waits for nothing: for protocols
    /// that give a program more time after it than a [`Ladder`] does.
    ///
    /// On a program that has already ended this does nothing.
    pub fn ask(&mut self, signal: Signal) {
        match &mut self.backend {
            #[cfg(all(target_os = "linux", not(portable_process)))]
            Backend::Tree(tree) => tree.ask(signal),
            Backend::Group(group) => group.ask(signal),
        }
    }

    /// Ends the program and all its descendants, within a second whatever they do.
    ///
    /// On a program that has already ended this only tells how.
    pub async fn cancel(&mut self, ladder: Ladder) -> Exit {
        match &mut self.backend {
            #[cfg(all(target_os = "linux", not(portable_process)))]
            Backend::Tree(tree) => tree.cancel(ladder).await,
            Backend::Group(group) => group.cancel(ladder).await,
        }
    }

    fn new(backend: Backend, pipes: Pipes) -> Self {
        Self {
            stdin: pipes.stdin,
            stdout: pipes.stdout,
            stderr: pipes.stderr,
            backend,
        }
    }
}

/// The writing end of a program's stdin; dropping it is the program's end of file.
#[derive(Debug)]
pub struct ChildStdin(Writer);

impl From<pipe::Sender> for ChildStdin {
    fn from(sender: pipe::Sender) -> Self {
        Self(Writer::Pipe(sender))
    }
}

impl From<tokio::process::ChildStdin> for ChildStdin {
    fn from(stdin: tokio::process::ChildStdin) -> Self {
        Self(Writer::Std(stdin))
    }
}

impl AsyncWrite for ChildStdin {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            Writer::Pipe(pipe) => Pin::new(pipe).poll_write(cx, bytes),
            Writer::Std(stdin) => Pin::new(stdin).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Writer::Pipe(pipe) => Pin::new(pipe).poll_flush(cx),
            Writer::Std(stdin) => Pin::new(stdin).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Writer::Pipe(pipe) => Pin::new(pipe).poll_shutdown(cx),
            Writer::Std(stdin) => Pin::new(stdin).poll_shutdown(cx),
        }
    }
}

#[derive(Debug)]
enum Writer {
    Pipe(pipe::Sender),
    Std(tokio::process::ChildStdin),
}

#[derive(Debug)]
enum Backend {
    #[cfg(all(target_os = "linux", not(portable_process)))]
    Tree(crate::linux::host::Tree),
    Group(Group),
}

/// The host's ends of a program's pipes.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: Option<ChildStdout>,
    pub(crate) stderr: Option<ChildStderr>,
}
