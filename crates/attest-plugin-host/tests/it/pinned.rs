//! Between the hash and the start everything is exchanged, and what was hashed runs.
//!
//! These files can be written by the user of the test, so they are held as copies. The same with
//! files in place is tested beside the code, which can be told how to hold a file.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use attest_plugin_host::executable::Held;
use attest_plugin_host::{Digest, Executable, Plugins, Strictness};

use crate::support::{FIXTURE, Scratch, marked, says};

/// What is written in one place, what is put there later, and the words for both.
fn programs() -> [(Vec<u8>, Vec<u8>, &'static str); 2] {
    let script = |says: &str| format!("#!/bin/sh\necho {says}\n").into_bytes();
    [
        (marked("first"), marked("second"), "mark"),
        (script("first"), script("second"), "ignored"),
    ]
}

#[tokio::test]
async fn a_rename_between_hash_and_start_loses() {
    for (first, second, word) in programs() {
        let scratch = Scratch::new();
        let path = scratch.program("plugin", &first);
        let held = Executable::open(&path).unwrap();
        std::fs::rename(scratch.program("other", &second), &path).unwrap();
        assert_eq!(says(&held, [word]).await, "first");
        let now = Executable::open(&path).unwrap();
        assert_eq!(says(&now, [word]).await, "second");
    }
}

#[tokio::test]
async fn a_write_in_place_between_hash_and_start_loses() {
    for (first, second, word) in programs() {
        let scratch = Scratch::new();
        let path = scratch.program("plugin", &first);
        let held = Executable::open(&path).unwrap();
        assert_eq!(held.held(), Held::Copy);
        std::fs::write(&path, &second).unwrap();
        assert_eq!(held.digest(), Digest::of(&first));
        assert_eq!(says(&held, [word]).await, "first");
        // Also once more, and after the file is gone.
        std::fs::remove_file(&path).unwrap();
        assert_eq!(says(&held, [word]).await, "first");
    }
}

#[tokio::test]
async fn a_link_turned_round_between_hash_and_start_loses() {
    for (first, second, word) in programs() {
        let scratch = Scratch::new();
        let real = scratch.program("first", &first);
        scratch.program("second", &second);
        let link = scratch.path("plugin");
        symlink("first", &link).unwrap();
        let held = Executable::open(&link).unwrap();
        assert_eq!(held.path(), real.canonicalize().unwrap());
        std::fs::remove_file(&link).unwrap();
        symlink("second", &link).unwrap();
        assert_eq!(says(&held, [word]).await, "first");
        let now = Executable::open(&link).unwrap();
        assert_eq!(says(&now, [word]).await, "second");
    }
}

#[tokio::test]
async fn a_program_has_no_descriptor_but_its_three() {
    let scratch = Scratch::new();
    let path = scratch.program("plugin", &marked("x"));
    let held = Executable::open(&path).unwrap();
    let _other = Executable::open(&path).unwrap();
    assert_eq!(says(&held, ["descriptors"]).await, "0 1 2");
}

/// A file of the system that only root can write stays in place, with another user's eyes.
#[test]
fn a_program_in_a_tree_of_root_runs_from_its_own_file() {
    let shell = Path::new("/bin/sh").canonicalize().unwrap();
    let of_root = |path: &Path| {
        let found = path.metadata().unwrap();
        found.uid() == 0 && found.permissions().mode() & 0o022 == 0
    };
    let certain = shell.ancestors().all(of_root);
    let scratch = Scratch::new();
    let mut child = as_user(&scratch, &["hold".as_ref(), shell.as_os_str()])
        .args(["-c", "readlink /proc/$$/exe"])
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut held = String::new();
    output.read_line(&mut held).unwrap();
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    let mut said = String::new();
    output.read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success(), "{held}{said}");
    match held.trim() {
        "InPlace" => assert_eq!(Path::new(said.trim()), shell),
        other => {
            assert!(!certain && other == "Copy", "{held}");
            assert!(said.contains("attest-plugin"), "{said}");
        }
    }
}

#[test]
fn a_program_that_can_be_run_but_not_read_is_refused() {
    let scratch = Scratch::new();
    let secret = scratch.program("secret", b"#!/bin/sh\n");
    std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o311)).unwrap();
    let child = as_user(&scratch, &["hold".as_ref(), secret.as_os_str()]).spawn();
    let output = child.unwrap().wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("may not be read by this user"), "{said}");
}

/// The fixture as a user who is not root, since root can read and write everything.
fn as_user(scratch: &Scratch, words: &[&OsStr]) -> Command {
    std::fs::set_permissions(scratch.path(""), PermissionsExt::from_mode(0o755)).unwrap();
    let fixture = scratch.program("fixture", &std::fs::read(FIXTURE).unwrap());
    #[expect(
        clippy::disallowed_methods,
        reason = "no host does what this test does"
    )]
    let mut command = Command::new(fixture);
    if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.uid(65534).gid(65534);
    }
    command.args(words).env("PATH", "/bin:/usr/bin");
    command
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

#[test]
fn another_digest_is_refused_and_both_are_named() {
    let scratch = Scratch::new();
    let path = scratch.program("plugin", b"#!/bin/sh\n");
    let held = Executable::open(&path).unwrap();
    let declared = |digest: &str, strictness| {
        let text = format!(
            "schema_version = 1\n[[plugin]]\nname = \"policy\"\ncommand = \"{}\"\ndigest = \"{digest}\"\n\
             protocol = \"1\"\nhooks = [\"step.pre\"]\ndeterministic = true\n",
            path.display()
        );
        Plugins::parse(&text, strictness).unwrap().plugins.remove(0)
    };
    let right = held.digest().to_string();
    assert_eq!(right, Digest::of(b"#!/bin/sh\n").to_string());
    assert_eq!(held.verify(&declared(&right, Strictness::Run)), Ok(()));
    let wrong = Digest::of(b"#!/bin/sh").to_string();
    let error = held.verify(&declared(&wrong, Strictness::Run)).unwrap_err();
    let text = error.to_string();
    for part in [&*wrong, &*right, "`policy`", "attest plugins pin policy"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let error = held.verify(&declared("", Strictness::Listing)).unwrap_err();
    assert_eq!(error.expected, None);
    assert!(error.to_string().contains(&right), "{error}");
}
