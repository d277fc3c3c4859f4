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

/// Operations after which the log is copied at once.
const OPERATIONS: usize = 4096;
/// Time after which it is copied if anything was written.
const INTERVAL: Duration = Duration::from_secs(1);
/// Frames (4 KiB each) above which the writer starts the log anew: 64 MiB.
const FRAMES: i64 = 16_384;
/// How long the writer waits for readers when it starts the log anew.
const PATIENCE: Duration = Duration::from_millis(50);
/// How long it waits for anybody else.
pub(super) const BUSY: Duration = Duration::from_secs(5);

/// What writer and checkpointer tell each other.
#[derive(Debug)]
pub(super) struct Pressure {
    waiting: AtomicUsize,
    restart: AtomicBool,
    wake: Mutex<Option<SyncSender<()>>>,
}

impl Pressure {
    /// The writer has committed.
    pub(super) fn committed(&self, connection: &Connection, operations: usize) {
        let before = self.waiting.fetch_add(operations, Ordering::Relaxed);
        if before.saturating_add(operations) >= OPERATIONS {
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
    loop {
        let stopping = woken.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Disconnected);
        if pressure.waiting.swap(0, Ordering::Relaxed) > 0 {
            match copy(connection) {
                Ok(frames) if frames > FRAMES => pressure.restart.store(true, Ordering::Relaxed),
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "the write-ahead log could not be copied"),
            }
        }
        if stopping {
            return;
        }
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
