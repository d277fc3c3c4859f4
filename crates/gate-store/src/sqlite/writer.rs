//! The one thread that writes: each operation whole or absent, many in one commit.

use std::cell::{RefCell, RefMut};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use forge_domain::JobId;
use rusqlite::Connection;
use sqlite_batch::{Operation, serve};
use tokio::sync::oneshot;

use super::checkpoint::Pressure;
use super::memory::Memory;
use super::rows::JobRow;
use crate::{Answer, StoreError};

/// Most operations of one commit.
const BATCH: usize = 512;

/// What an operation works with: the connection, and what is remembered.
#[derive(Debug)]
pub(super) struct Session {
    connection: Connection,
    memory: RefCell<Memory>,
    pressure: Option<Arc<Pressure>>,
}

impl Session {
    pub(super) fn new(connection: Connection) -> Self {
        Self {
            connection,
            memory: RefCell::default(),
            pressure: None,
        }
    }

    pub(super) const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Reads a policy, from memory where it was read before.
    pub(super) fn policy(&self, seq: i64) -> Result<Arc<forge_domain::ResolvedPolicy>, StoreError> {
        self.memory().policy(&self.connection, seq)
    }

    /// What is remembered; let go of it before the next call.
    pub(super) fn memory(&self) -> RefMut<'_, Memory> {
        self.memory.borrow_mut()
    }

    /// Takes a job to change it, from memory if it was leased a moment ago.
    pub(super) fn job(&self, job: &JobId) -> Result<JobRow, StoreError> {
        let remembered = self.memory().take_leased(job);
        match remembered {
            Some(row) => Ok(row),
            None => JobRow::get(&self.connection, job),
        }
    }

    /// Runs an operation that refuses before it writes anything, without the cost of a savepoint.
    ///
    /// If it fails later all the same, which no refusal does, the whole batch is taken back: nothing
    /// is half there, and the store has to stop.
    pub(super) fn unguarded<T>(
        &self,
        doing: &'static str,
        operation: impl FnOnce(&Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let before = self.connection.total_changes();
        let outcome = operation(self);
        if outcome.is_err() {
            self.memory().forget();
            if self.connection.total_changes() != before && !self.connection.is_autocommit() {
                self.connection.execute_batch("ROLLBACK")?;
            }
        }
        outcome.map_err(|error| error.while_doing(doing))
    }

    /// Runs one operation; what fails leaves nothing behind.
    pub(super) fn savepoint<T>(
        &self,
        doing: &'static str,
        operation: impl FnOnce(&Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let outcome = sqlite_batch::savepoint(&self.connection, || operation(self));
        if outcome.is_err() {
            self.memory().forget();
        }
        outcome.map_err(|error| error.while_doing(doing))
    }
}

impl sqlite_batch::Session for Session {
    fn connection(&self) -> &Connection {
        &self.connection
    }

    fn lost(&self) {
        self.memory().forget();
    }

    fn answered(&self, operations: usize) {
        if let Some(pressure) = &self.pressure {
            pressure.committed(&self.connection, operations);
        }
    }
}

/// How an operation that fails is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guard {
    /// Alone.
    Savepoint,
    /// It has not written anything when it refuses: see [`Session::unguarded`].
    RefusesFirst,
}

