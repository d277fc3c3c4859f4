//! The causal chain: what was rewritten, dropped, repeated or made up.

use std::collections::BTreeMap;

use attest_receipt::encode::hex;
use attest_receipt::ledger::{Event, chain_hash};
use attest_receipt::receipt::Receipt;
use attest_verify::{Check, CheckName, Options, Requirement, Status, Verdict, chain};
use ed25519_dalek::Signer as _;

use crate::common::{
    judge, key, options, other_key, passes, public, receipt, signed, time, trusting,
};

type Events = BTreeMap<String, Event>;

fn event(step: &str, parents: &[&str]) -> Event {
    let mut event = Event {
        event_id: String::new(),
        step_name: step.to_owned(),
        causal_parents: parents.iter().map(|id| (*id).to_owned()).collect(),
        input_hash: "b".repeat(64),
        output_hash: "c".repeat(64),
        timestamp: time("2026-11-30T11:59:00Z"),
        exit_code: 0,
        pipeline_hash: "a".repeat(64),
        environment_hash: "d".repeat(64),
        signer_public_key: None,
        signature: None,
        metadata: BTreeMap::new(),
    };
    event.event_id = event.computed_id();
    event
}

fn sign(event: &mut Event, key: &ed25519_dalek::SigningKey) {
    event.signer_public_key = Some(public(key).hex());
    event.signature = Some(hex(&key.sign(&event.signing_bytes()).to_bytes()));
}

/// Two steps, the second after the first, both signed.
fn chained() -> (Receipt, Events) {
    let mut first = event("build", &[]);
    let mut second = event("test", &[&first.event_id]);
    sign(&mut first, &key());
    sign(&mut second, &key());
    let mut receipt = receipt();
    receipt.causal_events = vec![first.event_id.clone(), second.event_id.clone()];
    receipt.causal_chain_hash = Some(chain_hash([&first, &second]));
    let events = [first, second]
        .into_iter()
        .map(|event| (event.event_id.clone(), event))
        .collect();
    (signed(receipt), events)
}

fn linkage(receipt: &Receipt, events: &Events) -> Check {
    chain::linkage(receipt, events, &[], false)
}

#[track_caller]
fn broken(receipt: &Receipt, events: &Events, words: &str) {
    for partial in [false, true] {
        let check = chain::linkage(receipt, events, &[], partial);
        assert_eq!(check.status, Status::Fail, "{check:?}");
        assert!(check.detail.contains(words), "{check:?}");
    }
}

/// Changes the event of `test`, which stays under its old id.
fn with(change: impl FnOnce(&mut Event)) -> (Receipt, Events) {
    let (receipt, mut events) = chained();
    change(events.get_mut(&receipt.causal_events[1]).unwrap());
    (receipt, events)
}

#[test]
fn a31_a_whole_chain_passes() {
    let (receipt, events) = chained();
    let check = linkage(&receipt, &events);
    assert_eq!(check.status, Status::Pass, "{check:?}");
    assert_eq!(check.name, CheckName::ChainLinkage);
    for keys in [
        vec![public(&key())],
        vec![public(&other_key()), public(&key())],
    ] {
        let check = chain::linkage(&receipt, &events, &keys, false);
        assert_eq!(check.status, Status::Pass, "{check:?}");
    }
}

#[test]
fn a31_a_rewritten_event_is_named() {
    let (receipt, _) = chained();
    let second = receipt.causal_events[1].clone();
    let changes: [fn(&mut Event); 6] = [
        |event| event.causal_parents.clear(),
        |event| event.step_name.push('x'),
        |event| event.output_hash = "e".repeat(64),
        |event| event.exit_code = 1,
        |event| event.timestamp = time("2026-11-30T11:59:00.000000001Z"),
        |event| event.environment_hash = "e".repeat(64),
    ];
    for change in changes {
        let (receipt, events) = with(change);
        broken(&receipt, &events, &second);
        // Nor does a new id help: the receipt names the old one.
        let (receipt, mut events) = with(change);
        let mut event = events.remove(&second).unwrap();
        event.event_id = event.computed_id();
        events.insert(event.event_id.clone(), event);
        let check = linkage(&receipt, &events);
        assert_eq!(check.status, Status::Fail, "{check:?}");
    }
    let (receipt, events) = with(|event| event.event_id = "f".repeat(64));
    broken(&receipt, &events, &second);
}

