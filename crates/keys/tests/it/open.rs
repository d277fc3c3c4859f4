//! Folders that are open to others, links in their place, and things that are no files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use attest_verify::trust::Trust;
use keys::{KeysError, load_trust};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::support::{Workspace, chmod, is_root, name, time, words};

#[test]
fn a_folder_of_keys_that_others_can_write_to_signs_nothing() {
    let workspace = Workspace::new();
    let id = workspace.generate();
    let folder = workspace.keys.path();
    let before = workspace.files();
    for (mode, who) in [
        (0o770, "a whole group"),
        (0o720, "a whole group"),
        (0o702, "every user of this machine"),
        (0o777, "every user of this machine"),
        (0o1777, "every user of this machine"),
    ] {
        chmod(folder, mode);
        for error in [
            workspace.keys.signer(&workspace.trust, None).unwrap_err(),
            workspace
                .keys
                .signer(&workspace.trust, Some(id.as_str()))
                .unwrap_err(),
            workspace
                .keys
                .check_signer(&workspace.trust, None)
                .unwrap_err(),
            workspace
                .keys
                .generate(&workspace.trust, &name("b"))
                .unwrap_err(),
        ] {
            let text = words(&error);
            let advice = format!(
                "(mode {mode:04o}); correct it with `chmod go-w {}`",
                folder.display()
            );
            assert!(text.starts_with(who) && text.ends_with(&advice), "{text}");
        }
    }
    assert_eq!(workspace.files(), before);
    // Who can read the folder learns the ids, which are public.
    for mode in [0o755, 0o500, 0o700] {
        chmod(folder, mode);
        assert!(workspace.keys.signer(&workspace.trust, None).is_ok());
        workspace.keys.check_signer(&workspace.trust, None).unwrap();
    }
    if is_root() {
        std::os::unix::fs::chown(folder, Some(65_534), None).unwrap();
        let text = words(&workspace.keys.signer(&workspace.trust, None).unwrap_err());
        assert!(text.contains("owned by user 65534"), "{text}");
    }
}

#[test]
fn a_folder_that_is_made_keeps_itself_out_of_repositories() {
    let workspace = Workspace::new();
    git_init(&workspace.path);
    for chosen in ["secret/keys", "secret keys"] {
        let keys = workspace.with_keys_in(chosen);
        keys.generate(&workspace.trust, &name("a")).unwrap();
        let ignored = fs::read_to_string(keys.path().join(".gitignore")).unwrap();
        assert_eq!(ignored, "*\n");
        assert_eq!(keys.exposed_in(), None);
    }
    // So does one that somebody made for it.
    fs::create_dir(workspace.path.join("empty")).unwrap();
    let keys = workspace.with_keys_in("empty");
    keys.generate(&workspace.trust, &name("a")).unwrap();
    assert_eq!(keys.exposed_in(), None);
    // One in use is not changed.
    let used = workspace.path.join("used");
    fs::create_dir(&used).unwrap();
    fs::write(used.join("notes"), "").unwrap();
    let keys = workspace.with_keys_in("used");
    keys.generate(&workspace.trust, &name("a")).unwrap();
    assert!(!used.join(".gitignore").exists());
    assert_eq!(keys.exposed_in(), Some(workspace.path.clone()));
    fs::write(workspace.path.join(".gitignore"), "/used/\n").unwrap();
    assert_eq!(keys.exposed_in(), None);
}

