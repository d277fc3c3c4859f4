//! The trust store: listed, exported, imported, revoked, and read for verification.

use std::fs;
use std::os::unix::fs::symlink;

use attest_verify::trust::{PublicKey, Standing, Trust};
use keys::{KeyStatus, KeysError, Listing, Revocation, TrustDir, load_trust};
use stamp_authority::{Ca, Wanted};

use crate::support::{Workspace, mode, name, time, words};

const FOREIGN: &str = "-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAnzqAPR9U5tzhtENdQFDXJ4kc4ftUNTUeYaJpsFP1n9g=
-----END PUBLIC KEY-----
";
const FOREIGN_ID: &str = "210d73a940dd2eaac419746eadc087a5";

fn foreign() -> PublicKey {
    PublicKey::from_spki_pem(FOREIGN).unwrap()
}

fn standing(trust: &Trust, key: &PublicKey) -> Standing {
    match trust {
        Trust::Store(store) => store.lookup(key),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_key_travels_by_export_and_import() {
    let (own, other) = (Workspace::new(), Workspace::new());
    let id = own.generate();
    let pem = own.trust.export(id.as_str()).unwrap();
    assert!(!pem.contains("PRIVATE"));
    let file = own.path.join("key.pem");
    fs::write(&file, &pem).unwrap();
    let imported = other.trust.import(&file, &name("builder a")).unwrap();
    assert_eq!(
        (imported.id, imported.status, imported.added),
        (id, KeyStatus::Trusted, true)
    );
    let before = other.files();
    let again = other.trust.import(&file, &name("another name")).unwrap();
    assert_eq!(
        (again.id, again.status, again.added),
        (id, KeyStatus::Trusted, false)
    );
    assert_eq!(other.files(), before);
    assert_eq!(fs::read(other.public_file(&id)).unwrap(), pem.as_bytes());
    assert_eq!(mode(&other.public_file(&id)), 0o644);

    let signer = own.keys.signer(&own.trust, None).unwrap();
    let trust = load_trust(other.trust.path(), None);
    let expected = Standing::Trusted {
        name: "builder a".to_owned(),
        id,
    };
    assert_eq!(standing(&trust, signer.public()), expected);
    assert_eq!(
        other.trust.list(&other.keys).unwrap(),
        [Listing {
            id,
            name: "builder a".to_owned(),
            status: "trusted",
            revoked_at: None,
            private_key_present: false
        }]
    );
    assert!(own.trust.list(&own.keys).unwrap()[0].private_key_present);
}

#[test]
fn a29_a_revocation_keeps_its_first_date_and_deletes_nothing() {
    let workspace = Workspace::new();
    let id = workspace.generate();
    let files = workspace.files().len();
    let now = time("2026-11-30T12:00:00Z");
    assert_eq!(
        workspace.trust.revoke(id.as_str(), now).unwrap(),
        Revocation::Done
    );
    let policy = workspace.policy();
    assert!(
        policy.contains("revoked_at = \"2026-11-30T12:00:00Z\""),
        "{policy}"
    );
    let since = Some(now);
    let later = time("2026-12-24T12:00:00Z");
    let again = workspace.trust.revoke(id.as_str(), later).unwrap();
    assert_eq!(again, Revocation::Already { since });
    assert_eq!(workspace.policy(), policy);
    assert_eq!(workspace.files().len(), files);

    // Neither importing nor anything else here makes it good again.
    let file = workspace.path.join("key.pem");
    fs::write(&file, workspace.trust.export(id.as_str()).unwrap()).unwrap();
    let imported = workspace.trust.import(&file, &name("again")).unwrap();
    assert_eq!(
        (imported.status, imported.added),
        (KeyStatus::Revoked { since }, false)
    );
    assert_eq!(workspace.policy(), policy);
    let key = PublicKey::from_spki_pem(&fs::read_to_string(&file).unwrap()).unwrap();
    let trust = load_trust(workspace.trust.path(), Some(&workspace.keys));
    let expected = Standing::Revoked {
        name: "test".to_owned(),
        id,
        since,
    };
    assert_eq!(standing(&trust, &key), expected);
    let listed = &workspace.trust.list(&workspace.keys).unwrap()[0];
    assert_eq!((listed.status, listed.revoked_at), ("revoked", since));
}

#[test]
fn an_unknown_key_is_not_revoked_and_not_exported() {
    let workspace = Workspace::new();
    let now = time("2026-11-30T12:00:00Z");
    for id in ["0".repeat(32).as_str(), "nobody", "../trust", ""] {
        assert_eq!(
            workspace.trust.revoke(id, now).unwrap(),
            Revocation::Unknown
        );
        assert!(workspace.trust.export(id).is_err());
    }
    assert_eq!(workspace.files().len(), 0);
    assert!(!workspace.trust.path().exists(), "asking makes no store");
    let error = workspace.trust.export(&"0".repeat(32)).unwrap_err();
    assert_eq!(words(&error), format!("unknown key id: {}", "0".repeat(32)));
    workspace.generate();
    let before = workspace.files();
    assert_eq!(
        workspace.trust.revoke(FOREIGN_ID, now).unwrap(),
        Revocation::Unknown
    );
    assert_eq!(workspace.files(), before);
}

#[test]
fn only_a_public_key_is_imported() {
    let workspace = Workspace::new();
    let id = workspace.generate();
    let before = workspace.files();
    let file = workspace.path.join("key.pem");
    let private = fs::read_to_string(workspace.key_file(&id)).unwrap();
    let weak = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n-----END PUBLIC KEY-----\n";
    for (text, says) in [
        (private.clone(), "private key material"),
        (format!("{FOREIGN}{private}"), "private key material"),
        (format!("{private}{FOREIGN}"), "private key material"),
        (format!("{FOREIGN}{}", " ".repeat(20_000)), "longer than"),
        (weak.to_owned(), "weak"),
        (String::new(), "not an Ed25519 public key"),
    ] {
        fs::write(&file, text).unwrap();
        let error = workspace.trust.import(&file, &name("a")).unwrap_err();
        let text = words(&error);
        assert!(text.contains(says), "{text}");
        assert!(!text.contains("MFEC"), "{text}");
        assert_eq!(workspace.files(), before);
    }
    let raw = workspace.path.join("raw");
    for bytes in [&[0x30, 0x51][..], &[7; 32], &[0xff; 64]] {
        fs::write(&raw, bytes).unwrap();
        assert!(workspace.trust.import(&raw, &name("a")).is_err());
    }
    assert!(
        workspace
            .trust
            .import(&workspace.path.join("absent"), &name("a"))
            .is_err()
    );
    assert!(workspace.trust.import(&workspace.path, &name("a")).is_err());
    assert_eq!(workspace.files(), before);
}

#[test]
fn export_gives_a_public_key_and_nothing_else() {
    let workspace = Workspace::new();
    let id = workspace.generate();
    let public = workspace.public_file(&id);
    let pem = fs::read_to_string(&public).unwrap();
    fs::write(&public, format!("\n{}\n\n", pem.replace('\n', "\r\n"))).unwrap();
    assert_eq!(workspace.trust.export(id.as_str()).unwrap(), pem);
    let private = fs::read_to_string(workspace.key_file(&id)).unwrap();
    for text in [
        private.clone(),
        format!("{pem}{private}"),
        FOREIGN.to_owned(),
    ] {
        fs::write(&public, text).unwrap();
        let error = words(&workspace.trust.export(id.as_str()).unwrap_err());
        assert!(!error.contains("MFEC"), "{error}");
    }
    // A key without an entry can be looked at too.
    fs::write(
        workspace.trust.path().join(format!("{FOREIGN_ID}.pub")),
        FOREIGN,
    )
    .unwrap();
    assert_eq!(workspace.trust.export(FOREIGN_ID).unwrap(), FOREIGN);
}

#[test]
fn a_store_that_does_not_hold_together_is_used_for_nothing() {
    let workspace = Workspace::new();
    let id = workspace.generate();
    let policy = workspace.policy();
    let public = fs::read(workspace.public_file(&id)).unwrap();
    let file = workspace.path.join("key.pem");
    fs::write(&file, FOREIGN).unwrap();
    let now = time("2026-11-30T12:00:00Z");
    let damages: [&dyn Fn(); 4] = [
        &|| workspace.write_policy(&policy.replace("trusted", "compromised")),
        &|| workspace.write_policy(&policy.replace(id.as_str(), FOREIGN_ID)),
        &|| fs::write(workspace.public_file(&id), FOREIGN).unwrap(),
        &|| fs::remove_file(workspace.public_file(&id)).unwrap(),
    ];
    for damage in damages {
        damage();
        let before = workspace.files();
        for error in [
            workspace.trust.list(&workspace.keys).unwrap_err(),
            workspace
                .keys
                .generate(&workspace.trust, &name("b"))
                .unwrap_err(),
            workspace.keys.signer(&workspace.trust, None).unwrap_err(),
            workspace.trust.import(&file, &name("b")).unwrap_err(),
            workspace.trust.revoke(id.as_str(), now).unwrap_err(),
        ] {
            assert!(
                matches!(error, KeysError::Trust { .. }),
                "{}",
                words(&error)
            );
        }
        let trust = load_trust(workspace.trust.path(), Some(&workspace.keys));
        let Trust::Unreadable(text) = trust else {
            panic!("{trust:?}")
        };
        assert!(text.contains("trust policy"), "{text}");
        assert_eq!(workspace.files(), before);
        workspace.write_policy(&policy);
        fs::write(workspace.public_file(&id), &public).unwrap();
    }
    assert!(workspace.trust.list(&workspace.keys).is_ok());
}

#[test]
fn what_people_wrote_into_the_policy_stays() {
    let workspace = Workspace::new();
    let id = workspace.generate();
    let edited = format!(
        "# ours\nowner = 'a'\n{}ticket = 12 # why\n",
        workspace.policy()
    );
    workspace.write_policy(&edited);
    workspace
        .trust
        .revoke(id.as_str(), time("2026-11-30T12:00:00Z"))
        .unwrap();
    let second = workspace.generate();
    let policy = workspace.policy();
    for kept in [
        "# ours\n",
        "owner = 'a'\n",
        "ticket = 12 # why\n",
        second.as_str(),
    ] {
        assert!(policy.contains(kept), "{policy}");
    }
}

#[test]
fn an_authority_is_pinned_once_under_a_plain_name() {
    let workspace = Workspace::new();
    let file = workspace.path.join("ca.pem");
    let (acme, elsewhere) = (Ca::honest("Acme"), Ca::honest("Elsewhere"));
    let certificate = acme.identity.pem.as_str();
    fs::write(&file, certificate).unwrap();
    for name in ["", "a b", "a/b", "..", "a.b", "é", "a\n", &"n".repeat(65)] {
        let error = workspace.trust.pin_authority(&file, name).unwrap_err();
        assert!(matches!(error, KeysError::AuthorityName), "{name:?}");
    }
    assert!(!workspace.trust.path().exists());
    let pinned = workspace.trust.pin_authority(&file, "time_1-A").unwrap();
    assert_eq!(pinned.path, workspace.trust.path().join("tsa/time_1-A.crt"));
    assert_eq!(pinned.subjects, ["CN=Acme,O=Throwaway"]);
    assert_eq!(fs::read_to_string(&pinned.path).unwrap(), certificate);
    assert_eq!(mode(&pinned.path), 0o644);
    let other = workspace.path.join("ca.der");
    fs::write(&other, &elsewhere.identity.der).unwrap();
    let error = workspace
        .trust
        .pin_authority(&other, "time_1-A")
        .unwrap_err();
    assert!(
        words(&error).contains("exists already"),
        "{}",
        words(&error)
    );
    assert_eq!(fs::read_to_string(&pinned.path).unwrap(), certificate);
    workspace.trust.pin_authority(&other, "b").unwrap();
    let before = workspace.files();
    for text in [
        "",
        "text",
        &certificate.replace("CERTIFICATE", "PRIVATE KEY"),
        // The form of a certificate, and none.
        "-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----\n",
        // One that stamps cannot have issued one that does, even beside one that can.
        &acme.issue(&Wanted::stamper("S")).pem,
        &[certificate, &acme.issue(&Wanted::stamper("S")).pem].concat(),
        FOREIGN,
    ] {
        fs::write(&file, text).unwrap();
        assert!(workspace.trust.pin_authority(&file, "c").is_err(), "{text}");
    }
    assert_eq!(workspace.files(), before);

    // A dangling link is in the way as well.
    symlink(
        workspace.path.join("absent"),
        workspace.trust.path().join("tsa/d.crt"),
    )
    .unwrap();
    assert!(workspace.trust.pin_authority(&other, "d").is_err());
    let Trust::Store(store) = load_trust(workspace.trust.path(), None) else {
        panic!("a store")
    };
    let names: Vec<&str> = store
        .authorities()
        .iter()
        .map(|found| found.file.as_str())
        .collect();
    assert_eq!(names, ["b.crt", "time_1-A.crt"]);
}

#[test]
fn where_there_is_no_store_the_old_public_key_is_trusted() {
    let workspace = Workspace::new();
    let folder = workspace.trust.path();
    let absent = load_trust(folder, Some(&workspace.keys));
    let Trust::Absent { looked_in } = absent else {
        panic!("{absent:?}")
    };
    assert!(looked_in.ends_with(".attest/trust"), "{looked_in}");
    fs::create_dir_all(workspace.keys.path()).unwrap();
    let public = workspace.keys.path().join("public.key");
    fs::write(&public, foreign().raw()).unwrap();
    let trust = load_trust(folder, Some(&workspace.keys));
    assert!(matches!(
        standing(&trust, &foreign()),
        Standing::Trusted { .. }
    ));
    // Not for somebody who named a store, and not beside one.
    assert!(matches!(load_trust(folder, None), Trust::Absent { .. }));
    fs::create_dir_all(folder).unwrap();
    let trust = load_trust(folder, Some(&workspace.keys));
    assert_eq!(standing(&trust, &foreign()), Standing::Unknown);
    fs::remove_dir(folder).unwrap();

    fs::write(&public, [0; 32]).unwrap();
    let trust = load_trust(folder, Some(&workspace.keys));
    assert!(
        matches!(&trust, Trust::Unreadable(text) if text.contains("weak")),
        "{trust:?}"
    );
    fs::write(&public, [0; 33]).unwrap();
    assert!(matches!(
        load_trust(folder, Some(&workspace.keys)),
        Trust::Absent { .. }
    ));
}

#[test]
fn other_things_in_the_folder_are_passed_over() {
    let workspace = Workspace::new();
    let id = workspace.generate();
    let folder = workspace.trust.path();
    fs::create_dir(folder.join("bundles")).unwrap();
    fs::write(folder.join("bundles/raw"), foreign().raw()).unwrap();
    fs::write(folder.join(".hidden"), foreign().raw()).unwrap();
    fs::write(folder.join("README"), "x".repeat(1_000_000)).unwrap();
    symlink("absent", folder.join("dangling.pub")).unwrap();
    symlink("/dev/zero", folder.join("endless.pub")).unwrap();
    make_fifo(&folder.join("fifo"));
    fs::create_dir(folder.join("tsa")).unwrap();
    make_fifo(&folder.join("tsa/fifo.crt"));
    let trust = load_trust(folder, None);
    assert_eq!(standing(&trust, &foreign()), Standing::Unknown);
    assert_eq!(workspace.trust.list(&workspace.keys).unwrap()[0].id, id);
    fs::write(folder.join("raw"), foreign().raw()).unwrap();
    let trust = load_trust(folder, None);
    assert!(matches!(
        standing(&trust, &foreign()),
        Standing::Trusted { .. }
    ));
}

#[test]
fn a_store_in_another_place_is_read_and_changed_there() {
    let workspace = Workspace::new();
    let real = workspace.path.join("shared");
    fs::create_dir(&real).unwrap();
    symlink(&real, workspace.path.join("link")).unwrap();
    let trust = TrustDir::open(&workspace.path.join("link"));
    workspace.keys.generate(&trust, &name("a")).unwrap();
    assert!(real.join("trust.toml").is_file());
    // In a workspace the folder itself lies there: a checkout must not change other stores.
    fs::create_dir_all(workspace.path.join(".attest")).unwrap();
    symlink(&real, workspace.trust.path()).unwrap();
    let before = fs::read(real.join("trust.toml")).unwrap();
    let error = workspace
        .keys
        .generate(&workspace.trust, &name("b"))
        .unwrap_err();
    assert!(
        matches!(error, KeysError::LinkedFolder { .. }),
        "{}",
        words(&error)
    );
    assert_eq!(fs::read(real.join("trust.toml")).unwrap(), before);
}

fn make_fifo(path: &std::path::Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}
