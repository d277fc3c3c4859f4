//! A disk without room, and a workspace that may not be written: an error, and nothing half done.

use std::fs::OpenOptions;
use std::process::Command;

use crate::bed::{Bed, Ran, ran, snapshot};
use crate::read_only::ReadOnly;

const UNSIGNED: &str = "r3_unsigned.yaml";

/// Runs the program where no file may have a byte.
pub(crate) fn without_room(bed: &Bed, args: &[&str]) -> Ran {
    let program = bed.program(args);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""])
        .arg(program.get_program())
        .args(program.get_args())
        .current_dir(bed.folder());
    ran(&mut shell)
}

#[test]
fn a_full_disk_leaves_the_receipt_unsigned_and_no_key() {
    let bed = Bed::with_vectors();
    bed.attest(&["keys", "generate", "--name", "ci"]).expect(0);
    let before = snapshot(bed.folder());
    for args in [
        &["sign", UNSIGNED][..],
        &["sign", UNSIGNED, "--output", "signed.yaml"],
        &["keys", "generate", "--name", "second"],
    ] {
        let ran = without_room(&bed, args).expect(2);
        assert!(ran.err.contains("File too large"), "{}", ran.err);
        assert_eq!(ran.out, "");
        assert_eq!(snapshot(bed.folder()), before, "{args:?}");
    }
    bed.attest(&["sign", UNSIGNED]).expect(0);
    bed.attest(&["verify", UNSIGNED]).expect(0);
}

#[test]
fn a_full_disk_revokes_no_key() {
    let bed = Bed::new();
    let id = bed
        .attest(&["keys", "generate", "--name", "ci"])
        .expect(0)
        .out;
    let before = snapshot(bed.folder());
    without_room(&bed, &["keys", "revoke", id.trim_end()]).expect(2);
    without_room(&bed, &["keys", "export", id.trim_end(), "-o", "ci.pem"]).expect(2);
    assert_eq!(snapshot(bed.folder()), before);
}

#[test]
fn a_verdict_that_nobody_can_read_is_no_pass() {
    let bed = Bed::with_vectors();
    let mut program = bed.program(&["verify", "--trust-store", "trust", "r6_wrapped.yaml"]);
    program.stdout(OpenOptions::new().write(true).open("/dev/full").unwrap());
    let output = program.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains("cannot write to standard output"), "{err}");
}

#[test]
fn a_workspace_that_is_read_only_is_verified_and_not_changed() {
    let bed = Bed::with_vectors();
    let id = bed
        .attest(&["keys", "generate", "--name", "ci"])
        .expect(0)
        .out;
    bed.attest(&["sign", UNSIGNED, "--output", "signed.yaml"])
        .expect(0);
    let before = snapshot(bed.folder());
    {
        let Some(_read_only) = ReadOnly::make(bed.folder()) else {
            return;
        };
        bed.attest(&["verify", "signed.yaml"]).expect(0);
        bed.attest(&["show", "signed.yaml"]).expect(0);
        bed.attest(&["keys", "list"]).expect(0);
        for args in [
            &["sign", UNSIGNED][..],
            &["keys", "generate", "--name", "second"],
            &["keys", "revoke", id.trim_end()],
        ] {
            let ran = bed.attest(args).expect(2);
            assert!(
                ReadOnly::TOLD.iter().any(|text| ran.err.contains(text)),
                "{}",
                ran.err
            );
            assert_eq!(ran.out, "");
        }
    }
    assert_eq!(snapshot(bed.folder()), before);
}
