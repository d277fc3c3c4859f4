//! The bodies of the fuzz targets, shared with the test that replays their corpora.

use attest_receipt::time::Time;
use attest_verify::trust::{Trust, TrustStore};

use crate::archive::{self, Limits};
use crate::causal::Ledger;
use crate::import::{self, ImportOptions};

/// Small, so that a search for bombs finds them.
const LIMITS: Limits = Limits {
    archive: 1 << 20,
    unpacked: 1 << 20,
    entries: 64,
    entry: 1 << 19,
};

/// Reads arbitrary bytes as an archive; what is accepted keeps to the limits.
pub fn archive(bytes: &[u8]) {
    match archive::read(bytes, &LIMITS) {
        Ok(archive) => {
            assert!(archive.receipt.len() <= 1 << 19, "an entry's limit");
            assert!(archive.events.len() < 64, "the limit of entries");
            if let Ok(receipt) = attest_receipt::receipt::read(&archive.receipt) {
                drop(archive.linkage(&receipt));
            }
        }
        Err(error) => shown(&error.to_string()),
    }
}

/// Judges arbitrary bytes as an envelope, with nobody trusted: nothing passes.
pub fn envelope(bytes: &[u8]) {
    let trust = Trust::Store(TrustStore::default().into());
    let options = ImportOptions {
        trust: &trust,
        trust_statement_time: true,
        require: &[],
        delivered: None,
        now: Time::hermetic(),
    };
    match import::judge(bytes, &options) {
        Ok(imported) => {
            assert!(!imported.passed(), "nobody is trusted");
            imported.text_lines("s").iter().for_each(|line| shown(line));
        }
        Err(error) => shown(&error.to_string()),
    }
}

/// Adds arbitrary bytes to a ledger under the id that they claim.
pub fn ledger(bytes: &[u8]) {
    let Ok(event) = attest_receipt::ledger::Event::read(bytes) else {
        return;
    };
    let mut ledger = Ledger::default();
    if ledger.add(&event.event_id, bytes).is_ok() {
        assert_eq!(event.computed_id(), event.event_id, "a name that lies");
        assert_eq!(ledger.stats().total_events, 1);
    }
}

fn shown(line: &str) {
    assert!(!bounded::text::has_control_or_format(line), "{line:?}");
}
