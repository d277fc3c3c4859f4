//! The one thread that writes: each operation under a savepoint, many in one commit.

use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use rusqlite::Connection;
use sqlite_batch::{Operation, savepoint, serve};
use tokio::sync::oneshot;

use crate::StoreError;

/// Most operations of one commit.
const BATCH: usize = 256;
/// Most operations that wait; more are refused.
const WAITING: usize = 1024;

/// The handle of the thread.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Option<SyncSender<Operation<Connection>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(connection: Connection) -> Result<Self, StoreError> {
        let (queue, operations) = sync_channel(WAITING);
        let thread = std::thread::Builder::new()
            .name("registry-writer".to_owned())
            .spawn(move || serve(&connection, &operations, BATCH))
            .map_err(|error| StoreError::NotCommitted {
                reason: error.to_string(),
            })?;
        Ok(Self {
            queue: Some(queue),
            thread: Some(thread),
        })
    }

    /// Queues an operation, which runs although nobody may wait for it any more; the answer comes
    /// after the commit.
    pub(super) fn write<T: Send + 'static>(
        &self,
        doing: &'static str,
        operation: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<oneshot::Receiver<Result<T, StoreError>>, StoreError> {
        let (sender, receiver) = oneshot::channel();
        let queued: Operation<Connection> = Box::new(move |connection| {
            let outcome = match connection {
                Some(connection) => savepoint(connection, || operation(connection)),
                None => Err(StoreError::Closed),
            };
            let outcome = outcome.map_err(|error| error.while_doing(doing));
            Box::new(move |failure| {
                let answer = match failure {
                    None => outcome,
                    Some(reason) => Err(StoreError::NotCommitted {
                        reason: reason.to_owned(),
                    }),
                };
                drop(sender.send(answer));
            })
        });
        let queue = self.queue.as_ref().ok_or(StoreError::Closed)?;
        queue.try_send(queued).map_err(|error| match error {
            TrySendError::Full(_) => StoreError::Busy,
            TrySendError::Disconnected(_) => StoreError::Closed,
        })?;
        Ok(receiver)
    }

    /// Tells whether there is a thread to write.
    pub(super) fn is_alive(&self) -> bool {
        let ended = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        !ended
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // A panic has been reported by the thread itself.
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counting() -> (tempfile::TempDir, std::path::PathBuf, Writer) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.db");
        let connection = Connection::open(&path).unwrap();
        connection
            .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x INTEGER UNIQUE)")
            .unwrap();
        (folder, path, Writer::start(connection).unwrap())
    }

    fn insert(connection: &Connection, x: i64) -> Result<(), StoreError> {
        connection.execute("INSERT INTO t (x) VALUES (?1)", [x])?;
        Ok(())
    }

    fn rows(path: &std::path::Path) -> Vec<i64> {
        let connection = Connection::open(path).unwrap();
        let mut statement = connection.prepare("SELECT x FROM t ORDER BY x").unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }

    #[tokio::test]
    async fn a_failed_operation_leaves_nothing_and_its_neighbours_stand() {
        let (_folder, path, writer) = counting();
        let first = writer.write("insert", |c| insert(c, 1)).unwrap();
        let half = writer.write("insert twice", |c| {
            insert(c, 2)?;
            insert(c, 1)
        });
        let last = writer.write("insert", |c| insert(c, 4)).unwrap();
        first.await.unwrap().unwrap();
        let error = half.unwrap().await.unwrap().unwrap_err();
        assert_eq!(error.to_string(), "failed to insert twice");
        last.await.unwrap().unwrap();
        assert_eq!(rows(&path), [1, 4]);
    }

    #[tokio::test]
    async fn nothing_is_answered_as_done_that_was_not_committed() {
        let (_folder, path, writer) = counting();
        // The operation tears the transaction down under itself, as a full disk does.
        let torn = writer.write("tear", |c| {
            insert(c, 1)?;
            c.execute_batch("ROLLBACK")?;
            Ok(())
        });
        let error = torn.unwrap().await.unwrap().unwrap_err();
        assert!(matches!(error, StoreError::NotCommitted { .. }), "{error}");
        writer
            .write("insert", |c| insert(c, 2))
            .unwrap()
            .await
            .unwrap()
            .unwrap();
        assert_eq!(rows(&path), [2]);
    }

    #[tokio::test]
    async fn more_than_may_wait_is_refused_and_what_was_taken_is_done() {
        let (_folder, path, writer) = counting();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let (started, running) = std::sync::mpsc::channel();
        drop(writer.write("wait", move |_| {
            started.send(()).unwrap();
            wait.recv().unwrap();
            Ok(())
        }));
        running.recv().unwrap();
        for x in 0..WAITING {
            drop(
                writer
                    .write("insert", move |c| insert(c, i64::try_from(x).unwrap()))
                    .unwrap(),
            );
        }
        let refused = writer.write("insert", |c| insert(c, -1));
        assert!(matches!(refused, Err(StoreError::Busy)));
        go.send(()).unwrap();
        drop(writer);
        assert_eq!(rows(&path).len(), WAITING);
    }

    #[tokio::test]
    async fn a_thread_that_is_gone_is_told() {
        let (_folder, _path, writer) = counting();
        assert!(writer.is_alive());
        let gone = writer.write::<()>("panic", |_| panic!("canary"));
        assert!(gone.unwrap().await.is_err());
        while writer.is_alive() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        let refused = writer.write("insert", |c| insert(c, 1));
        assert!(matches!(refused, Err(StoreError::Closed)));
    }
}
