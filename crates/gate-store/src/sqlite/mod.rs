//! A store in one SQLite file.
//!
//! One thread writes, others read, one more moves the log into the file:
//! - `writer` runs every change whole or not at all, commits all that wait at once, and answers
//!   after the commit;
//! - `readers` have connections of their own and see only what is committed;
//! - `checkpoint` keeps the log short without holding the writer up.

mod actions;
mod checkpoint;
mod cursor;
mod grant_clock;
mod memory;
mod migrate;
mod open;
mod pools;
mod queries;
mod readers;
mod recover;
mod rows;
mod values;
mod writer;

use std::sync::Mutex;

use digest_text::Sha256Text;
use forge_domain::{
    AttemptId, Completion, EvidenceBatch, Generation, Holder, JobId, NotAccepting, PoolId, SlotId,
};
use jiff::Timestamp;
use safe_fs::LockGuard;

use self::checkpoint::Checkpointer;
use self::grant_clock::GrantClock;
use self::readers::Readers;
use self::writer::{Guard, Writer};
use crate::{
    Answer, Attachment, AttemptView, Bound, Cancelled, ClaimRequest, Completed, EndedLease,
    EventView, EvidenceView, JobFilter, JobOutput, JobPage, JobResult, JobView, Lease, Location,
    NewJob, NextDue, Page, PauseReason, Paused, PoolView, QueuePlace, Recovery, Retried, Store,
    StoreError, Submitted, WorkerView,
};

/// A store in one SQLite file, or in memory.
///
/// Dropping it finishes what was asked for, moves the log into the file and gives the file up.
#[derive(Debug)]
pub struct SqliteStore {
    // The order matters: users of the connections end before the lock is given up.
    readers: Option<Readers>,
    writer: Writer,
    grants: GrantClock,
    _checkpointer: Option<Checkpointer>,
    _lock: Option<Mutex<LockGuard>>,
}

impl SqliteStore {
    /// Opens or creates a database, takes it into exclusive ownership, checks every active row and
    /// recovers what an earlier Gate left: all slots disconnected, leases that ran out ended, no
    /// lease longer than its TTL from `now`, and just so long where the Worker can come back for
    /// it. Blocks.
    ///
    /// # Errors
    /// See [`StoreError::startup_code`]; nothing is repaired, and a database that is refused is
    /// left as it was.
    pub fn open(location: &Location, now: Timestamp) -> Result<(Self, Recovery), StoreError> {
        let opened = open::open(location)?;
        let writer = opened.writer;
        let recovery = recover::recover(&writer, now)?;
        let checkpointer = opened.checkpointer.map(Checkpointer::start).transpose()?;
        let pressure = checkpointer.as_ref().map(Checkpointer::pressure);
        let store = Self {
            readers: opened.readers.map(Readers::start).transpose()?,
            writer: Writer::start(writer, pressure)?,
            grants: GrantClock::default(),
            _checkpointer: checkpointer,
            _lock: opened.lock.map(Mutex::new),
        };
        Ok((store, recovery))
    }

    /// Reads the time of a grant when the grant is made, not when it is asked for: what a claim
    /// waited for the disk must not be missing from its lease, which the Worker counts from the
    /// moment it receives it. The clock is the one that `now` of every operation is read from.
    #[must_use]
    pub fn granting_by(self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self {
            grants: GrantClock::new(clock),
            ..self
        }
    }

    fn read<T: Send + 'static>(
        &self,
        doing: &'static str,
        query: impl FnOnce(&rusqlite::Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Answer<T> {
        match &self.readers {
            Some(readers) => readers.read(doing, query),
            None => self.writer.write(doing, Guard::RefusesFirst, |session| {
                query(session.connection())
            }),
        }
    }
}

impl Store for SqliteStore {
    fn submit(&self, job: NewJob, now: Timestamp) -> Answer<Submitted> {
        self.writer
            .write("accept a job", Guard::RefusesFirst, move |session| {
                actions::submit::submit(session, &job, now)
            })
    }

    fn claim(&self, request: ClaimRequest, now: Timestamp) -> Answer<Option<Lease>> {
        let grants = self.grants.clone();
        self.writer
            .write("claim a job", Guard::RefusesFirst, move |session| {
                actions::claim::claim(session, request, grants.at_least(now))
            })
    }

    fn heartbeat(&self, job: JobId, holder: Holder, now: Timestamp) -> Answer<Timestamp> {
        self.writer
            .write("prolong a lease", Guard::RefusesFirst, move |session| {
                actions::lease::heartbeat(session, &job, &holder, now)
            })
    }

    fn attach(
        &self,
        job: JobId,
        holder: Holder,
        token: Sha256Text,
        now: Timestamp,
    ) -> Answer<Attachment> {
        self.writer
            .write("attach a session", Guard::Savepoint, move |session| {
                actions::hand_over::attach(session, &job, &holder, &token, now)
            })
    }

    fn withdraw(
        &self,
        job: JobId,
        holder: Holder,
        reason: NotAccepting,
        now: Timestamp,
    ) -> Answer<JobView> {
        self.writer
            .write("take back a lease", Guard::Savepoint, move |session| {
                actions::hand_over::withdraw(session, &job, &holder, reason, now)
            })
    }

    fn stopped(&self, job: JobId, attempt: AttemptId, slot: SlotId, now: Timestamp) -> Answer<()> {
        self.writer
            .write("note a stop", Guard::Savepoint, move |session| {
                actions::hand_over::stopped(session, &job, &attempt, &slot, now)
            })
    }

