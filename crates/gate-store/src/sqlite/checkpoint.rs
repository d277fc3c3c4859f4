//! Keeping the write-ahead log short.
//!
//! A thread copies the log into the file while the writer goes on. The log starts again from its
//! beginning only when all of it is copied and nobody writes; under constant load that moment does
//! not come by itself, so above a size the writer makes it, between two commits.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use crate::StoreError;

/// Operations after which the log is copied at once. What is copied reaches the disk in one burst
/// that commits have to wait behind: a small one is a short wait.
const OPERATIONS: usize = 512;
/// Time between two copies, so that a high load does not turn into copies alone.
const PAUSE: Duration = Duration::from_millis(100);
/// Time after which it is copied if anything was written.
const INTERVAL: Duration = Duration::from_secs(1);
/// Frames (4 KiB each) above which the writer starts the log anew: 16 MiB. Writing over what the file
/// has already is cheaper to make durable than making the file longer.
const FRAMES: i64 = 4096;
/// How long the writer waits for readers when it starts the log anew.
const PATIENCE: Duration = Duration::from_millis(50);
/// How long it waits for anybody else.
pub(super) const BUSY: Duration = Duration::from_secs(5);

/// What writer and checkpointer tell each other.
#[derive(Debug)]
pub(super) struct Pressure {
    waiting: AtomicUsize,
    /// A copy has just been made: nobody need wake the thread.
    resting: AtomicBool,
    restart: AtomicBool,
    wake: Mutex<Option<SyncSender<()>>>,
}

impl Pressure {
    /// The writer has committed.
    pub(super) fn committed(&self, connection: &Connection, operations: usize) {
        let before = self.waiting.fetch_add(operations, Ordering::Relaxed);
        if before.saturating_add(operations) >= OPERATIONS && !self.resting.load(Ordering::Relaxed)
        {
            self.wake();
        }
        if self.restart.swap(false, Ordering::Relaxed)
            && let Err(error) = start_anew(connection)
        {
            tracing::warn!(%error, "the write-ahead log could not be started anew");
        }
    }

    fn wake(&self) {
        if let Ok(wake) = self.wake.lock()
            && let Some(wake) = wake.as_ref()
        {
            // A full channel means that the thread is awake already.
            let _awake_or_gone = wake.try_send(());
        }
    }
}

/// The handle of the thread.
#[derive(Debug)]
pub(super) struct Checkpointer {
    pressure: Arc<Pressure>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    pub(super) fn start(connection: Connection) -> Result<Self, StoreError> {
        let (wake, woken) = sync_channel(1);
        let pressure = Arc::new(Pressure {
            waiting: AtomicUsize::new(0),
            resting: AtomicBool::new(false),
            restart: AtomicBool::new(false),
            wake: Mutex::new(Some(wake)),
        });
        let shared = Arc::clone(&pressure);
        let thread = std::thread::Builder::new()
            .name("store-checkpoint".to_owned())
            .spawn(move || serve(&connection, &shared, &woken))
            .map_err(|error| StoreError::NotCommitted {
                reason: error.to_string(),
            })?;
        Ok(Self {
            pressure,
            thread: Some(thread),
        })
    }

    pub(super) fn pressure(&self) -> Arc<Pressure> {
        Arc::clone(&self.pressure)
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        if let Ok(mut wake) = self.pressure.wake.lock() {
            *wake = None;
        }
        if let Some(thread) = self.thread.take() {
            // A panic has been reported by the thread itself.
            drop(thread.join());
        }
    }
}

fn serve(connection: &Connection, pressure: &Pressure, woken: &Receiver<()>) {
    let stops = |wait| woken.recv_timeout(wait) == Err(RecvTimeoutError::Disconnected);
    let mut stopping = false;
    while !stopping {
        stopping = stops(INTERVAL);
        copy_what_waits(connection, pressure);
        if !stopping {
            pressure.resting.store(true, Ordering::Relaxed);
            stopping = stops(PAUSE);
            pressure.resting.store(false, Ordering::Relaxed);
        }
    }
    copy_what_waits(connection, pressure);
}

fn copy_what_waits(connection: &Connection, pressure: &Pressure) {
    if pressure.waiting.swap(0, Ordering::Relaxed) == 0 {
        return;
    }
    match copy(connection) {
        Ok(frames) if frames > FRAMES => pressure.restart.store(true, Ordering::Relaxed),
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "the write-ahead log could not be copied"),
    }
}

/// Copies what can be copied, and returns how many frames the log holds.
fn copy(connection: &Connection) -> Result<i64, rusqlite::Error> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(1))
}

fn start_anew(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.busy_timeout(PATIENCE)?;
    let outcome = connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(()));
    connection.busy_timeout(BUSY)?;
    outcome
}
