//! What a process that was killed leaves: it counts for nothing and is in nobody's way.

use std::fs;
use std::path::Path;

use attest_verify::trust::Trust;
use keys::{KeysError, load_trust};
use stamp_authority::Ca;

use crate::support::{Workspace, chmod, name, time, words};

const LEFT: &str = ".safe-fs-0123456789abcdef.tmp";

fn leave(folders: &[&Path]) {
    for folder in folders {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join(LEFT), "version = 1\n").unwrap();
    }
}

#[test]
fn the_next_change_sweeps_temporary_files() {
    let workspace = Workspace::new();
    let id = workspace.generate();
    let (trust, keys) = (workspace.trust.path(), workspace.keys.path());
    let authorities = trust.join("tsa");
    let before = workspace.files();
    fs::create_dir(&authorities).unwrap();

    leave(&[trust, keys, &authorities]);
    workspace.trust.list(&workspace.keys).unwrap();
    workspace.keys.signer(&workspace.trust, None).unwrap();
    assert_eq!(
        workspace.files().len(),
        before.len() + 3,
        "readers write nothing"
    );
    let second = workspace.generate();
    assert_eq!(workspace.files().len(), before.len() + 2);
    leave(&[trust, &authorities]);
    // What somebody is writing at this moment stays.
    let living = fs_err::File::open(authorities.join(LEFT)).unwrap();
    living.lock().unwrap();
    workspace
        .trust
        .revoke(second.as_str(), time("2026-11-30T12:00:00Z"))
        .unwrap();
    assert_eq!(workspace.files().len(), before.len() + 3);
    drop(living);
    let file = workspace.path.join("ca.pem");
    fs::write(&file, Ca::honest("Acme").identity.pem).unwrap();
    workspace.trust.pin_authority(&file, "acme").unwrap();
    assert_eq!(workspace.files().len(), before.len() + 3);
    assert!(authorities.join("acme.crt").is_file());
    assert!(workspace.keys.holds(&id));
}

#[test]
fn git_passes_over_temporary_files_of_the_store() {
    let workspace = Workspace::new();
    let id = workspace.generate();
    let ignore = workspace.trust.path().join(".gitignore");
    // A store of before gets it with its next change, and what people wrote stays.
    fs::remove_file(&ignore).unwrap();
    workspace
        .trust
        .revoke(id.as_str(), time("2026-11-30T12:00:00Z"))
        .unwrap();
    assert_eq!(fs::read_to_string(&ignore).unwrap(), ".safe-fs-*.tmp\n");
    fs::write(&ignore, "# ours\n").unwrap();
    workspace.generate();
    assert_eq!(fs::read_to_string(&ignore).unwrap(), "# ours\n");
    let trust = load_trust(workspace.trust.path(), None);
    assert!(matches!(trust, Trust::Store(_)), "{trust:?}");
}

#[test]
fn keys_that_cannot_sign_leave_the_choice_to_the_one_that_can() {
    let workspace = Workspace::new();
    let (good, orphan, revoked) = (
        workspace.generate(),
        workspace.generate(),
        workspace.generate(),
    );
    workspace
        .trust
        .revoke(revoked.as_str(), time("2026-11-30T12:00:00Z"))
        .unwrap();
    let error = workspace.keys.signer(&workspace.trust, None).unwrap_err();
    let named = |id: &attest_verify::trust::KeyId| error.to_string().contains(id.as_str());
    assert!(matches!(error, KeysError::SeveralKeys { .. }), "{error}");
    assert!(
        named(&good) && named(&orphan) && !named(&revoked),
        "{error}"
    );

    // As a process leaves it that was killed before it wrote the policy.
    let policy = workspace.policy();
    let entry = format!("\n[[key]]\nid = \"{orphan}\"\nname = \"test\"\nstatus = \"trusted\"\n");
    assert!(policy.contains(&entry));
    workspace.write_policy(&policy.replace(&entry, ""));
    fs::write(
        workspace
            .keys
            .path()
            .join(format!("{}.key", "0".repeat(32))),
        "",
    )
    .unwrap();
    let signer = workspace.keys.signer(&workspace.trust, None).unwrap();
    assert_eq!((signer.key_id(), signer.passed_over()), (good, 3));
    let named = workspace
        .keys
        .signer(&workspace.trust, Some(good.as_str()))
        .unwrap();
    assert_eq!(named.passed_over(), 0);
    // The rules of the one key hold all the same.
    chmod(&workspace.key_file(&good), 0o640);
    let error = workspace.keys.signer(&workspace.trust, None).unwrap_err();
    assert!(words(&error).contains("chmod 600"), "{}", words(&error));

    fs::remove_file(workspace.key_file(&good)).unwrap();
    let text = words(&workspace.keys.signer(&workspace.trust, None).unwrap_err());
    assert!(
        text.starts_with("none of the 3 private keys in `"),
        "{text}"
    );
    assert!(text.ends_with("trust.toml`"), "{text}");
    let text = words(
        &workspace
            .keys
            .signer(&workspace.trust, Some(orphan.as_str()))
            .unwrap_err(),
    );
    assert!(text.contains("no entry in"), "{text}");
    workspace
        .keys
        .generate(&workspace.trust, &name("new"))
        .unwrap();
    assert!(workspace.keys.signer(&workspace.trust, None).is_ok());
}
