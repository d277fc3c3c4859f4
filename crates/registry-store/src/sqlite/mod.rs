//! The database: one thread writes, others read, each query sees one moment.

mod catalog;
mod cursor;
mod installations;
mod migrate;
mod open;
mod publish;
mod readers;
mod releases;
mod rows;
mod uploads;
mod writer;

use std::path::Path;
use std::sync::Mutex;

use digest_text::Sha256Text;
use rusqlite::Connection;
use safe_fs::LockGuard;

use self::readers::Readers;
use self::writer::Writer;
use crate::StoreError;

pub(crate) use self::catalog::{Search, page as catalog_page};
pub(crate) use self::installations::{list as installations, report};
pub(crate) use self::publish::{Move, promote, publish, set_yanked};
pub(crate) use self::releases::{list as releases, resolve};
pub(crate) use self::uploads::{
    KeptReceipt, Known, Waiting, begin, digests, drop_row, find, keep, keep_receipt, mark_pending,
    receipt, waiting,
};

/// The database of one registry.
#[derive(Debug)]
pub(crate) struct Database {
    // The order matters: users of the connections end before the lock is given up.
    readers: Readers,
    writer: Writer,
    _lock: Mutex<LockGuard>,
}

impl Database {
    /// Opens or creates it below a root, which from then on is this process's, and tells which
    /// uploads an earlier process was interrupted in. Blocks.
    pub(crate) fn open(root: &Path) -> Result<(Self, Vec<Sha256Text>), StoreError> {
        let opened = open::open(root)?;
        let interrupted = uploads::pending(&opened.writer)?;
        let database = Self {
            readers: Readers::start(opened.readers)?,
            writer: Writer::start(opened.writer)?,
            _lock: Mutex::new(opened.lock),
        };
        Ok((database, interrupted))
    }

    /// Changes something, whole or not at all; it happens even if nobody waits for the answer.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        doing: &'static str,
        operation: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let answer = self.writer.write(doing, operation)?;
        answer.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Tells whether it can be read, and whether somebody is there who writes.
    pub(crate) async fn ping(&self) -> Result<(), StoreError> {
        if !self.writer.is_alive() {
            return Err(StoreError::Closed);
        }
        self.read("ask the database", |connection| {
            Ok(connection.query_row("SELECT 1", [], |_| Ok(()))?)
        })
        .await
    }

    /// Asks something.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        doing: &'static str,
        query: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let answer = self.readers.read(doing, query)?;
        answer.await.unwrap_or(Err(StoreError::Closed))
    }
}
