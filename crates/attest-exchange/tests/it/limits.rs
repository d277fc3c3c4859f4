//! Limits that are exactly met pass; one less fails, and is told from an archive that is wrong.

use attest_exchange::archive::{self, ArchiveError, Limit, Limits};

use crate::support::{Raw, ledgered};

#[track_caller]
fn limit_of(result: Result<archive::Archive, ArchiveError>) -> Limit {
    match result.unwrap_err() {
        ArchiveError::TooMuch { limit, .. } => limit,
        other => panic!("{other}"),
    }
}

#[test]
fn each_limit_is_met_exactly() {
    let raw = Raw::whole().end();
    let bytes = raw.zst();
    let entries = u64::try_from(ledgered("passed_signed.yaml").events.len()).unwrap() + 2;
    let longest = ledgered("passed_signed.yaml").bytes.len();
    let exact = Limits {
        archive: u64::try_from(bytes.len()).unwrap(),
        unpacked: u64::try_from(raw.0.len()).unwrap(),
        entries,
        entry: u64::try_from(longest).unwrap(),
    };
    archive::read(&bytes, &exact).unwrap();
    for (less, limit) in [
        (
            Limits {
                archive: exact.archive - 1,
                ..exact
            },
            Limit::Archive,
        ),
        (
            Limits {
                unpacked: exact.unpacked - 1,
                ..exact
            },
            Limit::Unpacked,
        ),
        (
            Limits {
                entries: exact.entries - 1,
                ..exact
            },
            Limit::Entries,
        ),
        (
            Limits {
                entry: exact.entry - 1,
                ..exact
            },
            Limit::Entry,
        ),
        (
            Limits {
                unpacked: 0,
                ..exact
            },
            Limit::Unpacked,
        ),
        (
            Limits {
                entries: 0,
                ..exact
            },
            Limit::Entries,
        ),
    ] {
        let result = archive::read(&bytes, &less);
        assert!(result.as_ref().is_err_and(ArchiveError::is_resource_limit));
        assert_eq!(limit_of(result), limit);
    }
}

#[test]
fn an_entry_that_claims_more_than_there_may_be_is_refused_by_its_header() {
    // Eight gibibytes, which nobody may allocate to find out that they are not there.
    let claims = |name: &str| {
        Raw::default().entry(name, b"", |header| {
            header[124..136].copy_from_slice(b"77777777777\0");
        })
    };
    assert_eq!(limit_of(claims("receipt.yaml").read()), Limit::Entry);
    let generous = Limits {
        entry: u64::MAX,
        unpacked: u64::MAX,
        ..Limits::default()
    };
    let read = |raw: &Raw| archive::read(&raw.zst(), &generous);
    assert_eq!(limit_of(read(&claims("receipt.yaml"))), Limit::Document);
    assert_eq!(limit_of(read(&claims("manifest.json"))), Limit::Document);
}

#[test]
fn a_receipt_of_the_greatest_length_travels() {
    // Longer than the window of zstd, so that it comes in pieces.
    let mut sample = ledgered("passed_signed.yaml");
    sample.bytes.resize(16 * 1024 * 1024, b'\n');
    let bytes = sample.archive();
    let archive = archive::read(&bytes, &Limits::default()).unwrap();
    assert_eq!(archive.receipt, sample.bytes);
    sample.bytes.push(b'\n');
    let parts = archive::Parts {
        bytes: &sample.bytes,
        receipt: &sample.receipt,
        events: &sample.events,
    };
    assert!(archive::write(&parts).unwrap_err().is_resource_limit());
}
