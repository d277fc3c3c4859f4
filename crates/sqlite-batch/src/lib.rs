//! One connection, many operations, one commit.
//!
//! A store has one thread that writes. [`serve`] is what it does: it takes what waits, runs each
//! operation, commits them together and answers then. While a commit waits for the disk the next
//! operations gather, so that the number of commits falls as the load rises.
//!
//! What an operation is, which connection it runs on and what its errors are belong to the store.
//! Nothing here starts a thread.

use std::sync::mpsc::Receiver;

use rusqlite::Connection;

/// Sends the answer of an operation, once it is known whether the commit went well: `None`, or why
/// it did not.
pub type Reply = Box<dyn FnOnce(Option<&str>) + Send>;

/// Runs an operation; without a session it only makes the reply for a transaction that failed.
pub type Operation<S> = Box<dyn FnOnce(Option<&S>) -> Reply + Send>;

/// What operations work with.
pub trait Session {
    /// The connection that everything of a batch goes to.
    fn connection(&self) -> &Connection;

    /// Is told that what was done since the last commit is not there.
    fn lost(&self) {}

    /// Is told of a batch after its answers.
    fn answered(&self, _operations: usize) {}
}

impl Session for Connection {
    fn connection(&self) -> &Connection {
        self
    }
}

/// Runs operations, at most `most` in one commit, until nobody can send any more.
pub fn serve<S: Session>(session: &S, operations: &Receiver<Operation<S>>, most: usize) {
    while let Ok(first) = operations.recv() {
        let mut replies = Vec::with_capacity(most);
        let outcome = commit(session, first, operations, most, &mut replies);
        let failure = outcome.err().map(|error| error.to_string());
        let count = replies.len();
        if let Some(reason) = &failure {
            session.lost();
            tracing::error!(
                reason,
                operations = count,
                "a transaction could not be committed"
            );
        }
        for reply in replies {
            reply(failure.as_deref());
        }
        session.answered(count);
    }
}

/// Runs one operation of a batch; what fails leaves nothing behind.
///
/// # Errors
/// Those of the operation, and of SQLite.
pub fn savepoint<T, E: From<rusqlite::Error>>(
    connection: &Connection,
    operation: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let sql = |sql: &str| -> Result<(), E> {
        connection.prepare_cached(sql)?.execute([])?;
        Ok(())
    };
    sql("SAVEPOINT operation")?;
    let outcome = operation();
    // An operation that tore the transaction down took its savepoint with it.
    if outcome.is_err() && !connection.is_autocommit() {
        sql("ROLLBACK TO operation")?;
    }
    if !connection.is_autocommit() {
        sql("RELEASE operation")?;
    }
    outcome
}

fn commit<S: Session>(
    session: &S,
    first: Operation<S>,
    operations: &Receiver<Operation<S>>,
    most: usize,
    replies: &mut Vec<Reply>,
) -> Result<(), rusqlite::Error> {
    let connection = session.connection();
    let begun = connection
        .prepare_cached("BEGIN IMMEDIATE")
        .and_then(|mut begin| begin.execute([]));
    let mut next = Some(first);
    while let Some(operation) = next {
        // Outside of a transaction a savepoint would commit by itself: what cannot be part of the
        // batch does not run.
        replies.push(operation((!connection.is_autocommit()).then_some(session)));
        next = if replies.len() < most {
            operations.try_recv().ok()
        } else {
            None
        };
    }
    begun?;
    if connection.is_autocommit() {
        return Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_ABORT_ROLLBACK),
            Some("the transaction was rolled back".to_owned()),
        ));
    }
    let committed = connection
        .prepare_cached("COMMIT")
        .and_then(|mut commit| commit.execute([]));
    if let Err(error) = committed {
        if !connection.is_autocommit() {
            connection.execute_batch("ROLLBACK")?;
        }
        return Err(error);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::mpsc::channel;

    use super::*;

    type Work = fn(&Connection) -> Result<(), rusqlite::Error>;

    /// Counts what it is told.
    struct Counted {
        connection: Connection,
        told: RefCell<Vec<String>>,
    }

    impl Session for Counted {
        fn connection(&self) -> &Connection {
            &self.connection
        }

        fn lost(&self) {
            self.told.borrow_mut().push("lost".to_owned());
        }

        fn answered(&self, operations: usize) {
            self.told
                .borrow_mut()
                .push(format!("answered {operations}"));
        }
    }

    fn table() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch("CREATE TABLE t (x INTEGER UNIQUE)")
            .unwrap();
        connection
    }

    fn insert(connection: &Connection, x: i64) -> Result<(), rusqlite::Error> {
        connection.execute("INSERT INTO t (x) VALUES (?1)", [x])?;
        Ok(())
    }

    fn rows(connection: &Connection) -> Vec<i64> {
        let mut statement = connection.prepare("SELECT x FROM t ORDER BY x").unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }

    /// Runs the operations, all of which wait already, and says what each was answered.
    fn run(most: usize, operations: Vec<Work>) -> (Vec<String>, Vec<i64>, Vec<String>) {
        let session = Counted {
            connection: table(),
            told: RefCell::default(),
        };
        let (queue, waiting) = channel();
        let (answers, answered) = channel();
        for operation in operations {
            let answers = answers.clone();
            let boxed: Operation<Counted> = Box::new(move |session| {
                let outcome = session.map(|session| {
                    let connection = session.connection();
                    savepoint(connection, || operation(connection)).is_ok()
                });
                Box::new(move |failure| {
                    answers
                        .send(format!("{outcome:?} {}", failure.is_some()))
                        .unwrap();
                })
            });
            queue.send(boxed).unwrap();
        }
        drop((queue, answers));
        serve(&session, &waiting, most);
        let rows = rows(&session.connection);
        (answered.iter().collect(), rows, session.told.into_inner())
    }

    #[test]
    fn what_fails_leaves_nothing_and_its_neighbours_stand() {
        let (answers, rows, told) = run(
            10,
            vec![
                |c| insert(c, 1),
                |c| insert(c, 2).and_then(|()| insert(c, 1)),
                |c| insert(c, 3),
            ],
        );
        assert_eq!(
            answers,
            ["Some(true) false", "Some(false) false", "Some(true) false"]
        );
        assert_eq!(rows, [1, 3]);
        assert_eq!(told, ["answered 3"]);
    }

    #[test]
    fn a_batch_that_is_torn_down_is_answered_as_not_done_and_the_next_one_stands() {
        let (answers, rows, told) = run(
            2,
            vec![
                |c| insert(c, 1).and_then(|()| c.execute_batch("ROLLBACK")),
                |c| insert(c, 2),
                |c| insert(c, 3),
            ],
        );
        assert_eq!(
            answers,
            ["Some(true) true", "None true", "Some(true) false"]
        );
        assert_eq!(rows, [3]);
        assert_eq!(told, ["lost", "answered 2", "answered 1"]);
    }

    #[test]
    fn no_more_than_asked_for_go_into_one_commit() {
        let (_, rows, told) = run(
            2,
            vec![|c| insert(c, 1), |c| insert(c, 2), |c| insert(c, 3)],
        );
        assert_eq!(rows, [1, 2, 3]);
        assert_eq!(told, ["answered 2", "answered 1"]);
    }
}