fn git_init(folder: &Path) {
    fs::create_dir(folder.join(".git")).unwrap();
    fs::write(folder.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
}

#[test]
fn a_link_in_place_of_the_store_is_refused_in_the_same_words_by_all() {
    let (own, other) = (Workspace::new(), Workspace::new());
    let id = own.generate();
    fs::create_dir(other.path.join(".attest")).unwrap();
    symlink(own.trust.path(), other.trust.path()).unwrap();
    fs::create_dir(other.keys.path()).unwrap();
    chmod(other.keys.path(), 0o700);
    fs::copy(own.key_file(&id), other.key_file(&id)).unwrap();
    let file = own.public_file(&id);
    let before = own.files();
    for error in [
        other.trust.list(&other.keys).unwrap_err(),
        other.trust.load().unwrap_err(),
        other.trust.export(id.as_str()).unwrap_err(),
        other.trust.import(&file, &name("b")).unwrap_err(),
        other
            .trust
            .revoke(id.as_str(), time("2026-11-30T12:00:00Z"))
            .unwrap_err(),
        other.keys.generate(&other.trust, &name("b")).unwrap_err(),
        other.keys.signer(&other.trust, None).unwrap_err(),
    ] {
        assert_eq!(
            words(&error),
            format!(
                "`{}` is a symbolic link, which is not followed to the trust store of a workspace; put a folder there",
                other.trust.path().display()
            )
        );
    }
    assert_eq!(own.files(), before);
    // Who verifies is told; who names a store means it.
    assert_eq!(
        doubts(&load_trust(other.trust.path(), None)),
        Vec::<String>::new()
    );
    let told = doubts(&load_trust(other.trust.path(), Some(&other.keys)));
    assert!(
        told.len() == 1 && told[0].contains("is a symbolic link"),
        "{told:?}"
    );
    assert_eq!(
        doubts(&load_trust(own.trust.path(), Some(&own.keys))),
        Vec::<String>::new()
    );
}

#[test]
fn the_variable_is_no_advice_where_it_does_not_help() {
    let (own, other) = (Workspace::new(), Workspace::new());
    own.generate();
    symlink(own.path.join(".attest"), other.path.join(".attest")).unwrap();
    for error in [
        other.keys.signer(&other.trust, None).unwrap_err(),
        other.trust.list(&other.keys).unwrap_err(),
    ] {
        let text = words(&error);
        assert!(matches!(error, KeysError::LinkedFolder { .. }), "{text}");
        assert!(!text.contains("ATTEST_KEYS_DIR"), "{text}");
    }
}

fn doubts(trust: &Trust) -> Vec<String> {
    match trust {
        Trust::Store(store) => store.doubts().to_vec(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_store_that_everybody_can_write_to_is_doubted() {
    let workspace = Workspace::new();
    let id = workspace.generate();
    let (folder, policy) = (workspace.trust.path(), workspace.trust.policy_path());
    let authorities = folder.join("tsa");
    fs::create_dir(&authorities).unwrap();
    let certificate = authorities.join("a.crt");
    fs::write(&certificate, "x").unwrap();
    let loose = folder.join("loose");
    fs::write(&loose, "x").unwrap();
    for path in [folder, &policy, &authorities, &certificate, &loose] {
        let (usual, group) = if path.is_dir() {
            (0o755, 0o775)
        } else {
            (0o644, 0o664)
        };
        // Everything that is checked out with umask 002 is like that.
        for (mode, expected) in [(group, 0), (group | 2, 1), (usual, 0)] {
            chmod(path, mode);
            let told = doubts(&load_trust(folder, Some(&workspace.keys)));
            assert_eq!(told.len(), expected, "{mode:o} {told:?}");
            let advice = format!("correct it with `chmod o-w {}`", path.display());
            assert!(told.iter().all(|told| told.ends_with(&advice)), "{told:?}");
        }
    }
    // It can hold one key only, whoever writes to it.
    chmod(&workspace.public_file(&id), 0o666);
    assert_eq!(doubts(&load_trust(folder, None)).len(), 0);
    for path in [folder, &policy, &authorities, &certificate, &loose] {
        chmod(path, 0o777);
    }
    let told = doubts(&load_trust(folder, None));
    assert_eq!(told.len(), 4);
    assert_eq!(told[3], "and so it is with 2 more files");
}

#[test]
fn what_is_no_file_is_not_called_missing() {
    let workspace = Workspace::new();
    let id = workspace.generate();
    let file = workspace.public_file(&id);
    let refused = |says: &str| {
        let text = words(&workspace.trust.list(&workspace.keys).unwrap_err());
        let all = format!("`{id}.pub`, which an entry names, is {says}");
        assert!(text.ends_with(&all), "{text}");
    };
    fs::remove_file(&file).unwrap();
    refused("missing");
    mknodat(CWD, &file, FileType::Fifo, Mode::RUSR, 0).unwrap();
    refused("a FIFO, not a file");
    fs::remove_file(&file).unwrap();
    drop(std::os::unix::net::UnixListener::bind(&file).unwrap());
    refused("a socket, not a file");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    refused("a folder, not a file");
    fs::remove_dir(&file).unwrap();
    symlink("/dev/null", &file).unwrap();
    refused("a device, not a file");
    fs::remove_file(&file).unwrap();
    symlink("nowhere", &file).unwrap();
    refused("a symbolic link that leads nowhere, not a file");
}
