//! Accepts connections, at most so many at once, and serves HTTP/1.1 on each
//! until it ends or the server stops. Beyond the cap the next one waits, the others
//! in the kernel's queue, and the oldest that are served are asked to end: at
//! once where nothing is under way, after the current request otherwise.

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
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::ServiceExt as _;

use crate::crowd::{Crowd, Member};
use crate::deadlines::{Deadlines, Progress, TimedStream};
use crate::lifetime::Lifetime;
use crate::socket;

/// Connections that are served at once. A slot counts only until it is a WebSocket.
pub const MAX_CONNECTIONS: usize = 1024;
/// Header fields of a request.
const MAX_HEADERS: usize = 64;
/// Bytes of a request head.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// How often one more connection is asked to end while others wait.
const CROWDED_PAUSE: Duration = Duration::from_millis(20);
/// Pause after a failed accept, so that a lack of descriptors does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What serving a connection needs.
#[derive(Debug, Clone)]
pub struct Serving {
    /// Whose log lines these are.
    pub component: &'static str,
    /// What answers.
    pub router: Router,
    /// The certificate, where TLS is spoken.
    pub tls: Option<Arc<ServerTls>>,
    /// How long a peer may take.
    pub deadlines: Deadlines,
    /// How many connections are served at once, if there are twice as many descriptors.
    pub connections: usize,
    /// How many are open.
    pub open: Gauge,
    /// The tasks of the connections, and their end.
    pub lifetime: Lifetime,
}

/// Accepts until the server stops.
pub async fn accept(listener: TcpListener, serving: Serving) {
    let room = Room {
        permits: Arc::new(Semaphore::new(
            serving.connections.min(socket::affordable()),
        )),
        crowd: Crowd::default(),
    };
    loop {
        let next = async {
            match listener.accept().await {
                Ok((stream, _peer)) => Ok((stream, room.made().await)),
                Err(error) => Err(error),
            }
        };
        let accepted = tokio::select! {
            () = serving.lifetime.stopping.cancelled() => return,
            next = next => next,
        };
        match accepted {
            Ok((stream, permit)) => {
                let member = room.crowd.join();
                let counted = Counted::one(&serving.open);
                let serving = serving.clone();
                serving.lifetime.tasks.clone().spawn(async move {
                    connection(stream, serving, &member).await;
                    drop((permit, counted));
                });
            }
            Err(error) => {
                tracing::warn!(component = serving.component, %error, "cannot accept a connection");
                // Most likely there are no descriptors left; these hold some.
                room.crowd.ask_the_oldest();
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Who may be served, and who is.
struct Room {
    permits: Arc<Semaphore>,
    crowd: Crowd,
}

impl Room {
    /// Waits for a place; as long as there is none, one after the other is asked to leave.
    async fn made(&self) -> Option<OwnedSemaphorePermit> {
        let mut permit = std::pin::pin!(Arc::clone(&self.permits).acquire_owned());
        loop {
            tokio::select! {
                biased;
                permit = permit.as_mut() => return permit.ok(),
                () = tokio::time::sleep(CROWDED_PAUSE) => self.crowd.ask_the_oldest(),
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

async fn connection(stream: TcpStream, serving: Serving, member: &Member) {
    if let Err(error) = socket::prepare(&stream) {
        tracing::debug!(component = serving.component, %error, "cannot prepare a socket");
        return;
    }
    let killed = serving.lifetime.killed.clone();
    let serve = async {
        match &serving.tls {
            None => http(stream, &serving, member).await,
            Some(tls) => {
                let handshake = tls.acceptor().accept(stream);
                match tokio::time::timeout(serving.deadlines.head, handshake).await {
                    Ok(Ok(stream)) => http(stream, &serving, member).await,
                    Ok(Err(error)) => {
                        tracing::debug!(component = serving.component, %error, "TLS handshake failed")
                    }
                    Err(_) => tracing::debug!(
                        component = serving.component,
                        "TLS handshake took too long"
                    ),
                }
            }
        }
    };
    tokio::select! {
        () = serve => {}
        () = killed.cancelled() => {}
    }
}

async fn http<S>(stream: S, serving: &Serving, member: &Member)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
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
    let asked_to_end = async {
        tokio::select! {
            () = serving.lifetime.stopping.cancelled() => {}
            () = member.asked() => {}
        }
    };
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = asked_to_end => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(component = serving.component, %error, "connection ended early");
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";

    /// A server for two connections at once, and what ends it.
    async fn for_two(router: Router) -> (std::net::SocketAddr, Serving) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = Serving {
            component: "test",
            router,
            tls: None,
            deadlines: Deadlines::default(),
            connections: 2,
            open: Gauge::default(),
            lifetime: Lifetime::default(),
        };
        serving
            .lifetime
            .tasks
            .spawn(accept(listener, serving.clone()));
        (address, serving)
    }

    async fn open(address: std::net::SocketAddr, request: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request).await.unwrap();
        stream
    }

    async fn first_byte(stream: &mut TcpStream) -> u8 {
        stream.read_u8().await.unwrap()
    }

    async fn all_end(serving: Serving) {
        serving.lifetime.stopping.cancel();
        serving.lifetime.tasks.close();
        serving.lifetime.tasks.wait().await;
    }

    #[tokio::test]
    async fn r60_beyond_the_cap_the_oldest_idle_connection_makes_room() {
        let (address, serving) = for_two(Router::new()).await;
        // One that has had its answer, and one that has never asked.
        let mut first = open(address, REQUEST).await;
        assert_eq!(first_byte(&mut first).await, b'H');
        let mut second = open(address, b"").await;
        let mut later = Vec::new();
        for _ in 0..4 {
            let mut next = open(address, REQUEST).await;
            assert_eq!(first_byte(&mut next).await, b'H');
            later.push(next);
        }
        for idle in [&mut first, &mut second] {
            let mut rest = Vec::new();
            idle.read_to_end(&mut rest).await.unwrap();
        }
        all_end(serving).await;
    }

    #[tokio::test]
    async fn r60_beyond_the_cap_what_is_under_way_is_finished() {
        let go = Arc::new(tokio::sync::Notify::new());
        let wait = Arc::clone(&go);
        let slow = axum::routing::get(move || async move { wait.notified().await });
        let (address, serving) = for_two(Router::new().route("/", slow)).await;
        let mut first = open(address, REQUEST).await;
        let mut second = open(address, REQUEST).await;
        let mut third = open(address, REQUEST).await;
        let early = tokio::time::timeout(CROWDED_PAUSE * 10, first.read_u8());
        assert!(early.await.is_err(), "nothing is cut");
        for stream in [&mut first, &mut second, &mut third] {
            go.notify_one();
            let mut answer = [0; 12];
            stream.read_exact(&mut answer).await.unwrap();
            assert_eq!(&answer, b"HTTP/1.1 200");
        }
        drop((first, second, third));
        all_end(serving).await;
    }
}
