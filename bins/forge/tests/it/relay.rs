//! Stands between Workers and their Gate: counts who comes when, and can fall silent as a network
//! does that drops every packet.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

/// A listener that passes on what it gets.
pub(crate) struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    gate: SocketAddr,
    ends: AtomicBool,
    pairs: Mutex<Vec<Pair>>,
    accepted: Mutex<Vec<Instant>>,
}

/// One connection from a Worker, and the one to the Gate.
struct Pair {
    streams: [TcpStream; 2],
    silent: Arc<AtomicBool>,
}

impl Relay {
    /// A relay in front of the Gate at this address.
    pub(crate) fn to(gate: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            gate: gate.parse().unwrap(),
            ends: AtomicBool::new(false),
            pairs: Mutex::default(),
            accepted: Mutex::default(),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accepting.accept(&listener));
        Self { address, shared }
    }

    /// Where Workers find it.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// When the connections came that found a Gate, since the last time that this was asked.
    pub(crate) fn accepted(&self) -> Vec<Instant> {
        std::mem::take(&mut *self.shared.accepted.lock().unwrap())
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.shared.accepted.lock().unwrap().len()
    }

    /// From here on nothing of the connections that are open reaches the other side, and neither
    /// side hears of it. New ones are passed on.
    pub(crate) fn silence(&self) {
        for pair in &*self.shared.pairs.lock().unwrap() {
            pair.silent.store(true, Ordering::SeqCst);
        }
    }

    /// How many of the connections that fell silent each side has given up: the Workers', and the
    /// Gate's.
    pub(crate) fn given_up(&self) -> (usize, usize) {
        let pairs = self.shared.pairs.lock().unwrap();
        let silent = pairs
            .iter()
            .filter(|pair| pair.silent.load(Ordering::SeqCst));
        silent.fold((0, 0), |(workers, gates), pair| {
            let [worker, gate] = &pair.streams;
            (
                workers + usize::from(has_ended(worker)),
                gates + usize::from(has_ended(gate)),
            )
        })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::SeqCst);
        for pair in &*self.shared.pairs.lock().unwrap() {
            for stream in &pair.streams {
                drop(stream.shutdown(Shutdown::Both));
            }
        }
        // Wakes the thread that accepts.
        drop(TcpStream::connect(self.address));
    }
}

impl Shared {
    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for worker in listener.incoming() {
            let at = Instant::now();
            if self.ends.load(Ordering::SeqCst) {
                return;
            }
            let Ok(worker) = worker else {
                continue;
            };
            let Ok(gate) = TcpStream::connect(self.gate) else {
                continue; // as if nobody listened
            };
            self.accepted.lock().unwrap().push(at);
            let silent = Arc::new(AtomicBool::new(false));
            let copy = |stream: &TcpStream| stream.try_clone().unwrap();
            pass(copy(&worker), copy(&gate), Arc::clone(&silent));
            pass(copy(&gate), copy(&worker), Arc::clone(&silent));
            let streams = [worker, gate];
            self.pairs.lock().unwrap().push(Pair { streams, silent });
        }
    }
}

/// Passes bytes on until one side ends. Once silent, it takes them in and says nothing of an end.
fn pass(mut from: TcpStream, mut to: TcpStream, silent: Arc<AtomicBool>) {
    let work = move || {
        let mut buffer = [0; 4096];
        loop {
            let count = from.read(&mut buffer).unwrap_or(0);
            let muted = silent.load(Ordering::SeqCst);
            if count == 0 || (!muted && to.write_all(&buffer[..count]).is_err()) {
                if !muted {
                    drop(to.shutdown(Shutdown::Both));
                    drop(from.shutdown(Shutdown::Both));
                }
                return;
            }
        }
    };
    thread::Builder::new()
        .stack_size(128 * 1024)
        .spawn(work)
        .unwrap();
}

/// Whether the peer has closed; everything else was read by the thread that passes it on.
fn has_ended(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let ended = matches!(stream.peek(&mut [0]), Ok(0))
        || matches!(stream.peek(&mut [0]), Err(error) if error.kind() != std::io::ErrorKind::WouldBlock);
    stream.set_nonblocking(false).unwrap();
    ended
}
