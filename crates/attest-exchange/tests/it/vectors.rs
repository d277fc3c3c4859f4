//! What the original made, and what is made of the same receipts here.

use std::collections::BTreeMap;

use attest_exchange::archive::{self, Limits};
use attest_exchange::dsse::{self, Envelope};
use attest_exchange::import::{self, ImportOptions, Imported};
use attest_exchange::statement::{self, Carried};
use attest_receipt::receipt;
use attest_receipt::time::Time;
use attest_verify::{Options, Status};

use crate::support::{Key, ledgered, trust, vector};

#[test]
fn the_originals_archives_verify() {
    for name in ["passed_signed", "failed_signed"] {
        let bytes = vector(&format!("{name}.attest.tar.zst"));
        let archive = archive::read(&bytes, &Limits::default()).unwrap();
        assert_eq!(archive.receipt, vector(&format!("{name}.yaml")));
        let options = Options::new(now());
        let outcome = attest_verify::verify(&archive.receipt, &trust(), &options, None).unwrap();
        assert!(outcome.passed(), "{outcome:?}");
        let check = archive.linkage(&outcome.receipt.unwrap());
        assert_eq!(check.status, Status::Pass, "{check:?}");
        assert!(!archive.partial);
    }
}

#[test]
fn an_archive_made_here_holds_what_the_originals_does_and_is_made_alike_twice() {
    for name in ["passed_signed", "failed_signed"] {
        let sample = ledgered(&format!("{name}.yaml"));
        let ours = sample.archive();
        assert_eq!(ours, sample.archive());
        let read = |bytes: &[u8]| archive::read(bytes, &Limits::default()).unwrap();
        let theirs = vector(&format!("{name}.attest.tar.zst"));
        assert_eq!(read(&ours), read(&theirs));
    }
}

#[test]
fn the_originals_statements_import() {
    for name in ["passed_signed", "failed_signed"] {
        let imported = judge(&vector(&format!("{name}.intoto.json")));
        assert!(imported.passed(), "{imported:?}");
        let original = imported.original.as_ref().unwrap();
        assert_eq!(imported.envelope_signer, original.signed_by);
    }
}

#[test]
fn a_statement_made_here_is_the_originals_but_for_the_program_and_sha256() {
    let sample = ledgered("passed_signed.yaml");
    let trust = ["trust.toml", "c68b486a224b6cd4bd46184e50b5a83b.pub"]
        .map(|name| (name.to_owned(), vector(&format!("trust/{name}"))))
        .into();
    let mut carried = Carried {
        bytes: &sample.bytes,
        receipt: &sample.receipt,
        version: "0.4.0",
        trust: &trust,
        sha256: &BTreeMap::new(),
    };
    let theirs = Envelope::read(&vector("passed_signed.intoto.json")).unwrap();
    let theirs = String::from_utf8(theirs.payload).unwrap();
    let ours = String::from_utf8(statement::make(&carried).unwrap()).unwrap();
    let program = "\"name\":\"continuum-attest\"";
    assert!(theirs.contains(program));
    assert_eq!(ours, theirs.replace(program, "\"name\":\"attest\""));

    let sha256 = [("out/one.bin".to_owned(), "5".repeat(64))].into();
    carried.sha256 = &sha256;
    let ours = String::from_utf8(statement::make(&carried).unwrap()).unwrap();
    let both = format!(
        "\",\"sha256\":\"{}\"}},\"name\":\"out/one.bin\"}}]}}",
        "5".repeat(64)
    );
    assert!(ours.ends_with(&both), "{ours}");
}

#[test]
fn an_envelope_is_compact_with_sorted_keys_and_a_line_feed() {
    let key = Key::new(7);
    let bytes = dsse::write(b"{}", Some((key.id(), [0; 64])));
    let zeros = format!("{}==", "A".repeat(86));
    let expected = format!(
        "{{\"payload\":\"e30=\",\"payloadType\":\"application/vnd.in-toto+json\",\"signatures\":[{{\"keyid\":\"{}\",\"sig\":\"{zeros}\"}}]}}\n",
        key.id()
    );
    assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    let unsigned = dsse::write(b"{}", None);
    assert!(unsigned.ends_with(b"\"signatures\":[]}\n"));
}

#[test]
fn a_cached_run_without_its_files_gives_no_statement_that_binds_them() {
    // Of two steps that ran from the cache the original recorded no files.
    let bytes = vector("cached_signed.yaml");
    let receipt = receipt::read(&bytes).unwrap();
    let made = statement::make(&Carried {
        bytes: &bytes,
        receipt: &receipt,
        version: "1",
        trust: &BTreeMap::new(),
        sha256: &BTreeMap::new(),
    });
    let statement = String::from_utf8(made.unwrap()).unwrap();
    assert!(statement.contains("\"artifactBinding\":\"unavailable\""));
    assert!(statement.ends_with("\"subject\":[]}"));
}

fn judge(bytes: &[u8]) -> Imported {
    import::judge(
        bytes,
        &ImportOptions {
            trust: &trust(),
            trust_statement_time: false,
            require: &[],
            delivered: None,
            now: now(),
        },
    )
    .unwrap()
}

fn now() -> Time {
    "2026-12-01T00:00:00Z".parse().unwrap()
}
