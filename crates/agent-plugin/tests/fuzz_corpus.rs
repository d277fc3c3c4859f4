//! Replays the corpora of the fuzz targets on the stable compiler: whole, cut short everywhere,
//! and with a byte changed everywhere.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::fs;
use std::path::Path;

use agent_plugin::fuzz_entry;
use proptest::collection::vec;
use proptest::prelude::*;

fn replay(name: &str, body: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let mut replayed = 0;
    for file in fs::read_dir(folder.join(name)).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        body(&bytes);
        for (at, byte) in bytes.iter().enumerate() {
            body(bytes.get(..at).unwrap());
            let mut changed = bytes.clone();
            *changed.get_mut(at).unwrap() = byte ^ (1 << (at % 8));
            body(&changed);
        }
        replayed += 1;
    }
    assert!(replayed > 10, "{replayed} specimens of {name}");
}

#[test]
fn the_corpus_of_manifests_replays() {
    replay("manifest", fuzz_entry::manifest);
}

#[test]
fn the_corpus_of_skills_replays() {
    replay("skill", fuzz_entry::skill);
}

#[test]
fn the_corpus_of_servers_replays() {
    replay("mcp", fuzz_entry::mcp);
}

proptest! {
    #[test]
    fn any_bytes_are_answered(bytes in vec(any::<u8>(), 0..300), text in "(---\n)?[\\[\\]{}\":,#&*!|>\\- \n\ta-c0-9.\\\\]{0,60}(\n---\n.?)?") {
        for body in [fuzz_entry::manifest, fuzz_entry::skill, fuzz_entry::mcp] {
            body(&bytes);
            body(text.as_bytes());
        }
    }
}
