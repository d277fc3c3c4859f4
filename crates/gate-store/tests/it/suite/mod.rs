//! The promises of every store. Each case gets an empty one.

mod claims;
mod evidence;
mod hand_over;
mod leases;
mod owner;
mod pools;
mod reading;
mod results;
mod submissions;

use std::future::Future;
use std::pin::Pin;

use gate_store::{Location, SqliteStore, Store};

type Case = for<'a> fn(&'a dyn Store) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Runs a case against a store in memory and one in a file.
async fn on_sqlite(case: Case) {
    let now = crate::fixture::at(0);
    let (memory, _) = SqliteStore::open(&Location::Memory, now).unwrap();
    case(&memory).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state").join("gate.db");
    let (file, _) = SqliteStore::open(&Location::File(path.clone()), now).unwrap();
    case(&file).await;
    drop(file);
    // Whatever the case did, the next Gate can start from it.
    SqliteStore::open(&Location::File(path), crate::fixture::at(1_000_000)).unwrap();
}

/// Turns the functions of a module into tests.
macro_rules! cases {
    ($($name:ident)+) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $name() {
                $crate::suite::on_sqlite(|store| Box::pin(super::$name(store))).await;
            })+
        }
    };
}
use cases;
