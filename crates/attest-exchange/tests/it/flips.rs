//! Every byte of what travels, changed: refused, or nothing changed.

use attest_exchange::archive::{self, Archive, Limits};
use attest_exchange::import::{self, ImportOptions};
use attest_receipt::time::Time;
use attest_verify::{Options, Status};

use crate::support::{Raw, trust, vector};

fn now() -> Time {
    "2026-12-01T00:00:00Z".parse().unwrap()
}

/// Whether the archive with its receipt would be accepted.
fn passes(archive: &Archive) -> bool {
    let options = Options::new(now());
    let Ok(outcome) = attest_verify::verify(&archive.receipt, &trust(), &options, None) else {
        return false;
    };
    outcome.passed()
        && outcome
            .receipt
            .is_some_and(|receipt| archive.linkage(&receipt).status != Status::Fail)
}

/// What an event's id binds. Its metadata is under nobody's hash; and without the name of the key,
/// as early releases left it out, its signature is nobody's.
fn as_bound(mut archive: Archive) -> Archive {
    for event in archive.events.values_mut().flatten() {
        event.metadata.clear();
        event.signature = None;
        event.signer_public_key = None;
    }
    archive
}

#[test]
fn a_changed_byte_of_an_archive_is_refused_or_changes_nothing() {
    let good = vector("passed_signed.attest.tar.zst");
    let original = as_bound(archive::read(&good, &Limits::default()).unwrap());
    assert!(passes(&original));
    for at in 0..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 1 << (at % 8);
        if let Ok(found) = archive::read(&bytes, &Limits::default())
            && passes(&found)
        {
            let found = as_bound(found);
            assert_eq!(found.receipt, original.receipt, "byte {at}");
            assert_eq!(found.events, original.events, "byte {at}");
            // The one fact that nothing covers: saying that events are missing when they are
            // all there, which establishes less.
            assert!(found == original || found.partial, "byte {at}");
        }
    }
}

#[test]
fn a_changed_byte_inside_the_compression_is_refused_or_changes_nothing() {
    let raw = Raw::whole().end();
    let original = as_bound(raw.read().unwrap());
    for at in (0..raw.0.len()).step_by(17) {
        let mut changed = raw.clone();
        changed.0[at] ^= 0x20;
        if let Ok(found) = archive::read(&changed.zst(), &Limits::default())
            && passes(&found)
        {
            let found = as_bound(found);
            // White space and spelling of the receipt's YAML are not under the signature.
            assert_eq!(found.events, original.events, "byte {at}");
            let typed = |bytes: &[u8]| attest_receipt::receipt::read(bytes).unwrap();
            assert_eq!(typed(&found.receipt), typed(&original.receipt), "byte {at}");
        }
    }
}

#[test]
fn a_changed_byte_of_an_envelope_is_refused_or_is_outside_what_is_read() {
    let good = vector("passed_signed.intoto.json");
    let trust = trust();
    let options = ImportOptions {
        trust: &trust,
        trust_statement_time: false,
        require: &[],
        delivered: None,
        now: now(),
    };
    let original = import::judge(&good, &options).unwrap();
    assert!(original.passed());
    let mut accepted = 0;
    // No step of four, since base64 has groups of that length.
    for at in (0..good.len()).filter(|at| at % 17 == 0 || *at < 20 || *at + 120 > good.len()) {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        if let Ok(found) = import::judge(&bytes, &options)
            && found.passed()
        {
            accepted += 1;
            assert_eq!(found, original, "byte {at}");
        }
    }
    assert_eq!(accepted, 0, "nothing of an envelope is without a meaning");
}
