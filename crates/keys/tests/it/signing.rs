//! Private keys: their files, which of them signs, and which are refused.

use std::fs;
use std::os::unix::fs::symlink;

use attest_verify::trust::PublicKey;
use keys::{KeyDir, KeysError, Signer};

use crate::support::{Workspace, chmod, is_root, mode, name, time, words};

/// The example of RFC 8410, section 10.3: without and with a public key (and an attribute).
const RFC_SEED: &str = "d4ee72dbf913584ad5b6d8f1f769f8ad3afe7c28cbf1d4fbe097a88f44755842";
const RFC_PUBLIC: &str = "19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1";
const RFC_SHORT: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC
-----END PRIVATE KEY-----
";
/// The form that is written: version 2 of RFC 5958, with the public key and nothing else.
const RFC_LONG: &str = "-----BEGIN PRIVATE KEY-----
MFECAQEwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC
gSEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=
-----END PRIVATE KEY-----
";

/// Puts a private key into the workspace by hand, and trusts it.
fn place(workspace: &Workspace, pem: &str) -> String {
    let public = PublicKey::from_hex(RFC_PUBLIC).unwrap();
    let id = public.key_id();
    fs::create_dir_all(workspace.keys.path()).unwrap();
    fs::write(workspace.key_file(&id), pem).unwrap();
    chmod(&workspace.key_file(&id), 0o600);
    let file = workspace.path.join("key.pem");
    fs::write(&file, public.to_spki_pem()).unwrap();
    workspace.trust.import(&file, &name("rfc")).unwrap();
    id.to_string()
}

fn refused(workspace: &Workspace, choice: Option<&str>) -> KeysError {
    workspace.keys.signer(&workspace.trust, choice).unwrap_err()
}

/// What is told also without opening a file, and in the same words.
fn refused_early(workspace: &Workspace, choice: Option<&str>) -> KeysError {
    let checked = workspace.keys.check_signer(&workspace.trust, choice);
    let (early, late) = (checked.unwrap_err(), refused(workspace, choice));
    assert_eq!(words(&early), words(&late));
    early
}

/// What only the bytes of the file tell.
fn refused_late(workspace: &Workspace) -> KeysError {
    let checked = workspace.keys.check_signer(&workspace.trust, None);
    checked.unwrap();
    refused(workspace, None)
}

#[test]
fn a_key_has_the_files_of_the_original() {
    let workspace = Workspace::new();
    let id = workspace.generate();
    assert_eq!(mode(&workspace.key_file(&id)), 0o600);
    assert_eq!(mode(workspace.keys.path()), 0o700);
    assert_eq!(mode(&workspace.public_file(&id)), 0o644);
    assert_eq!(mode(&workspace.trust.policy_path()), 0o644);
    assert_eq!(
        workspace.policy(),
        format!("version = 1\n\n[[key]]\nid = \"{id}\"\nname = \"test\"\nstatus = \"trusted\"\n")
    );
    let public = fs::read_to_string(workspace.public_file(&id)).unwrap();
    assert_eq!(PublicKey::from_spki_pem(&public).unwrap().key_id(), id);
    // What holds the private keys keeps itself out of a repository.
    let ignored = fs::read_to_string(workspace.keys.path().join(".gitignore")).unwrap();
    assert_eq!(ignored, "*\n");
    // What is committed keeps out what a killed writer may leave beside it.
    let ignored = fs::read_to_string(workspace.trust.path().join(".gitignore")).unwrap();
    assert_eq!(ignored, ".safe-fs-*.tmp\n");
    assert_eq!(workspace.files().len(), 5);
}

#[test]
fn a_private_key_is_written_as_rfc_5958_says() {
    let workspace = Workspace::new();
    let id = workspace.generate();
    let pem = fs::read_to_string(workspace.key_file(&id)).unwrap();
    let lines: Vec<&str> = pem.lines().collect();
    assert_eq!(lines.len(), 4, "{}", lines.len());
    assert_eq!(lines[0], "-----BEGIN PRIVATE KEY-----");
    assert_eq!(lines[3], "-----END PRIVATE KEY-----");
    assert!(pem.ends_with("-----\n"));
    let der = base64_of(&[lines[1], lines[2]].concat());
    assert_eq!(der.len(), 83);
    // SEQUENCE, version 1, the algorithm 1.3.101.112, the seed in one OCTET STRING within another.
    let head = [
        0x30, 0x51, 2, 1, 1, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20,
    ];
    assert_eq!(der[..16], head);
    // [1] with the public key as a BIT STRING.
    assert_eq!(der[48..51], [0x81, 0x21, 0]);
    let signer = workspace.keys.signer(&workspace.trust, None).unwrap();
    assert_eq!(der[51..], signer.public().raw());
    assert_eq!(signer.key_id(), id);
}

