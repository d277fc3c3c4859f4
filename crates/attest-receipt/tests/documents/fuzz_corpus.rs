//! Replays the corpora of the fuzz targets on the stable compiler: whole, cut short everywhere,
//! and with a byte changed everywhere.

use std::fs;
use std::path::Path;

use attest_receipt::fuzz_entry;

fn replay(target: &str, least: usize, entry: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let mut replayed = 0;
    for file in fs::read_dir(folder.join(target)).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        entry(&bytes);
        for end in 0..bytes.len() {
            entry(&bytes[..end]);
            let mut changed = bytes.clone();
            changed[end] = b"\n\"{- :#x0"[end % 9];
            entry(&changed);
        }
        replayed += 1;
    }
    assert!(replayed >= least, "{replayed} files");
}

#[test]
fn the_corpus_of_receipts_replays() {
    replay("receipt", 6, fuzz_entry::receipt);
}

#[test]
fn the_corpus_of_events_replays() {
    replay("event", 4, fuzz_entry::event);
}

#[test]
fn the_corpus_of_pipelines_replays() {
    replay("pipeline", 6, fuzz_entry::pipeline);
}

#[test]
fn the_corpus_of_capsules_replays() {
    replay("capsule", 3, fuzz_entry::capsule);
}
