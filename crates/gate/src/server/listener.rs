//! Accepts connections, at most so many at once, and serves HTTP/1.1 on each
//! until it ends or the Gate stops. Beyond the cap new connections wait in the
//! kernel's queue.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::metrics::gauge::Gauge;
use tls_files::ServerTls;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use super::deadlines::{Deadlines, Progress, TimedStream};
use super::socket;

/// Connections that are served at once. A slot counts only until it is a WebSocket.
pub(crate) const MAX_CONNECTIONS: usize = 1024;
/// Header fields of a request.
const MAX_HEADERS: usize = 64;
/// Bytes of a request head.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Pause after a failed accept, so that a lack of descriptors does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What serving a connection needs.
#[derive(Clone)]
pub(crate) struct Serving {
    pub(crate) router: Router,
    pub(crate) tls: Option<Arc<ServerTls>>,
    pub(crate) deadlines: Deadlines,
    pub(crate) connections: usize,
    /// How many are open.
    pub(crate) open: Gauge,
    /// Every connection's task.
    pub(crate) tasks: TaskTracker,
    /// Cancelled when no new request is to be taken.
    pub(crate) stopping: CancellationToken,
    /// Cancelled when what still runs is to be dropped.
    pub(crate) killed: CancellationToken,
}

/// Accepts until the Gate stops.
pub(crate) async fn accept(listener: TcpListener, serving: Serving) {
    let permits = Arc::new(Semaphore::new(serving.connections));
    loop {
        let next = async {
            let permit = Arc::clone(&permits).acquire_owned().await;
            (listener.accept().await, permit)
        };
        let (accepted, permit) = tokio::select! {
            () = serving.stopping.cancelled() => return,
            next = next => next,
        };
        match accepted {
            Ok((stream, _peer)) => {
                let connection = connection(stream, serving.clone());
                let counted = Counted::one(&serving.open);
                serving.tasks.spawn(async move {
                    connection.await;
                    drop((permit, counted));
                });
            }
            Err(error) => {
                tracing::warn!(component = "gate", %error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// A connection that is counted as long as it is open, however it ends.
struct Counted(Gauge);

impl Counted {
    fn one(open: &Gauge) -> Self {
        open.inc();
        Self(open.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

async fn connection(stream: TcpStream, serving: Serving) {
    if let Err(error) = socket::prepare(&stream) {
        tracing::debug!(component = "gate", %error, "cannot prepare a socket");
        return;
    }
    let killed = serving.killed.clone();
    let serve = async {
        match &serving.tls {
            None => http(stream, &serving).await,
            Some(tls) => {
                let handshake = tls.acceptor().accept(stream);
                match tokio::time::timeout(serving.deadlines.head, handshake).await {
                    Ok(Ok(stream)) => http(stream, &serving).await,
                    Ok(Err(error)) => {
                        tracing::debug!(component = "gate", %error, "TLS handshake failed")
                    }
                    Err(_) => tracing::debug!(component = "gate", "TLS handshake took too long"),
                }
            }
        }
    };
    tokio::select! {
        () = serve => {}
        () = killed.cancelled() => {}
    }
}

async fn http<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(stream: S, serving: &Serving) {
    let progress = Progress::default();
    let stream = TimedStream::new(stream, serving.deadlines, progress.clone());
    let router = serving.router.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        progress.request_begins();
        let progress = progress.clone();
        let answer = router.clone().oneshot(request.map(Body::new));
        async move {
            let answer = answer.await;
            // A connection that became a WebSocket is watched where it is driven.
            if !matches!(&answer, Ok(answer) if answer.status() == StatusCode::SWITCHING_PROTOCOLS)
            {
                progress.request_ends();
            }
            answer
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_headers(MAX_HEADERS)
        .max_header_size(MAX_HEAD_BYTES)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = serving.stopping.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(component = "gate", %error, "connection ended early");
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";

    #[tokio::test]
    async fn beyond_the_cap_connections_wait_and_are_not_lost() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = Serving {
            router: Router::new(),
            tls: None,
            deadlines: Deadlines::default(),
            connections: 2,
            open: Gauge::default(),
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
            killed: CancellationToken::new(),
        };
        let accepting = serving.tasks.spawn(accept(listener, serving.clone()));
        let open = || async {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(REQUEST).await.unwrap();
            stream
        };
        let mut first = open().await;
        let mut second = open().await;
        let mut third = open().await;
        let mut byte = [0];
        first.read_exact(&mut byte).await.unwrap();
        second.read_exact(&mut byte).await.unwrap();
        let early = tokio::time::timeout(Duration::from_millis(50), third.read_exact(&mut byte));
        assert!(early.await.is_err(), "the third one is served too early");
        drop(first);
        third.read_exact(&mut byte).await.unwrap();
        assert_eq!(&byte, b"H");
        serving.stopping.cancel();
        accepting.await.unwrap();
        serving.tasks.close();
        drop((second, third));
        serving.tasks.wait().await;
    }
}
