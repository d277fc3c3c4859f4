//! Questions to a ledger, and the archive's events as an attacker would have them.

use std::collections::BTreeMap;

use attest_exchange::archive::{self, Limits, Parts};
use attest_exchange::causal::{Ledger, LookupError};
use attest_receipt::ledger::{Event, chain_hash};
use attest_receipt::receipt;
use attest_receipt::time::Time;
use attest_verify::Status;

use crate::support::{Ledgered, ledgered};

const FIRST: &str = "2026-11-30T11:00:00Z";

fn event(step: &str, parents: &[&Event], time: &str) -> Event {
    let mut event = Event {
        event_id: String::new(),
        step_name: step.to_owned(),
        causal_parents: parents.iter().map(|one| one.event_id.clone()).collect(),
        input_hash: "1".repeat(64),
        output_hash: "2".repeat(64),
        timestamp: time.parse().unwrap(),
        exit_code: 0,
        pipeline_hash: "3".repeat(64),
        environment_hash: "4".repeat(64),
        signer_public_key: None,
        signature: None,
        metadata: BTreeMap::new(),
    };
    event.event_id = event.computed_id();
    event
}

fn bytes(event: &Event) -> Vec<u8> {
    serde_json::to_vec_pretty(event).unwrap()
}

fn ledger(events: &[&Event]) -> Ledger {
    let mut ledger = Ledger::default();
    for event in events {
        ledger.add(&event.event_id, &bytes(event)).unwrap();
    }
    ledger
}

#[test]
fn paths_chains_and_numbers_follow_the_parents() {
    let root = event("root", &[], FIRST);
    let left = event("left", &[&root], "2026-11-30T11:00:01Z");
    let right = event("right", &[&root], "2026-11-30T11:00:02Z");
    let top = event("top", &[&left, &right], "2026-11-30T11:00:03Z");
    let alone = event("alone", &[], "2026-11-30T11:00:04Z");
    let ledger = ledger(&[&alone, &top, &right, &left, &root]);

    let stats = ledger.stats();
    assert_eq!((stats.total_events, stats.total_chains), (5, 2));
    assert_eq!((stats.root_events, stats.leaf_events), (2, 2));

    let names = |events: Vec<&Event>| -> Vec<String> {
        events.iter().map(|event| event.step_name.clone()).collect()
    };
    let path = ledger.path(&root, &top).unwrap();
    assert_eq!(path.len(), 3);
    assert_eq!(path.first(), Some(&&root));
    assert_eq!(path.last(), Some(&&top));
    assert_eq!(names(ledger.path(&top, &top).unwrap()), ["top"]);
    assert_eq!(ledger.path(&top, &root), None, "time does not run back");
    assert_eq!(ledger.path(&alone, &top), None);
    assert_eq!(
        names(ledger.recent(None)),
        ["alone", "top", "right", "left", "root"]
    );
    assert_eq!(names(ledger.recent(Some("left"))), ["left"]);

    let chain = ledger.chain(&[&top, &root, &left, &right, &root], Time::hermetic());
    assert_eq!(chain.events.len(), 4);
    assert_eq!(chain.events.first(), Some(&root));
    assert_eq!(chain.events.last(), Some(&top));
    assert_eq!(chain.chain_hash, chain_hash(&chain.events));
}

#[test]
fn the_beginning_of_an_id_is_enough_if_it_is_the_only_one() {
    let (one, other) = (event("a", &[], FIRST), event("b", &[], FIRST));
    let ledger = ledger(&[&one, &other]);
    for length in [8, 12, 63, 64] {
        assert_eq!(ledger.find(&one.event_id[..length]), Ok(&one));
    }
    for wrong in [
        "",
        "1234567",
        "XYZ45678",
        "../../../../x",
        &"0".repeat(65),
        "ÄÄÄÄ",
    ] {
        let error = ledger.find(wrong).unwrap_err();
        assert_eq!(error, LookupError::NoId(wrong.to_owned()));
    }
    let absent = "0".repeat(64);
    assert_eq!(ledger.find(&absent), Err(LookupError::Unknown(absent)));
}

