//! Replays the corpora of the fuzz targets on the stable compiler.

use attest_verify::fuzz_entry;

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
fn fuzz_corpus_of_policies_replays() {
    replay("policy", fuzz_entry::policy);
}

#[test]
fn fuzz_corpus_of_receipts_replays() {
    replay("receipt", fuzz_entry::receipt);
}
