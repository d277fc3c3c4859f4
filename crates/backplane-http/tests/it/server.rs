//! A server that does what a script says, one step a request, over TCP or TLS.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsAcceptor;

/// What happens to one request.
pub(crate) enum Step {
    /// Sends these bytes and closes.
    Send(Vec<u8>),
    /// Sends these bytes and then nothing, until the other side goes.
    Hold(Vec<u8>),
    /// Sends the first bytes and then the others again and again, until the other side goes.
    Endless(Vec<u8>, Vec<u8>),
    /// Reads nothing of the request, until the other side goes.
    Deaf,
}

/// A request as it came.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    pub(crate) fn line(&self) -> &str {
        self.head.lines().next().unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let pairs = self.head.lines().skip(1);
        let mut found = pairs.filter_map(|line| line.split_once(": "));
        found
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }
}

#[derive(Default)]
struct State {
    steps: Mutex<VecDeque<Step>>,
    seen: Mutex<Vec<Seen>>,
    connections: AtomicUsize,
    gone: AtomicUsize,
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    scheme: &'static str,
    state: Arc<State>,
    runtime: Option<Runtime>,
}

impl Server {
    pub(crate) fn plain(steps: Vec<Step>) -> Self {
        Self::start(steps, None)
    }

    pub(crate) fn tls(steps: Vec<Step>, acceptor: TlsAcceptor) -> Self {
        Self::start(steps, Some(acceptor))
    }

    fn start(steps: Vec<Step>, acceptor: Option<TlsAcceptor>) -> Self {
        let runtime = runtime();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let state = Arc::new(State {
            steps: Mutex::new(steps.into()),
            ..State::default()
        });
        let scheme = if acceptor.is_some() { "https" } else { "http" };
        let address = listener.local_addr().unwrap();
        let shared = Arc::clone(&state);
        let handle = runtime.handle().clone();
        runtime.spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                shared.connections.fetch_add(1, Ordering::SeqCst);
                let (state, acceptor) = (Arc::clone(&shared), acceptor.clone());
                handle.spawn(async move {
                    match acceptor {
                        None => serve(tcp, &state).await,
                        Some(acceptor) => {
                            if let Ok(tls) = acceptor.accept(tcp).await {
                                serve(tls, &state).await;
                            }
                        }
                    }
                });
            }
        });
        Self {
            address,
            scheme,
            state,
            runtime: Some(runtime),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// Waits until so many requests have come; the test's own time limit is the only one.
    pub(crate) fn wait_for_requests(&self, count: usize) {
        until(|| self.state.seen.lock().unwrap().len() >= count);
    }

    pub(crate) fn wait_for_connections(&self, count: usize) {
        until(|| self.connections() >= count);
    }

    /// Waits until the other side has left so many connections that the script kept open.
    pub(crate) fn wait_for_leaving(&self, count: usize) {
        until(|| self.state.gone.load(Ordering::SeqCst) >= count);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }
}

pub(crate) fn runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().unwrap()
}

/// Waits for what must come.
pub(crate) fn until(done: impl Fn() -> bool) {
    while !done() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, state: &State) {
    let deaf = matches!(state.steps.lock().unwrap().front(), Some(Step::Deaf));
    let request = match deaf {
        true => Some(Seen::default()),
        false => read_request(&mut stream).await,
    };
    let Some(seen) = request else {
        return;
    };
    // Who waits for the request may end it at once; the next one must find the next step.
    let step = state.steps.lock().unwrap().pop_front();
    state.seen.lock().unwrap().push(seen);
    match step {
        None => {}
        Some(Step::Send(bytes)) => {
            let sent = stream.write_all(&bytes).await;
            let closed = stream.shutdown().await;
            drop((sent, closed));
            leave(&mut stream).await;
        }
        Some(Step::Hold(bytes)) => {
            drop(stream.write_all(&bytes).await);
            drop(stream.flush().await);
            leave(&mut stream).await;
            state.gone.fetch_add(1, Ordering::SeqCst);
        }
        Some(Step::Endless(head, piece)) => {
            let mut sent = stream.write_all(&head).await;
            while sent.is_ok() {
                sent = stream.write_all(&piece).await;
            }
            state.gone.fetch_add(1, Ordering::SeqCst);
        }
        Some(Step::Deaf) => std::future::pending().await,
    }
}

/// Reads until the other side closes.
async fn leave<S: AsyncRead + Unpin>(stream: &mut S) {
    let mut scrap = vec![0; 4096];
    while stream.read(&mut scrap).await.is_ok_and(|read| read > 0) {}
}

pub(crate) async fn read_request<S: AsyncRead + Unpin>(stream: &mut S) -> Option<Seen> {
    let mut bytes = Vec::new();
    let end = loop {
        let mut more = [0; 4096];
        let read = stream.read(&mut more).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&more[..read]);
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut seen = Seen {
        head,
        body: bytes[end..].to_vec(),
    };
    let length: usize = seen
        .header("content-length")
        .map_or(0, |text| text.parse().unwrap());
    while seen.body.len() < length {
        let mut more = vec![0; 64 * 1024];
        let read = stream.read(&mut more).await.ok().filter(|read| *read > 0)?;
        seen.body.extend_from_slice(&more[..read]);
    }
    Some(seen)
}

/// A proxy: tunnels to one address wherever it is asked to, or answers what is not a tunnel.
pub(crate) struct ProxyServer {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    tunnelled: Arc<Mutex<Vec<u8>>>,
    runtime: Option<Runtime>,
}

impl ProxyServer {
    pub(crate) fn start(target: SocketAddr, answer: Vec<u8>) -> Self {
        let runtime = runtime();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let tunnelled = Arc::new(Mutex::new(Vec::new()));
        let (heads, bytes) = (Arc::clone(&seen), Arc::clone(&tunnelled));
        runtime.spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let Some(request) = read_request(&mut near).await else {
                    continue;
                };
                let tunnel = request.head.starts_with("CONNECT ") && answer.is_empty();
                heads.lock().unwrap().push(request);
                if !tunnel {
                    drop(near.write_all(&answer).await);
                    drop(near.shutdown().await);
                    leave(&mut near).await;
                    continue;
                }
                near.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                let far = TcpStream::connect(target).await.unwrap();
                join(near, far, &bytes).await;
            }
        });
        Self {
            address,
            seen,
            tunnelled,
            runtime: Some(runtime),
        }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Everything that clients sent through tunnels.
    pub(crate) fn tunnelled(&self) -> Vec<u8> {
        self.tunnelled.lock().unwrap().clone()
    }
}

impl Drop for ProxyServer {
    fn drop(&mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }
}

async fn join(near: TcpStream, far: TcpStream, bytes: &Mutex<Vec<u8>>) {
    let (mut from_near, mut to_near) = near.into_split();
    let (mut from_far, mut to_far) = far.into_split();
    let out = async {
        let mut piece = vec![0; 4096];
        while let Ok(read @ 1..) = from_near.read(&mut piece).await {
            bytes.lock().unwrap().extend_from_slice(&piece[..read]);
            if to_far.write_all(&piece[..read]).await.is_err() {
                break;
            }
        }
        drop(to_far.shutdown().await);
    };
    let back = async {
        drop(tokio::io::copy(&mut from_far, &mut to_near).await);
        drop(to_near.shutdown().await);
    };
    tokio::join!(out, back);
}
