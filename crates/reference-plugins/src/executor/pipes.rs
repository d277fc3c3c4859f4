//! The three pipes of a program, served while something else decides when it ends.

use std::time::Duration;

use process_tree::{Child, ChildStdin};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdout};

/// How long the pipes are still read once the program and all it started are gone.
const LAST_WORDS: Duration = Duration::from_millis(50);

/// The three pipes of a program.
pub(super) struct Pipes {
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
}

impl Pipes {
    pub(super) fn of(child: &mut Child) -> Self {
        Self {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
        }
    }

    /// Writes the input and reads both outputs to their ends, all at once. Of standard error the
    /// end is left in `tail`: at least `keep` bytes and at most twice as many and a read.
    pub(super) async fn serve(self, input: &[u8], keep: usize, tail: &mut Vec<u8>) {
        let write = async {
            if let Some(mut stdin) = self.stdin {
                // A program need not read its input to the end.
                drop(stdin.write_all(input).await);
            }
        };
        let mut unwanted = Vec::new();
        tokio::join!(
            write,
            keep_tail(self.stdout, 0, &mut unwanted),
            keep_tail(self.stderr, keep, tail)
        );
    }
}

/// Serves the pipes while something else decides, and for a moment after that.
pub(super) async fn with_pipes<T>(
    end: impl Future<Output = T>,
    pipes: impl Future<Output = ()>,
) -> T {
    tokio::pin!(end, pipes);
    let mut open = true;
    loop {
        tokio::select! {
            biased;
            end = &mut end => {
                // A process that nobody could kill may hold them for ever.
                if open {
                    drop(tokio::time::timeout(LAST_WORDS, pipes).await);
                }
                return end;
            }
            () = &mut pipes, if open => open = false,
        }
    }
}

/// Reads to the end and keeps at least the last `keep` bytes.
async fn keep_tail(from: Option<impl AsyncRead + Unpin>, keep: usize, into: &mut Vec<u8>) {
    let Some(mut from) = from else { return };
    while from.read_buf(into).await.is_ok_and(|count| count > 0) {
        if into.len() > 2 * keep {
            into.drain(..into.len() - keep);
        }
    }
}
