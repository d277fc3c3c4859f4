//! What a command reads on its standard input.

use std::convert::Infallible;
use std::io::{self, Read};

use nix::sys::signal::{SigSet, Signal};
use process_tree::{ChildStdin, Stdin};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;

/// What a command reads on its standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Input {
    /// Nothing
    #[default]
    Nothing,
    /// This process's own standard input, which is no terminal
    Inherit,
    /// What is typed into this process's terminal. The command runs in a process group of its own
    /// and could not read the terminal itself, so it gets a pipe.
    Terminal,
}

impl Input {
    pub(super) const fn stdin(self) -> Stdin {
        match self {
            Self::Nothing => Stdin::Null,
            Self::Inherit => Stdin::Inherit,
            Self::Terminal => Stdin::Pipe,
        }
    }

    /// Hands over what is typed as long as it is polled.
    pub(super) async fn feed(self, pipe: Option<ChildStdin>) -> Infallible {
        if let (Self::Terminal, Some(mut pipe)) = (self, pipe) {
            let mut typed = read_aside(io::stdin());
            while let Some(bytes) = typed.recv().await {
                // A command that reads no more is no error.
                if pipe.write_all(&bytes).await.is_err() {
                    break;
                }
            }
        }
        std::future::pending().await
    }
}

/// Reads on a thread of its own, which nobody waits for: it may stay in its last read until the
/// process ends.
fn read_aside(mut from: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        // In the background of its terminal a read would stop the whole process, even for a
        // command that reads nothing; with the signal blocked it is an error, and thus the end.
        let mut stopping = SigSet::empty();
        stopping.add(Signal::SIGTTIN);
        if stopping.thread_block().is_err() {
            return;
        }
        let mut piece = [0; 8192];
        loop {
            match from.read(&mut piece) {
                Ok(count) if count > 0 => {
                    let bytes = piece.get(..count).unwrap_or_default().to_vec();
                    if sender.blocking_send(bytes).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => return,
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_read_comes_in_order_and_ends() {
        let text: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
        let mut typed = read_aside(io::Cursor::new(text.clone()));
        let mut got = Vec::new();
        while let Some(bytes) = typed.recv().await {
            got.extend(bytes);
        }
        assert_eq!(got, text);
    }
}
