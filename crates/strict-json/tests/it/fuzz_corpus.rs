//! Replays the corpus of the fuzz target on the stable compiler.

#[test]
fn fuzz_corpus_replays() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/read");
    let mut replayed = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        strict_json::fuzz_entry::read(&std::fs::read(entry.unwrap().path()).unwrap());
        replayed += 1;
    }
    assert!(replayed >= 9, "{replayed} files");
}
