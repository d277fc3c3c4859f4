//! A Gate's store at work until it is killed: prints the id of each job whose result was answered.
//!
//! Only the test `r02_a_killed_gate_leaves_both_writes_or_neither` starts it, with the path of the
//! database as its argument.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "part of a test"
)]

#[path = "../../tests/it/fixture.rs"]
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

/// Puts two jobs through each lane, all at once; the second one comes with the first one's result.
async fn work(store: &SqliteStore, lanes: &[Lane]) {
    let submitted: Vec<_> = (0..2 * lanes.len())
        .map(|_| store.submit(text_job(), at(1)))
        .collect();
    for answer in submitted {
        answer.await.unwrap();
    }
    let claims: Vec<_> = lanes
        .iter()
        .map(|lane| store.claim(lane.request(), at(2)))
        .collect();
    let mut first = Vec::new();
    for (lane, claim) in lanes.iter().zip(claims) {
        let lease = claim.await.unwrap().unwrap();
        let (holder, next) = (lane.holder(&lease), lane.request());
        let answer = store.complete_and_claim(lease.job, holder, text_result("done"), next, at(3));
        first.push((lane, lease.job, answer));
    }
    let mut second = Vec::new();
    for (lane, job, answer) in first {
        let lease = answer.await.unwrap().1.unwrap();
        println!("{job}");
        let answer = store.complete(lease.job, lane.holder(&lease), text_result("done"), at(4));
        second.push((lease.job, answer));
    }
    for (job, answer) in second {
        answer.await.unwrap();
        println!("{job}");
    }
}