#[test]
fn a31_an_event_that_is_not_what_its_name_says_takes_no_part() {
    let good = event("build", &[], FIRST);
    let id = good.event_id.clone();
    let mut ledger = Ledger::default();
    let mut rewritten = good.clone();
    rewritten.causal_parents = vec!["5".repeat(64)];
    for (name, bytes) in [
        (id.as_str(), bytes(&rewritten)),
        (&"0".repeat(64), bytes(&good)),
        (&id, b"{}".to_vec()),
        (&id, b"not JSON".to_vec()),
        (&id, Vec::new()),
    ] {
        assert!(ledger.add(name, &bytes).is_err());
    }
    let mut signed = good.clone();
    signed.signature = Some("0".repeat(128));
    signed.signer_public_key = Some("1".repeat(64));
    let error = ledger.add(&id, &bytes(&signed)).unwrap_err();
    assert_eq!(error, "the event's signature does not hold");
    assert!(ledger.is_empty());
    ledger.add(&id, &bytes(&good)).unwrap();
    assert_eq!(ledger.len(), 1);
}

/// The archive of a receipt with other events, judged.
fn linkage(sample: &Ledgered, events: &BTreeMap<String, Vec<u8>>) -> (Status, String) {
    let parts = Parts {
        bytes: &sample.bytes,
        receipt: &sample.receipt,
        events,
    };
    let bytes = archive::write(&parts).unwrap();
    let archive = archive::read(&bytes, &Limits::default()).unwrap();
    let check = archive.linkage(&receipt::read(&archive.receipt).unwrap());
    (check.status, check.detail)
}

#[test]
fn a31_an_archive_with_other_events_does_not_link() {
    let sample = ledgered("passed_signed.yaml");
    let (status, detail) = linkage(&sample, &sample.events);
    assert_eq!(status, Status::Pass, "{detail}");
    let (id, first) = sample.events.first_key_value().unwrap();

    let mut events = sample.events.clone();
    let rewritten = String::from_utf8(first.clone())
        .unwrap()
        .replace("\"exit_code\": 0", "\"exit_code\": 1");
    events.insert(id.clone(), rewritten.into_bytes());
    let (status, detail) = linkage(&sample, &events);
    assert_eq!(status, Status::Fail);
    assert!(detail.contains("not what their ids say"), "{detail}");

    events.insert(id.clone(), b"{".to_vec());
    let (status, detail) = linkage(&sample, &events);
    assert_eq!(status, Status::Fail);
    assert!(detail.contains("events cannot be read"), "{detail}");

    let mut events = sample.events.clone();
    let stranger = event("another run", &[], FIRST);
    events.insert(stranger.event_id.clone(), bytes(&stranger));
    let (status, detail) = linkage(&sample, &events);
    assert_eq!(status, Status::Fail);
    assert!(detail.contains("does not name these events"), "{detail}");

    // One that is missing makes the archive partial, which it says of itself.
    let mut events = sample.events.clone();
    events.remove(id);
    let (status, detail) = linkage(&sample, &events);
    assert_eq!(status, Status::Skipped, "{detail}");
    assert!(detail.contains(id), "{detail}");
}

#[test]
fn a31_a_root_that_was_not_signed_does_not_link() {
    let mut sample = ledgered("passed_signed.yaml");
    sample.receipt.causal_chain_hash = Some("0".repeat(64));
    sample.bytes = sample.receipt.to_yaml().unwrap().into_bytes();
    let (status, detail) = linkage(&sample, &sample.events);
    assert_eq!(status, Status::Fail, "{detail}");
    sample.receipt.causal_events.reverse();
    sample.receipt.causal_events.pop();
    sample.bytes = sample.receipt.to_yaml().unwrap().into_bytes();
    assert_eq!(linkage(&sample, &sample.events).0, Status::Fail);
}

#[test]
fn a_manifest_of_another_receipt_does_not_link() {
    let sample = ledgered("passed_signed.yaml");
    let other = ledgered("failed_signed.yaml");
    let parts = Parts {
        bytes: &sample.bytes,
        receipt: &other.receipt,
        events: &sample.events,
    };
    let bytes = archive::write(&parts).unwrap();
    let archive = archive::read(&bytes, &Limits::default()).unwrap();
    let check = archive.linkage(&sample.receipt);
    assert_eq!(check.status, Status::Fail);
    assert_eq!(check.detail, "manifest.json tells of another receipt");
}
