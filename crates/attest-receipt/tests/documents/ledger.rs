//! Events of the ledger: ids, the chain, and what is an event.

use attest_receipt::ledger::{self, Event, EventError, chain_hash, environment_hash};
use serde_json::{Value, json};

use crate::vectors::{bytes, receipt};

const SIGNED: &str = "r1_pipeline_signed.yaml";

fn event(name: &str) -> Event {
    Event::read(&bytes(name)).unwrap()
}

fn events() -> Vec<Event> {
    let ids = receipt(SIGNED).causal_events;
    assert_eq!(ids.len(), 3);
    ids.iter()
        .map(|id| event(&format!("ledger/{id}.json")))
        .collect()
}

fn sample() -> Value {
    let id = &receipt(SIGNED).causal_events[2];
    serde_json::from_slice(&bytes(&format!("ledger/{id}.json"))).unwrap()
}

fn read(value: &Value) -> Result<Event, EventError> {
    Event::read(value.to_string().as_bytes())
}

#[test]
fn the_ids_of_the_originals_events_are_their_contents() {
    for (event, id) in events().iter().zip(receipt(SIGNED).causal_events) {
        assert_eq!(event.event_id, id);
        assert_eq!(event.computed_id(), id);
    }
}

#[test]
fn the_chain_of_the_originals_events_is_the_receipts() {
    let receipt = receipt(SIGNED);
    let mut events = events();
    assert_eq!(
        Some(chain_hash(&events)),
        receipt.causal_chain_hash,
        "in the order of the receipt"
    );
    events.reverse();
    assert_ne!(Some(chain_hash(&events)), receipt.causal_chain_hash);
}

#[test]
fn the_events_of_the_last_release_are_their_contents_and_make_its_chains() {
    for name in [
        "failed_signed",
        "passed_signed",
        "passed_unsigned",
        "wrapped_signed",
    ] {
        let receipt = receipt(&format!("v0.4.0/{name}.yaml"));
        let ids = receipt.causal_events.iter();
        let events = ids.map(|id| event(&format!("v0.4.0/ledger/{id}.json")));
        let events: Vec<Event> = events.collect();
        for (event, id) in events.iter().zip(&receipt.causal_events) {
            assert_eq!(event.computed_id(), *id, "{name}");
        }
        assert_eq!(
            Some(chain_hash(&events)),
            receipt.causal_chain_hash,
            "{name}"
        );
    }
}

#[test]
fn one_event_is_its_own_chain() {
    let event = events().remove(0);
    assert_eq!(chain_hash([&event]), event.event_id);
}

#[test]
fn a31_a_change_of_any_covered_field_gives_another_id_and_another_chain() {
    let original = read(&sample()).unwrap();
    let covered = [
        ("step_name", json!("other")),
        ("causal_parents", json!([])),
        ("causal_parents", json!([original.event_id])),
        ("input_hash", json!("0")),
        ("output_hash", json!("0")),
        ("timestamp", json!("2026-11-30T11:51:16.626730437Z")),
        ("exit_code", json!(1)),
        ("pipeline_hash", json!("0")),
        ("environment_hash", json!("0")),
    ];
    for (name, value) in covered {
        let mut changed = sample();
        changed[name] = value;
        let changed = read(&changed).unwrap();
        assert_ne!(changed.computed_id(), original.event_id, "{name}");
        assert_ne!(chain_hash([&changed]), chain_hash([&original]), "{name}");
        assert_ne!(changed.signing_bytes(), original.signing_bytes(), "{name}");
    }
    let mut changed = sample();
    changed["event_id"] = json!("0");
    let changed = read(&changed).unwrap();
    assert_eq!(changed.computed_id(), original.event_id);
    assert_ne!(changed.signing_bytes(), original.signing_bytes());
}

#[test]
fn a31_an_event_that_is_dropped_repeated_or_moved_gives_another_chain() {
    let events = events();
    let chain = chain_hash(&events);
    for order in [&[0, 1][..], &[0, 1, 2, 2], &[1, 0, 2], &[]] {
        let other = order.iter().map(|index| &events[*index]);
        assert_ne!(chain_hash(other), chain, "{order:?}");
    }
}

