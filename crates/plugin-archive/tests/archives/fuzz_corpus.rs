//! Replays the corpora of the fuzz targets on the stable compiler: whole, cut short, and with a
//! byte changed.

use std::fs;
use std::path::Path;

use plugin_archive::fuzz_entry;

/// `step` is how far the places lie apart where something is cut or changed.
fn replay(name: &str, step: usize, body: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let mut replayed = 0;
    for file in fs::read_dir(folder.join(name)).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        body(&bytes);
        for at in (0..bytes.len()).step_by(step) {
            body(&bytes[..at]);
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            body(&changed);
        }
        replayed += 1;
    }
    assert!(replayed > 3, "{replayed} files of {name}");
}

#[test]
fn the_corpus_of_archives_replays() {
    replay("archive", 1, fuzz_entry::archive);
}

#[test]
fn the_corpus_of_streams_replays() {
    replay("stream", 13, fuzz_entry::stream);
}
