//! A connection that cannot be held open by doing nothing: a request head must
//! arrive in time, an idle connection is closed, and a peer that does not read
//! its answer is dropped. Request bodies have their own limit where they are
//! read.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// How long a peer may take.
#[derive(Debug, Clone, Copy)]
pub struct Deadlines {
    /// From the first byte of a request head to its last.
    pub head: Duration,
    /// For the whole body of a request.
    pub body: Duration,
    /// Between two requests, and before the first.
    pub idle: Duration,
    /// For a write to make any progress.
    pub write: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(5),
            body: Duration::from_secs(30),
            idle: Duration::from_secs(60),
            write: Duration::from_secs(30),
        }
    }
}

const IDLE: u8 = 0;
const HEAD: u8 = 1;
const REQUEST: u8 = 2;

/// Where a connection stands. The service tells, the stream acts on it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress(Arc<AtomicU8>);

impl Progress {
    /// A request head is complete; from here the handler watches the time.
    pub(crate) fn request_begins(&self) {
        self.0.store(REQUEST, Ordering::Relaxed);
    }

    /// The answer is on its way.
    pub(crate) fn request_ends(&self) {
        self.0.store(IDLE, Ordering::Relaxed);
    }
}

/// A stream with [`Deadlines`].
#[derive(Debug)]
pub(crate) struct TimedStream<S> {
    inner: S,
    deadlines: Deadlines,
    progress: Progress,
    timer: Pin<Box<Sleep>>,
    /// The state that `timer` runs for, if it runs for reading.
    armed: Option<u8>,
    writing: Option<Pin<Box<Sleep>>>,
}

impl<S> TimedStream<S> {
    pub(crate) fn new(inner: S, deadlines: Deadlines, progress: Progress) -> Self {
        Self {
            inner,
            deadlines,
            progress,
            timer: Box::pin(sleep_until(Instant::now())),
            armed: None,
            writing: None,
        }
    }

    fn poll_read_deadline(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let state = self.progress.0.load(Ordering::Relaxed);
        let limit = match state {
            IDLE => self.deadlines.idle,
            HEAD => self.deadlines.head,
            _ => {
                self.armed = None;
                return Poll::Pending;
            }
        };
        if self.armed != Some(state) {
            self.armed = Some(state);
            self.timer.as_mut().reset(Instant::now() + limit);
        }
        ready!(self.timer.as_mut().poll(cx));
        Poll::Ready(io::Error::new(
            io::ErrorKind::TimedOut,
            "no complete request head in time",
        ))
    }

    fn poll_write_deadline(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let limit = self.deadlines.write;
        let timer = self
            .writing
            .get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + limit)));
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(io::Error::new(
            io::ErrorKind::TimedOut,
            "the peer does not read",
        ))
    }
}

use std::future::Future as _;

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        if let Poll::Ready(result) = Pin::new(&mut this.inner).poll_read(cx, buffer) {
            if buffer.filled().len() > before {
                // Only the first bytes after an answer start a new request head.
                let _ = this.progress.0.compare_exchange(
                    IDLE,
                    HEAD,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
            }
            return Poll::Ready(result);
        }
        this.poll_read_deadline(cx).map(Err)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if let Poll::Ready(result) = Pin::new(&mut this.inner).poll_write(cx, bytes) {
            this.writing = None;
            return Poll::Ready(result);
        }
        this.poll_write_deadline(cx).map(Err)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Poll::Ready(result) = Pin::new(&mut this.inner).poll_flush(cx) {
            return Poll::Ready(result);
        }
        this.poll_write_deadline(cx).map(Err)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Poll::Ready(result) = Pin::new(&mut this.inner).poll_shutdown(cx) {
            return Poll::Ready(result);
        }
        this.poll_write_deadline(cx).map(Err)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if let Poll::Ready(result) = Pin::new(&mut this.inner).poll_write_vectored(cx, buffers) {
            this.writing = None;
            return Poll::Ready(result);
        }
        this.poll_write_deadline(cx).map(Err)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    fn timed<S>(inner: S) -> (TimedStream<S>, Progress) {
        let progress = Progress::default();
        (
            TimedStream::new(inner, Deadlines::default(), progress.clone()),
            progress,
        )
    }

    #[tokio::test(start_paused = true)]
    async fn r60_a_dripping_head_is_cut_after_five_seconds() {
        let (near, mut far) = duplex(64);
        let (mut stream, _) = timed(near);
        let start = Instant::now();
        let drip = async {
            while far.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let read = async {
            let mut byte = [0; 1];
            loop {
                if let Err(error) = stream.read_exact(&mut byte).await {
                    return error;
                }
            }
        };
        let error = tokio::select! { error = read => error, () = drip => panic!("cut from the wrong side") };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(
            start.elapsed() <= Duration::from_secs(6),
            "{:?}",
            start.elapsed()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_is_closed_after_a_minute() {
        let (near, _far) = duplex(64);
        let (mut stream, _) = timed(near);
        let start = Instant::now();
        let error = stream.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed().as_secs(), 60);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_under_way_has_no_read_deadline_here() {
        let (near, mut far) = duplex(64);
        let (mut stream, progress) = timed(near);
        far.write_all(b"x").await.unwrap();
        stream.read_u8().await.unwrap();
        progress.request_begins();
        let waited = tokio::time::timeout(Duration::from_secs(3600), stream.read_u8()).await;
        assert!(waited.is_err(), "nothing but the caller ends the wait");
    }

    #[tokio::test(start_paused = true)]
    async fn r20_a_peer_that_does_not_read_is_dropped() {
        let (near, _far) = duplex(4);
        let (mut stream, _) = timed(near);
        let start = Instant::now();
        let error = stream.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed().as_secs(), 30);
    }
}