#[test]
fn keys_with_and_without_their_public_half_are_read() {
    for pem in [
        RFC_SHORT,
        RFC_LONG,
        RFC_SHORT.trim_end(),
        &RFC_LONG.replace('\n', "\r\n"),
    ] {
        let workspace = Workspace::new();
        let id = place(&workspace, pem);
        let signer = workspace.keys.signer(&workspace.trust, Some(&id)).unwrap();
        assert_eq!(signer.public().hex(), RFC_PUBLIC);
        let signature = signer.sign(b"message");
        assert!(signer.public().verify_strict(b"message", &signature));
        assert!(!signer.public().verify_strict(b"massage", &signature));
    }
}

#[test]
fn a_file_that_is_no_private_key_is_refused_without_a_byte_of_it() {
    let other_half = RFC_LONG
        .replace("GEzf6F", "GEzf7F")
        .replace("gSEAGb9ECWmEzf6F", "gSEAGb9ECWmEzf7F");
    let cut = RFC_LONG.replace("ZuE=\n", "\n");
    let two = format!("{RFC_SHORT}{RFC_LONG}");
    let public = RFC_LONG.replace("PRIVATE", "PUBLIC");
    for pem in [
        "",
        "MC4CAQAw",
        &other_half,
        &cut,
        &two,
        &public,
        &RFC_SHORT.replace("MC4C", "MC5C"),
    ] {
        let workspace = Workspace::new();
        place(&workspace, pem);
        let error = refused(&workspace, None);
        let text = format!("{} {error:?}", words(&error));
        assert!(matches!(error, KeysError::PrivateKey { .. }), "{text}");
        assert!(
            !text.contains("INTuctv5") && !text.contains("MC4"),
            "{text}"
        );
    }
}

