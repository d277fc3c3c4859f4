//! Threads that read, each with a connection of its own that cannot write.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::StoreError;

/// Most queries that wait; more are refused.
const WAITING: usize = 1024;

type Query = Box<dyn FnOnce(&Connection) + Send>;

/// The handle of the threads.
#[derive(Debug)]
pub(super) struct Readers {
    queue: Option<SyncSender<Query>>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    pub(super) fn start(connections: Vec<Connection>) -> Result<Self, StoreError> {
        let (queue, queries) = sync_channel(WAITING);
        let queries = Arc::new(Mutex::new(queries));
        let mut readers = Self {
            queue: Some(queue),
            threads: Vec::new(),
        };
        for connection in connections {
            let queries = Arc::clone(&queries);
            let thread = std::thread::Builder::new()
                .name("registry-reader".to_owned())
                .spawn(move || serve(&connection, &queries))
                .map_err(|error| StoreError::NotCommitted {
                    reason: error.to_string(),
                })?;
            readers.threads.push(thread);
        }
        Ok(readers)
    }

    /// Queues a query, which sees one moment of the database.
    pub(super) fn read<T: Send + 'static>(
        &self,
        doing: &'static str,
        query: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<oneshot::Receiver<Result<T, StoreError>>, StoreError> {
        let (sender, receiver) = oneshot::channel();
        let queued: Query = Box::new(move |connection| {
            // Nobody waits any more: a client that went away costs nothing.
            if !sender.is_closed() {
                let answer = snapshot(connection, query).map_err(|error| error.while_doing(doing));
                drop(sender.send(answer));
            }
        });
        let queue = self.queue.as_ref().ok_or(StoreError::Closed)?;
        queue.try_send(queued).map_err(|error| match error {
            TrySendError::Full(_) => StoreError::Busy,
            TrySendError::Disconnected(_) => StoreError::Closed,
        })?;
        Ok(receiver)
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.queue = None;
        for thread in self.threads.drain(..) {
            // A panic has been reported by the thread itself.
            drop(thread.join());
        }
    }
}

fn serve(connection: &Connection, queries: &Mutex<Receiver<Query>>) {
    loop {
        // One thread waits while the others work; a poisoned lock means that another has panicked.
        let next = queries.lock().map(|queries| queries.recv());
        match next {
            Ok(Ok(query)) => query(connection),
            Ok(Err(_)) | Err(_) => return,
        }
    }
}

fn snapshot<T>(
    connection: &Connection,
    query: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let transaction = connection.unchecked_transaction()?;
    let answer = query(&transaction);
    transaction.finish()?;
    answer
}
