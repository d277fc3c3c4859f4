//! Replays the corpus of the fuzz target on the stable compiler: whole, cut short and damaged.

use attest_receipt::fuzz_entry;
use proptest::prelude::*;

const FOLDERS: &[&str] = &[
    "fuzz/corpus/document",
    "tests/corpus/accept",
    "tests/corpus/reject",
];

/// Bytes that mean something, and some that nothing may contain.
const BYTES: &[u8] = b" \t\n\r#:'\"-+~0!&*|>[]{},?%\\<.a@\x00\x7f\xc2\x85\xe2\x80\xa8\xef\xbb\xbf";

fn corpus() -> std::io::Result<Vec<Vec<u8>>> {
    let mut corpus = Vec::new();
    for folder in FOLDERS {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension == "yaml") {
                corpus.push(std::fs::read(path)?);
            }
        }
    }
    Ok(corpus)
}

#[test]
fn fuzz_corpus_replays() {
    let corpus = corpus().unwrap();
    assert!(corpus.len() > 120, "{} files", corpus.len());
    for bytes in corpus {
        for end in 0..=bytes.len().min(400) {
            fuzz_entry::document(&bytes[..end]);
        }
        fuzz_entry::document(&bytes);
    }
}

/// One piece of damage: where, how many bytes go, and what comes.
fn damage() -> impl Strategy<Value = (prop::sample::Index, usize, Vec<u8>)> {
    let bytes = prop_oneof![
        4 => prop::collection::vec(prop::sample::select(BYTES), 0..3),
        1 => prop::collection::vec(any::<u8>(), 0..3),
    ];
    (any::<prop::sample::Index>(), 0..3_usize, bytes)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn damaged_documents(
        document in prop::sample::select(corpus().unwrap_or_default()),
        other in prop::sample::select(corpus().unwrap_or_default()),
        spliced in any::<bool>(),
        damages in prop::collection::vec(damage(), 1..6),
    ) {
        let mut document = document;
        if spliced {
            document.extend(other);
        }
        for (place, gone, come) in damages {
            let start = place.index(document.len() + 1);
            let end = document.len().min(start + gone);
            document.splice(start..end, come);
        }
        fuzz_entry::document(&document);
    }
}
