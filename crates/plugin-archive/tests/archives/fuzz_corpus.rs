//! Replays the corpus of the fuzz target on the stable compiler: whole, cut short everywhere, and
//! with a byte changed everywhere.

use std::fs;
use std::path::Path;

use plugin_archive::fuzz_entry;

#[test]
fn the_corpus_of_archives_replays() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/archive");
    let mut replayed = 0;
    for file in fs::read_dir(folder).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        fuzz_entry::archive(&bytes);
        for end in 0..bytes.len() {
            fuzz_entry::archive(&bytes[..end]);
            let mut changed = bytes.clone();
            changed[end] ^= 1 << (end % 8);
            fuzz_entry::archive(&changed);
        }
        replayed += 1;
    }
    assert!(replayed >= 4, "{replayed} files");
}
