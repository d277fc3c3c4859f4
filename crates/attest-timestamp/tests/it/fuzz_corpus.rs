//! Replays the corpora of the fuzz targets on the stable compiler.

use attest_timestamp::fuzz_entry;

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
fn fuzz_corpus_of_tokens_replays() {
    replay("token", fuzz_entry::token);
}

#[test]
fn fuzz_corpus_of_responses_replays() {
    replay("response", fuzz_entry::response);
}

#[test]
fn fuzz_corpus_of_certificates_replays() {
    replay("certificate", fuzz_entry::certificate);
}