#[test]
fn a_private_key_is_shown_by_nothing() {
    let workspace = Workspace::new();
    place(&workspace, RFC_LONG);
    let signer = workspace.keys.signer(&workspace.trust, None).unwrap();
    let text = format!("{signer:?} {signer:#?}");
    assert!(text.contains(&signer.key_id().to_string()), "{text}");
    for secret in [RFC_SEED, &RFC_SEED[..16], "212, 238", "INTuctv5"] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[test]
fn a_looser_mode_is_refused_and_not_repaired() {
    for loose in [0o640, 0o604, 0o660, 0o644, 0o700, 0o666] {
        let workspace = Workspace::new();
        let id = workspace.generate();
        chmod(&workspace.key_file(&id), loose);
        for choice in [None, Some(id.as_str())] {
            let text = words(&refused_early(&workspace, choice));
            let advice = format!("chmod 600 {}`", workspace.key_file(&id).display());
            assert!(text.ends_with(&advice), "{text}");
        }
        assert_eq!(mode(&workspace.key_file(&id)), loose);
    }
}

#[test]
fn a_link_and_another_owner_are_refused() {
    let workspace = Workspace::new();
    let id = workspace.generate();
    let (file, away) = (workspace.key_file(&id), workspace.path.join("away"));
    fs::rename(&file, &away).unwrap();
    symlink(&away, &file).unwrap();
    for choice in [None, Some(id.as_str())] {
        let text = words(&refused_early(&workspace, choice));
        assert!(text.contains("symbolic link"), "{text}");
    }
    fs::remove_file(&file).unwrap();
    fs::rename(&away, &file).unwrap();
    fs::hard_link(&file, &away).unwrap();
    assert!(words(&refused_early(&workspace, None)).contains("hard link"));
    fs::remove_file(&away).unwrap();
    if is_root() {
        std::os::unix::fs::chown(&file, Some(65_534), None).unwrap();
        let text = words(&refused_early(&workspace, None));
        assert!(text.contains("owned by user 65534"), "{text}");
    } else {
        println!("only root can give a file to another user; safe-fs has the rule itself");
    }
}

#[test]
fn of_many_keys_four_are_named_and_the_others_counted() {
    let workspace = Workspace::new();
    let mut ids: Vec<String> = (0..7).map(|_| workspace.generate().to_string()).collect();
    ids.sort();
    let expected = format!(
        "multiple private keys, use --key: {}, and 3 more",
        ids[..4].join(", ")
    );
    assert_eq!(words(&refused_early(&workspace, None)), expected);
}

#[test]
fn the_key_is_the_one_asked_for_or_the_only_one() {
    let workspace = Workspace::new();
    let text = words(&refused_early(&workspace, None));
    assert!(
        text.contains("no private key") && text.contains("attest keys generate"),
        "{text}"
    );
    let first = workspace.generate();
    assert_eq!(
        workspace
            .keys
            .signer(&workspace.trust, None)
            .unwrap()
            .key_id(),
        first
    );
    let second = workspace.generate();
    let mut ids = [first.to_string(), second.to_string()];
    ids.sort();
    assert_eq!(
        words(&refused_early(&workspace, None)),
        format!("multiple private keys, use --key: {}", ids.join(", "))
    );
    for id in [first, second] {
        let signer = workspace
            .keys
            .signer(&workspace.trust, Some(id.as_str()))
            .unwrap();
        assert_eq!(signer.key_id(), id);
    }
    let absent = "0".repeat(32);
    let text = words(&refused_early(&workspace, Some(&absent)));
    assert!(
        text.starts_with(&format!("no private key for id {absent} in `")),
        "{text}"
    );
    for text in [
        "../../../etc/x",
        "",
        "private",
        "\u{1b}[2J",
        &first.as_str().to_uppercase(),
    ] {
        let said = words(&refused_early(&workspace, Some(text)));
        assert!(said.contains("32 lowercase hexadecimal digits"), "{said}");
        assert!(!said.contains('\u{1b}'));
    }
    // A file of another tool can be no key of the policy.
    fs::remove_file(workspace.key_file(&second)).unwrap();
    fs::write(workspace.keys.path().join("release.key"), "x").unwrap();
    let signer = workspace.keys.signer(&workspace.trust, None).unwrap();
    assert_eq!((signer.key_id(), signer.passed_over()), (first, 1));
    workspace.keys.check_signer(&workspace.trust, None).unwrap();
    fs::remove_file(workspace.key_file(&first)).unwrap();
    let text = words(&refused_early(&workspace, None));
    assert!(text.contains("is not named by the id of a key"), "{text}");
}

#[test]
fn a16_a_revoked_or_unlisted_key_does_not_sign() {
    let workspace = Workspace::new();
    let id = workspace.generate();
    let now = time("2026-11-30T12:00:00Z");
    workspace.trust.revoke(id.as_str(), now).unwrap();
    for choice in [None, Some(id.as_str())] {
        assert_eq!(
            words(&refused_early(&workspace, choice)),
            format!(
                "key {id} is revoked (since 2026-11-30T12:00:00Z); a revoked key cannot sign new evidence"
            )
        );
    }
    let dateless = workspace.policy().replace("revoked_at", "#");
    workspace.write_policy(&dateless);
    assert_eq!(
        words(&refused_early(&workspace, None)),
        format!("key {id} is revoked; a revoked key cannot sign new evidence")
    );
    workspace.write_policy("version = 1\n");
    let text = words(&refused_early(&workspace, None));
    assert!(
        text.contains("has a private half but no entry in `"),
        "{text}"
    );
    fs::remove_file(workspace.trust.policy_path()).unwrap();
    assert!(matches!(
        refused_early(&workspace, None),
        KeysError::Unlisted { .. }
    ));
    workspace.write_policy("version = 2\n");
    assert!(matches!(
        refused_early(&workspace, None),
        KeysError::Trust { .. }
    ));
}

#[test]
fn a17_a_private_key_under_another_keys_name_does_not_sign() {
    let workspace = Workspace::new();
    let (first, second) = (workspace.generate(), workspace.generate());
    fs::rename(workspace.key_file(&second), workspace.key_file(&first)).unwrap();
    let text = words(&refused_late(&workspace));
    assert!(
        text.contains(&format!("holds key {second}, not the key its name claims")),
        "{text}"
    );
}

#[test]
fn keys_may_lie_elsewhere() {
    let workspace = Workspace::new();
    let outside = tempfile::tempdir().unwrap();
    let outside = outside.path().join("keys");
    for (chosen, place) in [
        ("", workspace.path.join(".attest/keys")),
        ("secret/keys", workspace.path.join("secret/keys")),
        (outside.to_str().unwrap(), outside.clone()),
    ] {
        let keys = workspace.with_keys_in(chosen);
        assert_eq!(keys.path(), place);
        let id = keys.generate(&workspace.trust, &name("a")).unwrap();
        assert_eq!(mode(&place.join(format!("{id}.key"))), 0o600);
        assert!(keys.holds(&id));
        assert_eq!(keys.signer(&workspace.trust, None).unwrap().key_id(), id);
    }
    // Whoever names a folder may mean it by a link, or from above.
    symlink(&outside, workspace.path.join("link")).unwrap();
    fs::create_dir(workspace.path.join("deep")).unwrap();
    for chosen in ["link", "deep/../link"] {
        assert!(
            workspace
                .with_keys_in(chosen)
                .signer(&workspace.trust, None)
                .is_ok()
        );
    }
}

#[test]
fn a_checkout_does_not_lead_to_the_keys_of_another_project() {
    let (own, other) = (Workspace::new(), Workspace::new());
    let id = own.generate();
    fs::create_dir(other.path.join(".attest")).unwrap();
    symlink(own.keys.path(), other.keys.path()).unwrap();
    let pem = fs::read(own.public_file(&id)).unwrap();
    other.write_policy(&own.policy());
    fs::write(other.public_file(&id), pem).unwrap();
    for choice in [None, Some(id.as_str())] {
        assert!(matches!(
            refused(&other, choice),
            KeysError::LinkedFolder { .. }
        ));
    }
    for error in [
        other.keys.generate(&other.trust, &name("a")).unwrap_err(),
        other.trust.list(&other.keys).unwrap_err(),
    ] {
        let text = words(&error);
        assert!(
            text.contains("name another place with ATTEST_KEYS_DIR"),
            "{text}"
        );
    }
    assert_eq!(other.policy(), own.policy());
    assert_eq!(fs::read_dir(other.trust.path()).unwrap().count(), 2);
}

fn loose_pair(workspace: &Workspace) -> PublicKey {
    let seed = bytes_of(RFC_SEED);
    let folder = workspace.keys.path();
    fs::create_dir_all(folder).unwrap();
    chmod(folder, 0o700);
    fs::write(folder.join("private.key"), seed).unwrap();
    chmod(&folder.join("private.key"), 0o600);
    fs::write(folder.join("public.key"), bytes_of(RFC_PUBLIC)).unwrap();
    PublicKey::from_hex(RFC_PUBLIC).unwrap()
}

fn signer_of(keys: &KeyDir, workspace: &Workspace) -> Result<Signer, KeysError> {
    keys.signer(&workspace.trust, None)
}

#[test]
fn the_pair_of_the_old_layout_signs_where_there_is_no_other() {
    let workspace = Workspace::new();
    let public = loose_pair(&workspace);
    let before = workspace.files();
    assert_eq!(
        signer_of(&workspace.keys, &workspace).unwrap().public(),
        &public
    );
    assert_eq!(workspace.files(), before, "signing writes nothing");
    // Asked for by its id it is not there: it has no name.
    let id = public.key_id().to_string();
    assert!(matches!(
        refused_early(&workspace, Some(&id)),
        KeysError::NoPrivateKey { .. }
    ));

    let private = workspace.keys.path().join("private.key");
    let other = workspace.keys.path().join("public.key");
    for (bytes, says) in [
        (vec![9; 32], "is not the private half"),
        (vec![9; 33], "is not the private half"),
    ] {
        fs::write(&other, bytes).unwrap();
        let text = words(&refused_late(&workspace));
        assert!(text.contains(says), "{text}");
    }
    fs::remove_file(&other).unwrap();
    assert!(signer_of(&workspace.keys, &workspace).is_ok());
    assert!(!other.exists());

    chmod(&private, 0o644);
    assert!(words(&refused_early(&workspace, None)).contains("chmod 600"));
    chmod(&private, 0o600);
    fs::write(&private, [1; 31]).unwrap();
    assert!(words(&refused_late(&workspace)).contains("32 bytes"));
    fs::remove_file(&private).unwrap();
    fs::write(&other, bytes_of(RFC_PUBLIC)).unwrap();
    assert!(matches!(
        refused_early(&workspace, None),
        KeysError::NoKeys { .. }
    ));
    assert!(!private.exists(), "no key is made that was not asked for");

    let id = workspace.generate();
    loose_pair(&workspace);
    assert_eq!(signer_of(&workspace.keys, &workspace).unwrap().key_id(), id);
}

#[test]
fn a_policy_that_revokes_the_old_pair_is_heeded() {
    let workspace = Workspace::new();
    let public = loose_pair(&workspace);
    let file = workspace.path.join("key.pem");
    fs::write(&file, public.to_spki_pem()).unwrap();
    let id = workspace.trust.import(&file, &name("old")).unwrap().id;
    assert!(signer_of(&workspace.keys, &workspace).is_ok());
    workspace
        .trust
        .revoke(id.as_str(), time("2026-11-30T12:00:00Z"))
        .unwrap();
    assert!(matches!(
        refused_early(&workspace, None),
        KeysError::Revoked { .. }
    ));
}

pub(crate) fn bytes_of(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// Decodes by the table, so that the writer is not judged by its own crate.
fn base64_of(text: &str) -> Vec<u8> {
    let table = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bits = Vec::new();
    for letter in text.bytes().filter(|letter| *letter != b'=') {
        let value = table.iter().position(|known| *known == letter).unwrap();
        bits.extend((0..6).rev().map(|bit| value >> bit & 1));
    }
    let whole = bits.chunks_exact(8);
    whole
        .map(|byte| {
            byte.iter()
                .fold(0, |sum, bit| sum << 1 | u8::try_from(*bit).unwrap())
        })
        .collect()
}