#[test]
fn a31_a_dropped_event_is_named_and_a_partial_archive_establishes_nothing() {
    let (receipt, mut events) = chained();
    let gone = receipt.causal_events[0].clone();
    events.remove(&gone);
    let check = linkage(&receipt, &events);
    assert_eq!(check.status, Status::Fail);
    assert!(check.detail.contains(&gone), "{check:?}");
    let check = chain::linkage(&receipt, &events, &[], true);
    assert_eq!(check.status, Status::Skipped);
    assert!(check.detail.contains(&gone), "{check:?}");
    // The list in the receipt is signed, so dropping the id as well breaks the root.
    let (mut receipt, events) = chained();
    receipt.causal_events.remove(1);
    broken(&receipt, &events, "chain root");
    receipt.causal_events.clear();
    broken(&receipt, &events, "chain root");
}

#[test]
fn a31_a_repeated_or_reordered_event_breaks_the_chain() {
    let (mut receipt, events) = chained();
    receipt.causal_events.push(receipt.causal_events[0].clone());
    broken(&receipt, &events, "twice");
    let (mut receipt, events) = chained();
    receipt.causal_events.reverse();
    broken(&receipt, &events, "chain root");
}

#[test]
fn a31_another_root_and_none() {
    let (mut receipt, events) = chained();
    receipt.causal_chain_hash = Some("0".repeat(64));
    broken(&receipt, &events, &"0".repeat(64));
    receipt.causal_chain_hash = None;
    broken(&receipt, &events, "no chain root");
}

#[test]
fn a31_a_parent_that_the_receipt_does_not_name() {
    let stray = event("stray", &[]);
    let child = event("test", &[&stray.event_id]);
    let mut receipt = receipt();
    receipt.causal_events = vec![child.event_id.clone()];
    receipt.causal_chain_hash = Some(chain_hash([&child]));
    let events = [stray.clone(), child]
        .into_iter()
        .map(|event| (event.event_id.clone(), event))
        .collect();
    broken(&receipt, &events, &stray.event_id);
}

#[test]
fn a31_signatures_of_events_hold_where_they_are() {
    let (receipt, _) = chained();
    let second = receipt.causal_events[1].clone();
    let changes: [fn(&mut Event); 6] = [
        |event| event.signature = Some("0".repeat(128)),
        |event| event.signature = Some(String::new()),
        |event| event.signature = None,
        |event| event.signer_public_key = Some(public(&other_key()).hex()),
        |event| event.signer_public_key = Some("0".repeat(64)),
        |event| event.signature = event.signature.as_ref().map(|text| text.to_uppercase()),
    ];
    for change in changes {
        let (receipt, events) = with(change);
        broken(&receipt, &events, &second);
    }
    // Events without a signature, and with one of an early release that names no key.
    let (receipt, events) = with(|event| {
        event.signature = None;
        event.signer_public_key = None;
    });
    assert_eq!(linkage(&receipt, &events).status, Status::Pass);
    let (receipt, events) = with(|event| event.signer_public_key = None);
    assert_eq!(linkage(&receipt, &events).status, Status::Pass);
}

#[test]
fn a16_events_of_a_key_that_is_not_listed() {
    let (receipt, events) = with(|event| sign(event, &other_key()));
    assert_eq!(linkage(&receipt, &events).status, Status::Pass);
    let check = chain::linkage(&receipt, &events, &[public(&key())], false);
    assert_eq!(check.status, Status::Fail, "{check:?}");
    assert!(check.detail.contains(&receipt.causal_events[1]));
}

#[test]
fn a_receipt_without_events_has_no_chain() {
    let check = linkage(&receipt(), &Events::new());
    assert_eq!(check.status, Status::Skipped);
}

#[test]
fn an_archives_linkage_counts_for_verdict_and_requirement() {
    let (receipt, events) = chained();
    let strict = Options {
        require: vec![Requirement::Linkage, Requirement::Signature],
        ..options()
    };
    let mut outcome = judge(&receipt, &trusting(), &strict);
    assert!(!outcome.passed());
    assert_eq!(
        outcome.policy.unmet[0].reason,
        "no chain-linkage check on this surface"
    );
    outcome.add_linkage(linkage(&receipt, &events));
    passes(&outcome);
    assert_eq!(outcome.all_checks().count(), 6);
    outcome.add_linkage(linkage(&receipt, &Events::new()));
    assert_eq!(outcome.verdict, Verdict::Fail);
    let reason = &outcome.policy.unmet[0].reason;
    assert!(
        reason.starts_with("chain-linkage check failed: "),
        "{reason}"
    );
    outcome.add_linkage(chain::linkage(&receipt, &Events::new(), &[], true));
    let reason = &outcome.policy.unmet[0].reason;
    assert!(
        reason.starts_with("chain-linkage check not performed: "),
        "{reason}"
    );
    assert_eq!(outcome.policy.unmet.len(), 1);
    // Without the requirement a broken chain fails the verdict all the same.
    let mut outcome = judge(&receipt, &trusting(), &options());
    outcome.add_linkage(linkage(&receipt, &Events::new()));
    assert!(!outcome.passed());
}
