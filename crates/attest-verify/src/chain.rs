//! The causal chain behind a receipt: the events that it names are there, are what their ids say,
//! and give the root that was signed.

use std::collections::{BTreeMap, BTreeSet};

use attest_receipt::ledger::{Event, chain_hash};
use attest_receipt::receipt::Receipt;

use crate::outcome::{Check, CheckName};
use crate::signature::bytes_64;
use crate::trust::PublicKey;

const NAME: CheckName = CheckName::ChainLinkage;

/// Ids that are told one by one.
const TOLD: usize = 8;

/// Judges the events of a receipt.
///
/// `events` are those at hand by the id under which they were found. With `keys`, a signed event
/// is signed by one of them; without any, by whichever key it names. In a `partial` collection
/// missing events are no failure, and nothing is established either.
#[must_use]
pub fn linkage(
    receipt: &Receipt,
    events: &BTreeMap<String, Event>,
    keys: &[PublicKey],
    partial: bool,
) -> Check {
    let ids = &receipt.causal_events;
    if ids.is_empty() {
        return match &receipt.causal_chain_hash {
            None => Check::skipped(NAME, "receipt names no causal events"),
            Some(_) => Check::fail(NAME, "receipt has a chain root and names no causal events"),
        };
    }
    let unique: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    if unique.len() < ids.len() {
        return Check::fail(NAME, "receipt names a causal event twice");
    }
    let found: Vec<(&str, &Event)> = ids
        .iter()
        .filter_map(|id| events.get(id).map(|event| (id.as_str(), event)))
        .collect();
    // What is there is judged before what is missing, so that a partial collection hides nothing.
    if let Some(detail) = wrong_event(&found, &unique, keys) {
        return Check::fail(NAME, detail);
    }
    if found.len() < ids.len() {
        let missing = ids.iter().filter(|id| !events.contains_key(*id));
        let detail = format!("unresolved causal references: {}", told(missing));
        return if partial {
            Check::skipped(NAME, format!("partial archive: {detail}"))
        } else {
            Check::fail(NAME, detail)
        };
    }
    root(receipt, &found)
}

/// Returns what is wrong with one of the events that were found.
fn wrong_event(
    found: &[(&str, &Event)],
    named: &BTreeSet<&str>,
    keys: &[PublicKey],
) -> Option<String> {
    let forged = found
        .iter()
        .filter(|(id, event)| event.event_id != *id || event.computed_id() != *id)
        .map(|(id, _)| *id);
    if let Some(ids) = some_told(forged) {
        return Some(format!("events are not what their ids say: {ids}"));
    }
    let unsigned = found
        .iter()
        .filter(|(_, event)| !signature_holds(event, keys))
        .map(|(id, _)| *id);
    if let Some(ids) = some_told(unsigned) {
        return Some(format!("signatures of events do not hold: {ids}"));
    }
    let strangers = found
        .iter()
        .flat_map(|(_, event)| &event.causal_parents)
        .map(String::as_str)
        .filter(|parent| !named.contains(parent));
    some_told(strangers).map(|ids| format!("parents of events are not in the receipt: {ids}"))
}

/// Says why an event that was found under an id is not believed, whichever key signed it.
#[must_use]
pub fn event_problem(id: &str, event: &Event) -> Option<&'static str> {
    if event.event_id != id || event.computed_id() != id {
        Some("the event is not what its id says")
    } else if !signature_holds(event, &[]) {
        Some("the event's signature does not hold")
    } else {
        None
    }
}

/// An event without a signature has none that could fail. Early releases signed without naming the
/// key: nobody but that machine can judge those, and the id still binds the content.
fn signature_holds(event: &Event, keys: &[PublicKey]) -> bool {
    let (signature, key) = match (&event.signature, &event.signer_public_key) {
        (Some(signature), Some(key)) => (signature, key),
        (Some(_), None) | (None, None) => return true,
        (None, Some(_)) => return false,
    };
    let (Some(signature), Ok(key)) = (bytes_64(signature), PublicKey::from_hex(key)) else {
        return false;
    };
    (keys.is_empty() || keys.contains(&key))
        && key.verify_strict(&event.signing_bytes(), &signature)
}

fn root(receipt: &Receipt, found: &[(&str, &Event)]) -> Check {
    let computed = chain_hash(found.iter().map(|(_, event)| *event));
    match &receipt.causal_chain_hash {
        Some(root) if *root == computed => Check::pass(
            NAME,
            format!("{} event(s) give the signed chain root", found.len()),
        ),
        Some(root) => Check::fail(
            NAME,
            format!("events give the chain root {computed}, the receipt says {root}"),
        ),
        None => Check::fail(NAME, "receipt names causal events and no chain root"),
    }
}

fn some_told<'a>(ids: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut ids = ids.peekable();
    ids.peek()?;
    Some(told(ids))
}

fn told(ids: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut ids = ids.into_iter();
    let mut text = ids
        .by_ref()
        .take(TOLD)
        .map(|id| id.as_ref().to_owned())
        .collect::<Vec<_>>()
        .join(", ");
    let more = ids.count();
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}
