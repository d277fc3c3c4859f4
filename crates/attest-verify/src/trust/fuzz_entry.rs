//! The bodies of the fuzz targets of keys and trust, shared with the test that replays their corpora.

use attest_receipt::time::Time;
use bounded::text::has_control_or_format;

use super::certificate::certificates;
use super::file::{KeyStatus, Revocation, TrustFile};
use super::name::KeyName;
use super::public_key::{KeyId, PublicKey};
use super::store::{POLICY_FILE, Standing, TrustStore};

/// Reads a policy. One that is accepted can be changed and is read back with the same meaning.
///
/// # Panics
///
/// If that is not so.
pub fn trust_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let mut file = match TrustFile::parse(text) {
        Ok(file) => file,
        Err(error) => {
            let said = error.to_string();
            assert!(
                !has_control_or_format(&said) && said.len() < 2000,
                "{said:?}"
            );
            return;
        }
    };
    assert!(reads_back(&file), "what was read is written alike");
    let before = file.entries().to_vec();
    for entry in &before {
        let expected = match entry.status {
            KeyStatus::Trusted => Revocation::Done,
            KeyStatus::Revoked { since } => Revocation::Already { since },
        };
        assert_eq!(file.revoke(&entry.id, Time::hermetic()), expected);
    }
    assert!(reads_back(&file), "a revocation is written");
    let trusted = |file: &TrustFile| {
        let entries = file.entries().iter();
        entries
            .filter(|entry| entry.status == KeyStatus::Trusted)
            .count()
    };
    assert_eq!(trusted(&file), 0, "nobody is trusted after a revocation");
    let new = (
        KeyId::new("0123456789abcdef0123456789abcdef"),
        KeyName::new("new"),
    );
    if let (Ok(id), Ok(name)) = new
        && file.trust(id, &name) == Ok(true)
    {
        assert_eq!(trusted(&file), 1, "one key was added");
        assert!(reads_back(&file), "an entry is written");
    }
}

/// Reads a key, a certificate file and loose keys; what is accepted has one form.
///
/// # Panics
///
/// If that is not so.
pub fn key_file(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(key) = PublicKey::from_spki_pem(&text) {
        assert_eq!(
            PublicKey::from_spki_pem(&key.to_spki_pem()),
            Ok(key.clone())
        );
        assert_eq!(PublicKey::from_hex(&key.hex()), Ok(key.clone()));
        // Present, and nothing more.
        let file = (format!("{}.pub", key.key_id()), bytes.to_vec());
        let store = TrustStore::from_files(vec![file]);
        assert_eq!(store.map(|store| store.lookup(&key)), Ok(Standing::Unknown));
    }
    for certificate in certificates(bytes).into_iter().flatten() {
        assert_eq!(certificate.first(), Some(&0x30), "a sequence");
        assert_eq!(certificates(&certificate), Ok(vec![certificate]));
    }
    let loose = TrustStore::from_files(vec![("loose".to_owned(), bytes.to_vec())]);
    if let (Ok(store), Ok(raw)) = (loose, bytes.try_into())
        && let Ok(key) = PublicKey::from_raw(raw)
    {
        assert_ne!(store.lookup(&key), Standing::Unknown);
    }
    drop(TrustStore::from_files(vec![(
        POLICY_FILE.to_owned(),
        bytes.to_vec(),
    )]));
}

fn reads_back(file: &TrustFile) -> bool {
    TrustFile::parse(&file.to_toml()).is_ok_and(|read| read.entries() == file.entries())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn replay(folder: &str, target: fn(&[u8])) {
        let folder = format!("{}/fuzz/corpus/{folder}", env!("CARGO_MANIFEST_DIR"));
        let mut seen = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            target(&std::fs::read(entry.unwrap().path()).unwrap());
            seen += 1;
        }
        assert!(seen > 5, "{seen} files");
    }

    const POLICY: &str = include_str!("../../fuzz/corpus/trust_file/two");
    const KEY: &str = include_str!("../../fuzz/corpus/key_file/pem");

    proptest! {
        #[test]
        fn damaged_files_of_trust_are_refused_or_mean_one_thing(
            start in any::<prop::sample::Index>(),
            cut in 0_usize..12,
            put in r#"[\n "'\[\]\{\}=.,#a-f0-9\\-]{0,6}"#,
        ) {
            for (text, target) in [(POLICY, trust_file as fn(&[u8])), (KEY, key_file)] {
                let start = start.index(text.len());
                let end = text.len().min(start + cut);
                target(format!("{}{put}{}", &text[..start], &text[end..]).as_bytes());
            }
        }
    }

    #[test]
    fn fuzz_corpora_of_trust_replay() {
        replay("trust_file", trust_file);
        replay("key_file", key_file);
    }
}