#[test]
fn a31_parents_cannot_be_told_in_another_way() {
    let with = |parents: Value| {
        let mut event = sample();
        event["causal_parents"] = parents;
        read(&event).unwrap().computed_id()
    };
    assert_ne!(with(json!(["a", "b"])), with(json!(["ab"])));
    assert_ne!(with(json!(["a", "b"])), with(json!(["b", "a"])));
    assert_ne!(with(json!(["a\n6:parent:1:b"])), with(json!(["a", "b"])));
    assert_ne!(with(json!([])), with(json!([""])));
}

#[test]
fn the_signing_bytes_are_sorted_compact_json_with_the_offset_spelled() {
    let event = read(&sample()).unwrap();
    let text = String::from_utf8(event.signing_bytes()).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    // A map of JSON values is sorted by key and written without white space.
    assert_eq!(value.to_string(), text);
    assert_eq!(value["timestamp"], json!(event.timestamp.with_offset()));
    assert_eq!(
        value["timestamp"]
            .as_str()
            .map(|time| time.ends_with("+00:00")),
        Some(true)
    );
    let names: Vec<&String> = value.as_object().unwrap().keys().collect();
    assert_eq!(
        names,
        [
            "causal_parents",
            "environment_hash",
            "event_id",
            "exit_code",
            "input_hash",
            "output_hash",
            "pipeline_hash",
            "step_name",
            "timestamp"
        ]
    );
}

#[test]
fn the_environment_of_the_originals_events_is_known() {
    for event in events() {
        assert_eq!(
            event.environment_hash,
            environment_hash("linux", "x86_64", "false")
        );
    }
    let wrapped = environment_hash("linux", "x86_64", "wrapped");
    assert_ne!(wrapped, environment_hash("linux", "x86_64", "true"));
}

#[test]
fn what_is_written_reads_back() {
    for event in events() {
        let written = serde_json::to_vec_pretty(&event).unwrap();
        assert_eq!(Event::read(&written).unwrap(), event);
    }
}

#[test]
fn unknown_fields_are_passed_over_and_nothing_else_is() {
    let original = read(&sample()).unwrap();
    let mut more = sample();
    more["later"] = json!({"a": [1, null]});
    assert_eq!(read(&more).unwrap(), original);
    for name in ["signer_public_key", "signature"] {
        let mut without = sample();
        without.as_object_mut().unwrap().remove(name);
        let mut null = sample();
        null[name] = json!(null);
        assert_eq!(read(&without).unwrap(), read(&null).unwrap());
    }
    for name in sample().as_object().unwrap().keys() {
        let optional = ["signer_public_key", "signature"].contains(&name.as_str());
        let mut without = sample();
        without.as_object_mut().unwrap().remove(name);
        assert_eq!(read(&without).is_ok(), optional, "{name}");
        for wrong in [json!(true), json!(1.5), json!([1]), json!({"a": 1})] {
            let mut changed = sample();
            changed[name] = wrong.clone();
            assert!(read(&changed).is_err(), "{name} = {wrong}");
        }
    }
}

#[test]
fn other_spellings_are_refused() {
    let text = sample().to_string();
    for (from, to) in [
        ("\"exit_code\":0", "\"exit_code\":0.0"),
        ("\"exit_code\":0", "\"exit_code\":2147483648"),
        ("\"exit_code\":0", "\"exit_code\":0,\"exit_code\":0"),
        ("\"exit_code\":0", "\"exit_code\":0,\"\\u0065xit_code\":0"),
        ("Z\"", "+00:00\""),
        ("{", "{,"),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text);
        assert!(Event::read(changed.as_bytes()).is_err(), "{to}");
    }
    assert!(Event::read(format!("{text}{text}").as_bytes()).is_err());
    assert!(Event::read(b"[]").is_err());
    assert!(Event::read(&vec![b' '; ledger::MAX_BYTES + 1]).is_err());
}
