//! What the original tool made, judged here.

use std::collections::BTreeMap;

use attest_receipt::ledger::Event;
use attest_receipt::receipt;
use attest_verify::trust::{PublicKey, Trust};
use attest_verify::{CheckName, Status, chain, verify};

use crate::common::{
    SIGNED, check, fails, key, options, passes, public, store, vector, vector_trust, vectors,
};

#[test]
fn receipts_of_the_original_pass_with_their_keys() {
    for (file, folder) in SIGNED {
        let outcome = verify(&vector(file), &vector_trust(folder), &options(), None).unwrap();
        passes(&outcome);
        let statuses: Vec<_> = outcome.checks.iter().map(|check| check.status).collect();
        let (pass, skipped) = (Status::Pass, Status::Skipped);
        assert_eq!(statuses, [pass, pass, pass, skipped, skipped], "{file}");
        assert!(outcome.warnings.is_empty(), "{file}");
    }
}

#[test]
fn a16_receipts_of_the_original_fail_with_any_other_key() {
    let strangers = store(&key(), "status = \"trusted\"");
    for (file, folder) in SIGNED {
        let outcome = verify(&vector(file), &strangers, &options(), None).unwrap();
        fails(
            &outcome,
            CheckName::Signature,
            "valid signature but signed by untrusted key",
        );
        let text = std::fs::read_dir(vectors().join(folder))
            .unwrap()
            .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
            .find_map(|name| name.strip_suffix(".pub").map(str::to_owned))
            .unwrap();
        let detail = &check(&outcome, CheckName::Signature).detail;
        assert!(detail.ends_with(&text), "{detail}");
        assert_eq!(outcome.signed_by, None);
    }
}

#[test]
fn an_unsigned_receipt_of_the_original_is_told_to_be_unsigned() {
    let outcome = verify(
        &vector("r3_unsigned.yaml"),
        &vector_trust("trust"),
        &options(),
        None,
    )
    .unwrap();
    fails(&outcome, CheckName::Signature, "receipt is unsigned");
}

#[test]
fn without_a_trust_store_nothing_passes_and_the_place_is_named() {
    let trust = Trust::Absent {
        looked_in: "some/trust".to_owned(),
    };
    for (file, _) in SIGNED {
        let outcome = verify(&vector(file), &trust, &options(), None).unwrap();
        fails(&outcome, CheckName::Signature, "untrusted key");
        assert!(
            outcome.warnings.iter().any(|it| it.contains("some/trust")),
            "{:?}",
            outcome.warnings
        );
    }
    let trust = Trust::Unreadable("`x.pub` is damaged".to_owned());
    for (file, _) in SIGNED {
        let outcome = verify(&vector(file), &trust, &options(), None).unwrap();
        fails(
            &outcome,
            CheckName::Signature,
            "cannot load trust store: `x.pub` is damaged",
        );
    }
}

fn events() -> BTreeMap<String, Event> {
    std::fs::read_dir(vectors().join("ledger"))
        .unwrap()
        .map(|entry| {
            let event = Event::read(&std::fs::read(entry.unwrap().path()).unwrap()).unwrap();
            (event.event_id.clone(), event)
        })
        .collect()
}

#[test]
fn events_of_the_original_are_linked_to_their_receipt_and_their_signatures_hold() {
    let receipt = receipt::read(&vector("r1_pipeline_signed.yaml")).unwrap();
    let signer = PublicKey::from_hex(receipt.signer_public_key.as_deref().unwrap()).unwrap();
    let events = events();
    assert_eq!(events.len(), 3);
    for event in events.values() {
        let signature = attest_bytes(event.signature.as_deref().unwrap());
        assert_eq!(event.signer_public_key, receipt.signer_public_key);
        assert!(signer.verify_strict(&event.signing_bytes(), &signature));
    }
    for keys in [vec![], vec![signer]] {
        let check = chain::linkage(&receipt, &events, &keys, false);
        assert_eq!(check.status, Status::Pass, "{check:?}");
    }
    let stranger = chain::linkage(&receipt, &events, &[public(&key())], false);
    assert_eq!(stranger.status, Status::Fail, "{stranger:?}");
}

fn attest_bytes(hex: &str) -> [u8; 64] {
    let mut bytes = [0; 64];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap();
    }
    bytes
}
