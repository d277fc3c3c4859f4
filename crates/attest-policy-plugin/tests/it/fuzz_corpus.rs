//! Replays the corpora of the fuzz targets on the stable compiler, as they are and changed.

use attest_policy_plugin::fuzz_entry;

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = format!("{}/fuzz/corpus/{name}", env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(folder).unwrap();
    let files: Vec<_> = files
        .map(|file| std::fs::read(file.unwrap().path()).unwrap())
        .collect();
    assert!(files.len() >= 4, "{} files", files.len());
    files
}

/// Feeds each file, each of its beginnings, and each file with one byte changed.
fn replay(name: &str, entry: fn(&[u8])) {
    for file in corpus(name) {
        entry(&file);
        for at in 0..file.len() {
            entry(&file[..at]);
            for byte in [b'"', b'*', b'9', 0xff] {
                let mut changed = file.clone();
                changed[at] = byte;
                entry(&changed);
            }
        }
    }
}

#[test]
fn fuzz_corpus_of_policies_replays() {
    replay("policy", fuzz_entry::policy);
}

#[test]
fn fuzz_corpus_of_receipts_replays() {
    replay("receipt", fuzz_entry::receipt);
}
