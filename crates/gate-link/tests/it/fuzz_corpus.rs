//! Replays the fuzzer's corpus on the stable toolchain.

use std::path::Path;

use gate_link::fuzz_entry;

#[test]
fn the_corpus_breaks_nothing() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/decode");
    let mut replayed = 0;
    for entry in std::fs::read_dir(corpus).unwrap() {
        fuzz_entry::decode(&std::fs::read(entry.unwrap().path()).unwrap());
        replayed += 1;
    }
    assert!(replayed >= 20, "only {replayed} inputs");
}