    fn bind_evidence(
        &self,
        job: JobId,
        holder: Holder,
        batch: EvidenceBatch,
        now: Timestamp,
    ) -> Answer<Bound> {
        self.writer
            .write("bind evidence", Guard::Savepoint, move |session| {
                actions::evidence::bind(session, &job, &holder, &batch, now)
            })
    }

    fn complete(
        &self,
        job: JobId,
        holder: Holder,
        completion: Completion,
        now: Timestamp,
    ) -> Answer<Completed> {
        self.writer
            .write("store a result", Guard::RefusesFirst, move |session| {
                actions::complete::complete(session, &job, &holder, completion, now)
            })
    }

    fn complete_and_claim(
        &self,
        job: JobId,
        holder: Holder,
        completion: Completion,
        next: ClaimRequest,
        now: Timestamp,
    ) -> Answer<(Completed, Option<Lease>)> {
        let grants = self.grants.clone();
        self.writer
            .write("store a result", Guard::RefusesFirst, move |session| {
                let done = actions::complete::complete(session, &job, &holder, completion, now)?;
                let lease = match actions::claim::claim(session, next, grants.at_least(now)) {
                    // The result of an earlier session counts, and this one gets nothing.
                    Err(StoreError::Fenced) => None,
                    lease => lease?,
                };
                Ok((done, lease))
            })
    }

    fn expire_due(&self, now: Timestamp) -> Answer<Vec<EndedLease>> {
        self.writer
            .write("end expired leases", Guard::Savepoint, move |session| {
                actions::lease::expire_due(session, now)
            })
    }

    fn cancel(&self, job: JobId, now: Timestamp) -> Answer<Cancelled> {
        self.writer
            .write("cancel a job", Guard::Savepoint, move |session| {
                actions::owner::cancel(session, &job, now)
            })
    }

    fn retry(&self, job: JobId, new_id: JobId, now: Timestamp) -> Answer<Retried> {
        self.writer
            .write("retry a job", Guard::Savepoint, move |session| {
                actions::owner::retry(session, &job, &new_id, now)
            })
    }

    fn connect_slot(
        &self,
        slot: SlotId,
        pool: PoolId,
        generation: Generation,
        now: Timestamp,
    ) -> Answer<()> {
        self.writer
            .write("connect a slot", Guard::Savepoint, move |session| {
                actions::slots::connect(session, &slot, &pool, &generation, now)
            })
    }

    fn disconnect_slot(
        &self,
        slot: SlotId,
        generation: Generation,
        now: Timestamp,
    ) -> Answer<bool> {
        self.writer
            .write("disconnect a slot", Guard::Savepoint, move |session| {
                actions::slots::disconnect(session, &slot, &generation, now)
            })
    }

    fn job(&self, job: JobId) -> Answer<Option<JobView>> {
        self.read("read a job", move |connection| {
            queries::job(connection, &job)
        })
    }

    fn list_jobs(&self, filter: JobFilter, page: Page) -> Answer<JobPage> {
        self.read("list jobs", move |connection| {
            queries::list(connection, &filter, &page)
        })
    }

    fn attempts(&self, job: JobId) -> Answer<Option<Vec<AttemptView>>> {
        self.read("read attempts", move |connection| {
            queries::attempts(connection, &job)
        })
    }

    fn result(&self, job: JobId) -> Answer<Option<JobResult>> {
        self.read("read a result", move |connection| {
            queries::result(connection, &job)
        })
    }

    fn events(&self, job: JobId) -> Answer<Vec<EventView>> {
        self.read("read the journal", move |connection| {
            queries::events(connection, &job)
        })
    }

    fn evidence(&self, job: JobId, attempt: AttemptId) -> Answer<Option<Vec<EvidenceView>>> {
        self.read("read evidence", move |connection| {
            queries::evidence(connection, &job, &attempt)
        })
    }

    fn output(&self, job: JobId) -> Answer<Option<JobOutput>> {
        self.read("read an output", move |connection| {
            queries::output(connection, &job)
        })
    }

    fn workers(&self) -> Answer<Vec<WorkerView>> {
        self.read("list workers", queries::workers)
    }

    fn worker(&self, slot: SlotId) -> Answer<Option<WorkerView>> {
        self.read("read a worker", move |connection| {
            queries::worker(connection, &slot)
        })
    }

    fn ready_pools(&self, now: Timestamp) -> Answer<Vec<PoolId>> {
        self.read("look for waiting jobs", move |connection| {
            queries::ready_pools(connection, now)
        })
    }

    fn next_due(&self, now: Timestamp) -> Answer<NextDue> {
        self.read("look for deadlines", move |connection| {
            queries::next_due(connection, now)
        })
    }

    fn pause_pool(
        &self,
        pool: PoolId,
        reason: Option<PauseReason>,
        now: Timestamp,
    ) -> Answer<Paused> {
        self.writer
            .write("pause a pool", Guard::Savepoint, move |session| {
                actions::pools::pause(session, &pool, reason, now)
            })
    }

    fn resume_pool(&self, pool: PoolId) -> Answer<bool> {
        self.writer
            .write("resume a pool", Guard::Savepoint, move |session| {
                actions::pools::resume(session, &pool)
            })
    }

    fn pools(&self) -> Answer<Vec<PoolView>> {
        self.read("list pools", pools::pools)
    }

    fn queue_place(&self, job: JobId, now: Timestamp) -> Answer<Option<QueuePlace>> {
        self.read("look for a place in a queue", move |connection| {
            pools::queue_place(connection, &job, now)
        })
    }
}
