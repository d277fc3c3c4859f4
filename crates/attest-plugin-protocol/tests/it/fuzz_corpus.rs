//! Replays the corpora of the fuzz targets on the stable compiler.

use attest_plugin_protocol::fuzz_entry;

use crate::support::epoch;

fn replay(folder: &str, target: impl Fn(&[u8])) -> usize {
    let folder = format!("{}/fuzz/corpus/{folder}", env!("CARGO_MANIFEST_DIR"));
    let mut replayed = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        target(&std::fs::read(entry.unwrap().path()).unwrap());
        replayed += 1;
    }
    replayed
}

#[test]
fn fuzz_corpus_replays() {
    assert!(replay("host", |bytes| fuzz_entry::host(epoch(), bytes)) >= 15);
    assert!(replay("plugin", fuzz_entry::plugin) >= 11);
}
