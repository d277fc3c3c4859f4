//! Replays the corpora of the fuzz targets on the stable compiler.

use attest_exchange::fuzz_entry;

#[track_caller]
fn replay(name: &str, entry: fn(&[u8])) {
    let folder = format!("{}/fuzz/corpus/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut replayed = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        entry(&std::fs::read(file.unwrap().path()).unwrap());
        replayed += 1;
    }
    assert!(replayed >= 4, "{replayed} files");
}

#[test]
fn fuzz_corpus_of_archives_replays() {
    replay("archive", fuzz_entry::archive);
}

#[test]
fn fuzz_corpus_of_envelopes_replays() {
    replay("envelope", fuzz_entry::envelope);
}

#[test]
fn fuzz_corpus_of_ledgers_replays() {
    replay("ledger", fuzz_entry::ledger);
}
