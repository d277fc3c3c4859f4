//! A Gate's store at work until it is killed: prints the id of each job whose result was answered.
//!
//! Only the test `a_killed_gate_leaves_both_writes_or_neither` starts it, with the path of the
//! database as its argument.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "part of a test"
)]

#[path = "../it/fixture.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod fixture;

use gate_store::{Location, SqliteStore, Store};

use crate::fixture::{Lane, at, text_job, text_result};

const LANES: usize = 8;

fn main() {
    let path = std::env::args_os().nth(1).unwrap().into();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (store, _) = SqliteStore::open(&Location::File(path), at(0)).unwrap();
        let mut lanes = Vec::new();
        for index in 1..=LANES {
            lanes.push(Lane::connect(&store, &format!("w#{index}"), at(0)).await);
        }
        loop {
            work(&store, &lanes).await;
        }
    });
}

/// Puts one job through each lane, all at once.
async fn work(store: &SqliteStore, lanes: &[Lane]) {
    let submitted: Vec<_> = lanes
        .iter()
        .map(|_| store.submit(text_job(), at(1)))
        .collect();
    for answer in submitted {
        answer.await.unwrap();
    }
    let claims: Vec<_> = lanes
        .iter()
        .map(|lane| store.claim(lane.request(), at(2)))
        .collect();
    let mut completed = Vec::new();
    for (lane, claim) in lanes.iter().zip(claims) {
        let lease = claim.await.unwrap().unwrap();
        let answer = store.complete(lease.job, lane.holder(&lease), text_result("done"), at(3));
        completed.push((lease.job, answer));
    }
    for (job, answer) in completed {
        answer.await.unwrap();
        println!("{job}");
    }
}
