//! Stores that hold together, and others.

use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{EncodePublicKey as _, PublicKeyBytes};

use super::*;

const POLICY: &str = "version = 1

[[key]]
id = \"0654120df44ec106cbbfaecdac064695\"
name = \"rel\"
status = \"trusted\"
";
const PEM: &str = "-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAbvNxS6IqN7mBnEb9zX3G4Zr3/90pTxm9nWoyqJcJ+K8=
-----END PUBLIC KEY-----
";
const OTHER_PEM: &str = "-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAnzqAPR9U5tzhtENdQFDXJ4kc4ftUNTUeYaJpsFP1n9g=
-----END PUBLIC KEY-----
";
const KEY_FILE: &str = "0654120df44ec106cbbfaecdac064695.pub";
const OTHER_FILE: &str = "210d73a940dd2eaac419746eadc087a5.pub";

fn store(files: &[(&str, &[u8])]) -> Result<TrustStore, TrustError> {
    let owned = files
        .iter()
        .map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec()));
    TrustStore::from_files(owned.collect())
}

/// An error with its causes, as people see it.
fn words(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

fn key() -> PublicKey {
    PublicKey::from_spki_pem(PEM).unwrap()
}

fn other() -> PublicKey {
    PublicKey::from_spki_pem(OTHER_PEM).unwrap()
}

#[test]
fn a16_only_an_entry_makes_a_key_trusted() {
    let found = store(&[
        (POLICY_FILE, POLICY.as_bytes()),
        (KEY_FILE, PEM.as_bytes()),
        (OTHER_FILE, OTHER_PEM.as_bytes()),
    ])
    .unwrap();
    let (name, id) = ("rel".to_owned(), key().key_id());
    assert_eq!(found.lookup(&key()), Standing::Trusted { name, id });
    assert_eq!(found.lookup(&other()), Standing::Unknown);
    assert_eq!(store(&[]).unwrap().lookup(&key()), Standing::Unknown);
    let without = store(&[(KEY_FILE, PEM.as_bytes())]).unwrap();
    assert_eq!(without.lookup(&key()), Standing::Unknown);
}

#[test]
fn a29_a_revoked_key_says_since_when() {
    let revoked = POLICY.replace("trusted", "revoked");
    let dated = format!("{revoked}revoked_at = \"2026-11-30T12:00:00Z\"\n");
    let at = "2026-11-30T12:00:00Z".parse().unwrap();
    for (policy, since) in [(revoked, None), (dated, Some(at))] {
        let found = store(&[(POLICY_FILE, policy.as_bytes()), (KEY_FILE, PEM.as_bytes())]).unwrap();
        let (name, id) = ("rel".to_owned(), key().key_id());
        assert_eq!(found.lookup(&key()), Standing::Revoked { name, id, since });
    }
}

#[test]
fn a17_a_key_file_holds_the_key_of_its_entry() {
    let error = store(&[
        (POLICY_FILE, POLICY.as_bytes()),
        (KEY_FILE, OTHER_PEM.as_bytes()),
    ]);
    let found = other().key_id();
    assert_eq!(
        error.unwrap_err(),
        TrustError::OtherKey {
            id: key().key_id(),
            found
        }
    );
    let error = store(&[
        (POLICY_FILE, POLICY.as_bytes()),
        (OTHER_FILE, PEM.as_bytes()),
    ]);
    assert_eq!(
        error.unwrap_err(),
        TrustError::MissingPublicKey { id: key().key_id() }
    );
}

#[test]
fn a15_a_weak_key_with_an_entry_refuses_the_store() {
    for (raw, says) in [
        ([0; 32], "small order"),
        (
            {
                let mut one = [0; 32];
                one[0] = 1;
                one
            },
            "identity",
        ),
    ] {
        let hash = blake3::hash(&raw).to_hex();
        let id = &hash[..32];
        let pem = PublicKeyBytes(raw)
            .to_public_key_pem(LineEnding::LF)
            .unwrap();
        let policy = POLICY.replace("0654120df44ec106cbbfaecdac064695", id);
        let file = format!("{id}.pub");
        let error = store(&[(POLICY_FILE, policy.as_bytes()), (&file, pem.as_bytes())]);
        let error = words(&error.unwrap_err());
        assert!(error.contains(says) && error.contains(&file), "{error}");
        // Without an entry nobody relies on it.
        assert!(store(&[(&file, pem.as_bytes())]).is_ok());
        // The old layout has no entries: there the file alone is trust.
        let error = words(&store(&[("loose", &raw)]).unwrap_err());
        assert!(error.contains(says) && error.contains("`loose`"), "{error}");
        assert_eq!(error.matches(says).count(), 1, "{error}");
        let digits = blake3::Hash::from_bytes(raw).to_hex();
        assert!(store(&[("loose", digits.as_bytes())]).is_err());
    }
}

#[test]
fn a_damaged_half_refuses_the_whole() {
    let private = PEM.replace("PUBLIC", "PRIVATE");
    for bytes in ["", "x", &PEM[10..], &private, &format!("{PEM}{private}")] {
        let error = store(&[
            (POLICY_FILE, POLICY.as_bytes()),
            (KEY_FILE, bytes.as_bytes()),
        ]);
        assert!(
            matches!(error, Err(TrustError::Key { .. })),
            "{bytes}: {error:?}"
        );
    }
    for bytes in [vec![0xff; 10], vec![b' '; TrustStore::PUBLIC_BYTES + 1]] {
        assert!(store(&[(POLICY_FILE, POLICY.as_bytes()), (KEY_FILE, &bytes)]).is_err());
    }
    assert!(store(&[(POLICY_FILE, b"\xff")]).is_err());
    assert!(store(&[(POLICY_FILE, b"version = 1\n[[key]]\n")]).is_err());
}

#[test]
fn loose_files_of_the_old_layout_are_trusted() {
    let raw = key().raw();
    let hex = key().hex();
    for bytes in [
        &raw[..],
        hex.as_bytes(),
        hex.to_uppercase().as_bytes(),
        format!(" {hex}\r\n").as_bytes(),
    ] {
        let found = store(&[("ci", bytes)]).unwrap();
        let (name, id) = ("ci".to_owned(), key().key_id());
        assert_eq!(found.lookup(&key()), Standing::Trusted { name, id });
        assert_eq!(found.lookup(&other()), Standing::Unknown);
    }
    // A policy decides, and so does a key file that nobody entered.
    let revoked = POLICY.replace("trusted", "revoked");
    let found = store(&[
        (POLICY_FILE, revoked.as_bytes()),
        (KEY_FILE, PEM.as_bytes()),
        ("ci", &raw),
    ])
    .unwrap();
    assert!(matches!(found.lookup(&key()), Standing::Revoked { .. }));
    let found = store(&[(KEY_FILE, PEM.as_bytes()), ("ci", &raw)]).unwrap();
    assert_eq!(found.lookup(&key()), Standing::Unknown);
}

#[test]
fn other_files_mean_nothing() {
    let raw = key().raw();
    // y = 2 is no point.
    let mut no_point = [0; 32];
    no_point[0] = 2;
    let long = format!("{}{}", key().hex(), " ".repeat(100));
    let found = store(&[
        (".hidden", &raw),
        ("bundles/ci", &raw),
        ("tsa/ci", &raw),
        ("no-point", &no_point),
        ("README", b"Whom we trust."),
        ("short", &raw[..31]),
        ("long", long.as_bytes()),
    ])
    .unwrap();
    assert_eq!(found.lookup(&key()), Standing::Unknown);
}

#[test]
fn authorities_are_kept_by_name() {
    let found = store(&[
        ("tsa/b.crt", b"2"),
        ("tsa/a.crt", b"1"),
        ("tsa/.x", b""),
        ("tsa/c/d", b""),
    ]);
    let names: Vec<(String, Vec<u8>)> = found
        .unwrap()
        .authorities()
        .iter()
        .map(|authority| (authority.file.clone(), authority.bytes.clone()))
        .collect();
    assert_eq!(
        names,
        [
            ("a.crt".to_owned(), b"1".to_vec()),
            ("b.crt".to_owned(), b"2".to_vec())
        ]
    );
}

#[test]
fn a_store_has_a_greatest_number_of_files() {
    let files = |count| {
        (0..count)
            .map(|number| (format!("{number}"), Vec::new()))
            .collect()
    };
    assert!(TrustStore::from_files(files(TrustStore::MAX_FILES)).is_ok());
    assert!(TrustStore::from_files(files(TrustStore::MAX_FILES + 1)).is_err());
}

#[test]
fn a_store_of_one_loose_key_trusts_that() {
    let found = TrustStore::of_loose_key(&key(), "public.key");
    assert!(matches!(found.lookup(&key()), Standing::Trusted { .. }));
    assert_eq!(found.lookup(&other()), Standing::Unknown);
}

#[test]
fn stores_of_the_original_load() {
    let vectors = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../attest-receipt/tests/vectors"
    );
    for folder in ["trust", "v0.1.0/trust", "v0.4.0/trust"] {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(format!("{vectors}/{folder}")).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            files.push((name, std::fs::read(entry.path()).unwrap()));
        }
        let public = files
            .iter()
            .find(|(name, _)| name.ends_with(".pub"))
            .unwrap();
        let key = PublicKey::from_spki_pem(std::str::from_utf8(&public.1).unwrap()).unwrap();
        assert_eq!(public.0, format!("{}.pub", key.key_id()));
        assert_eq!(public.1, key.to_spki_pem().as_bytes());
        let found = TrustStore::from_files(files).unwrap();
        assert!(
            matches!(found.lookup(&key), Standing::Trusted { .. }),
            "{folder}"
        );
        assert_eq!(found.policy().entries().len(), 1);
    }
}

#[test]
fn doubts_are_handed_on() {
    let told = store(&[("loose", b"")]).unwrap();
    assert!(told.doubts().is_empty());
    let told = told.doubted(vec!["a".to_owned()]);
    assert_eq!(told.doubts(), ["a"]);
}
