//! The body of the fuzz target, shared with the test that replays its corpus.

use crate::signer::Signer;

/// Reads a private key. One that is accepted is written in the one form and signs.
///
/// # Panics
///
/// If that is not so.
pub fn private_key(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let Ok(signer) = Signer::from_pem(text) else {
        return;
    };
    let signature = signer.sign(bytes);
    assert!(signer.public().verify_strict(bytes, &signature), "it signs");
    let written = signer.to_pem().map(|pem| Signer::from_pem(&pem));
    let read = written.map(|read| read.map(|again| again.key_id()));
    assert!(
        matches!(read, Ok(Ok(id)) if id == signer.key_id()),
        "it is written"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuzz_corpus_of_private_keys_replays() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/private_key");
        let mut seen = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            private_key(&std::fs::read(entry.unwrap().path()).unwrap());
            seen += 1;
        }
        assert!(seen > 5, "{seen} files");
    }
}