/// The handle of the thread.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Option<Sender<Operation<Session>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(
        mut session: Session,
        pressure: Option<Arc<Pressure>>,
    ) -> Result<Self, StoreError> {
        session.pressure = pressure;
        let (queue, operations) = channel();
        let thread = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || serve(&session, &operations, BATCH))
            .map_err(|error| StoreError::NotCommitted {
                reason: error.to_string(),
            })?;
        Ok(Self {
            queue: Some(queue),
            thread: Some(thread),
        })
    }

    /// Queues an operation; its answer comes after the commit.
    pub(super) fn write<T: Send + 'static>(
        &self,
        doing: &'static str,
        guard: Guard,
        operation: impl FnOnce(&Session) -> Result<T, StoreError> + Send + 'static,
    ) -> Answer<T> {
        let (sender, receiver) = oneshot::channel();
        let queued: Operation<Session> = Box::new(move |session| {
            let outcome = match session {
                Some(session) if guard == Guard::Savepoint => session.savepoint(doing, operation),
                Some(session) => session.unguarded(doing, operation),
                None => Err(StoreError::Closed),
            };
            Box::new(move |failure| {
                let answer = match failure {
                    None => outcome,
                    Some(reason) => Err(StoreError::NotCommitted {
                        reason: reason.to_owned(),
                    }),
                };
                // Nobody may be waiting any more; the operation stands all the same.
                drop(sender.send(answer));
            })
        });
        let sent = self
            .queue
            .as_ref()
            .is_some_and(|queue| queue.send(queued).is_ok());
        Box::pin(async move {
            if !sent {
                return Err(StoreError::Closed);
            }
            receiver.await.unwrap_or(Err(StoreError::Closed))
        })
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

    fn counting() -> (tempfile::TempDir, std::path::PathBuf, Session) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let connection = Connection::open(&path).unwrap();
        connection
            .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x INTEGER UNIQUE)")
            .unwrap();
        (folder, path, Session::new(connection))
    }

    fn insert(session: &Session, x: i64) -> Result<(), StoreError> {
        session
            .connection()
            .execute("INSERT INTO t (x) VALUES (?1)", [x])?;
        Ok(())
    }

    fn rows(path: &std::path::Path) -> Vec<i64> {
        let connection = Connection::open(path).unwrap();
        let mut statement = connection.prepare("SELECT x FROM t ORDER BY x").unwrap();
        statement
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap()
    }

    #[tokio::test]
    async fn a_failed_operation_leaves_nothing_and_its_neighbours_stand() {
        let (_folder, path, session) = counting();
        let writer = Writer::start(session, None).unwrap();
        let first = writer.write("insert", Guard::Savepoint, |session| insert(session, 1));
        let half = writer.write("insert twice", Guard::Savepoint, |session| {
            insert(session, 2)?;
            insert(session, 1)
        });
        let refused: Answer<()> = writer.write("refuse", Guard::Savepoint, |session| {
            insert(session, 3)?;
            Err(StoreError::JobNotFound)
        });
        let last = writer.write("insert", Guard::Savepoint, |session| insert(session, 4));
        first.await.unwrap();
        let error = half.await.unwrap_err();
        assert!(
            !error.is_refusal() && error.to_string() == "failed to insert twice",
            "{error}"
        );
        assert!(refused.await.unwrap_err().is_refusal());
        last.await.unwrap();
        assert_eq!(rows(&path), [1, 4]);
    }

    #[tokio::test]
    async fn nothing_is_answered_as_done_that_was_not_committed() {
        let (_folder, path, session) = counting();
        let writer = Writer::start(session, None).unwrap();
        // The operation tears the transaction down under itself, as a full disk does.
        let torn = writer.write("tear", Guard::Savepoint, |session| {
            insert(session, 1)?;
            session.connection().execute_batch("ROLLBACK")?;
            Ok(())
        });
        let error = torn.await.unwrap_err();
        assert!(
            matches!(error, StoreError::NotCommitted { .. }),
            "{error:?}"
        );
        writer
            .write("insert", Guard::Savepoint, |session| insert(session, 2))
            .await
            .unwrap();
        assert_eq!(rows(&path), [2]);
    }

    #[tokio::test]
    async fn without_a_savepoint_a_refusal_costs_nobody_anything() {
        let (_folder, path, session) = counting();
        let writer = Writer::start(session, None).unwrap();
        let first = writer.write("insert", Guard::RefusesFirst, |session| insert(session, 1));
        let refused: Answer<()> = writer.write("refuse", Guard::RefusesFirst, |_| {
            Err(StoreError::JobNotFound)
        });
        let last = writer.write("insert", Guard::RefusesFirst, |session| insert(session, 2));
        first.await.unwrap();
        assert!(refused.await.unwrap_err().is_refusal());
        last.await.unwrap();
        assert_eq!(rows(&path), [1, 2]);
    }

    #[tokio::test]
    async fn without_a_savepoint_a_failure_leaves_nothing_half_done() {
        let (_folder, path, session) = counting();
        let writer = Writer::start(session, None).unwrap();
        writer
            .write("insert", Guard::RefusesFirst, |session| insert(session, 1))
            .await
            .unwrap();
        let half = writer.write("insert twice", Guard::RefusesFirst, |session| {
            insert(session, 2)?;
            insert(session, 1)
        });
        assert!(!half.await.unwrap_err().is_refusal());
        writer
            .write("insert", Guard::RefusesFirst, |session| insert(session, 3))
            .await
            .unwrap();
        assert_eq!(rows(&path), [1, 3]);
    }

    #[tokio::test]
    async fn without_a_transaction_nothing_runs() {
        let (_folder, path, session) = counting();
        session
            .connection()
            .busy_timeout(std::time::Duration::ZERO)
            .unwrap();
        let blocker = Connection::open(&path).unwrap();
        blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
        let writer = Writer::start(session, None).unwrap();
        let error = writer
            .write("insert", Guard::Savepoint, |session| insert(session, 1))
            .await
            .unwrap_err();
        assert!(
            matches!(error, StoreError::NotCommitted { .. }),
            "{error:?}"
        );
        blocker.execute_batch("ROLLBACK").unwrap();
        writer
            .write("insert", Guard::Savepoint, |session| insert(session, 2))
            .await
            .unwrap();
        assert_eq!(rows(&path), [2]);
    }

    #[tokio::test]
    async fn what_was_asked_for_is_done_although_nobody_waits() {
        let (_folder, path, session) = counting();
        let writer = Writer::start(session, None).unwrap();
        for x in 0..100 {
            drop(writer.write("insert", Guard::Savepoint, move |session| {
                insert(session, x)
            }));
        }
        drop(writer);
        assert_eq!(rows(&path).len(), 100);
    }

    #[test]
    fn a_transaction_that_its_owner_lost_is_gone() {
        let (_folder, path, session) = counting();
        session
            .connection()
            .execute_batch("BEGIN IMMEDIATE")
            .unwrap();
        session
            .savepoint("insert", |session| insert(session, 1))
            .unwrap();
        drop(session);
        assert_eq!(rows(&path), [] as [i64; 0]);
    }
}
