//! Replays the corpus of the fuzz target on the stable compiler, whole and cut short everywhere.

use attest_receipt::fuzz_entry;

#[test]
fn fuzz_corpus_replays() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/document");
    let mut replayed = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        for end in 0..=bytes.len() {
            fuzz_entry::document(&bytes[..end]);
        }
        replayed += 1;
    }
    assert!(replayed >= 13, "{replayed} files");
}
