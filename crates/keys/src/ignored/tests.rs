//! What git itself says of the same folders is what counts.

use std::fs;
use std::process::Command;

use super::*;

/// A work tree with ignore files, and what is said of a folder in it.
fn exposed(files: &[(&str, &str)], folder: &str) -> bool {
    let place = tempfile::tempdir().unwrap();
    let top = fs::canonicalize(place.path()).unwrap();
    git(&top, &["init", "-q"]);
    fs::create_dir_all(top.join(folder)).unwrap();
    for (name, text) in files {
        fs::create_dir_all(top.join(name).parent().unwrap()).unwrap();
        fs::write(top.join(name), text).unwrap();
    }
    let said = exposed_in(&top.join(folder));
    assert!(said.as_ref().is_none_or(|said| *said == top), "{said:?}");
    let key = format!("{folder}/{}", str::from_utf8(KEY).unwrap());
    let ignored = git(&top, &["check-ignore", "-q", &key]);
    // On the safe side: nothing that git takes in is called ignored.
    assert!(said.is_some() || ignored, "{files:?}");
    said.is_some()
}

#[expect(clippy::disallowed_methods, reason = "the program that decides")]
fn git(folder: &Path, words: &[&str]) -> bool {
    let mut command = Command::new("git");
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    command
        .current_dir(folder)
        .args(words)
        .status()
        .unwrap()
        .success()
}

#[test]
fn folders_that_git_ignores_are_not_exposed() {
    for (file, text) in [
        (".gitignore", "/secret/keys/\n"),
        (".gitignore", "secret/keys"),
        (".gitignore", "secret/\n"),
        (".gitignore", "keys\n"),
        (".gitignore", "# x\n\nkeys   \n"),
        (".gitignore", "*.key\n"),
        (".gitignore", "**/keys/\n"),
        (".gitignore", "secret/**\n"),
        (".gitignore", "s?cr*t/\n"),
        (".gitignore", "sec\\ret/\n"),
        (".gitignore", "!keys\nkeys\n"),
        (".gitignore", "secret/\n!secret/keys/\n"),
        ("secret/.gitignore", "keys/\n"),
        ("secret/.gitignore", "/keys\n"),
        ("secret/keys/.gitignore", "*\n"),
        ("secret/keys/.gitignore", "/*\n"),
        (".git/info/exclude", "secret/\n"),
    ] {
        assert!(!exposed(&[(file, text)], "secret/keys"), "{file}: {text}");
    }
}

#[test]
fn others_are() {
    for (file, text) in [
        (".gitignore", ""),
        (".gitignore", "key\nsecre\n"),
        (".gitignore", "#keys\n"),
        (".gitignore", "/keys/\n"),
        (".gitignore", "keys/secret\n"),
        (".gitignore", "keys\n!keys\n"),
        (".gitignore", "secret/*.pem\n"),
        (".gitignore", "other/**/keys\n"),
        ("secret/.gitignore", "secret/keys\n"),
        ("secret/keys/.gitignore", "*\n!*.key\n"),
        ("secret/keys/.gitignore", "*/\n"),
        ("secret/other/.gitignore", "*\n"),
        // Not understood: once too often warned is better than not at all.
        (".gitignore", "[s]ecret/\n"),
        (".gitignore", "*.key\n![0-9]*.key\n"),
    ] {
        assert!(exposed(&[(file, text)], "secret/keys"), "{file}: {text}");
    }
    assert!(exposed(&[], "."));
}

#[test]
fn where_there_is_no_repository_nothing_is_exposed() {
    let place = tempfile::tempdir().unwrap();
    let folder = fs::canonicalize(place.path()).unwrap();
    assert_ne!(exposed_in(&folder), Some(folder.clone()));
    fs::create_dir(folder.join(".git")).unwrap();
    assert_ne!(exposed_in(&folder), Some(folder.clone()));
    fs::remove_dir(folder.join(".git")).unwrap();
    // A work tree beside its repository has a file there.
    fs::write(folder.join(".git"), "gitdir: elsewhere\n").unwrap();
    assert_eq!(exposed_in(&folder), Some(folder.clone()));
    // What is in the repository's own folder is in no commit.
    fs::remove_file(folder.join(".git")).unwrap();
    fs::create_dir_all(folder.join(".git/keys")).unwrap();
    fs::write(folder.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    assert_eq!(exposed_in(&folder.join(".git/keys")), None);
}

#[test]
fn a_pattern_of_many_stars_takes_no_time() {
    let pattern = "**/a*".repeat(2000);
    let path = format!("{}/keys", "aab/".repeat(40).trim_end_matches('/'));
    assert!(exposed(&[(".gitignore", &pattern)], &path));
}
