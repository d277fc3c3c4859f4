//! A registry's store at work until it is killed: prints the digest of each package whose publishing
//! was answered, and `upload` with the digest of each whose upload was.
//!
//! Only the tests of `crash` start it, with the root as its first and a number as its second argument.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "part of a test")]

#[path = "../../tests/it/fixture.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod fixture;

use registry_store::{ArtifactPlace, Limits, Store};

use crate::fixture::{Package, publish, upload};

const LANES: u64 = 4;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let root = arguments.next().unwrap();
    let start: u64 = arguments.next().unwrap().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = Store::open(root.as_ref(), ArtifactPlace::Disk, Limits::default()).unwrap();
        let mut lanes = tokio::task::JoinSet::new();
        for lane in 0..LANES {
            let store = store.clone();
            lanes.spawn(async move {
                for number in (start + lane..).step_by(usize::try_from(LANES).unwrap()) {
                    work(&store, number).await;
                }
            });
        }
        while lanes.join_next().await.is_some() {}
    });
}

/// Uploads one package, and releases each but every fourth.
async fn work(store: &Store, number: u64) {
    let noise: Vec<u8> = (0..5_000u64)
        .flat_map(|n| {
            (n ^ number)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .to_le_bytes()
        })
        .collect();
    let package = Package::with_file(&format!("p{number}"), "1", "words", &noise);
    upload(store, &package, 0).await;
    println!("upload {}", package.digest);
    if number % 4 != 3 {
        publish(store, &package, Some("stable"), 0).await.unwrap();
        println!("{}", package.digest);
    }
}
