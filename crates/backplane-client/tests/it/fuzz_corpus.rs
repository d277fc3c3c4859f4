//! Replays the corpora of the fuzz targets.

use std::path::Path;

fn replay(name: &str, body: fn(&[u8])) {
    let folder = format!("{}/fuzz/corpus/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    for entry in Path::new(&folder).read_dir().unwrap() {
        body(&std::fs::read(entry.unwrap().path()).unwrap());
        seen += 1;
    }
    assert!(seen > 5, "{seen} specimens in {folder}");
}

#[test]
fn answers() {
    replay("answer", backplane_client::fuzz_entry::answer);
}

#[test]
fn texts() {
    replay("text", backplane_client::fuzz_entry::text);
}
