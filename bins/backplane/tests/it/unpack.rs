//! `unpack`: all files of an archive, or none.

use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::json;

use crate::bed::{Bed, MANIFEST, ran, snapshot};

fn packed() -> Bed {
    let bed = Bed::with_package();
    bed.line("pack notes -o p.tar.gz").expect(0);
    bed
}

#[test]
fn files_and_modes_are_those_of_the_archive() {
    let bed = packed();
    let digest = bed.line("digest p.tar.gz").out.trim_end().to_owned();
    let ran = bed.line("unpack p.tar.gz -o out").expect(0);
    assert_eq!(
        ran.out,
        format!("into    out\ndigest  {digest}\nholds   5 files, 598 bytes\n")
    );
    assert_eq!(ran.err, "");
    bed.line("diff notes out").expect(0);
    let line = format!("unpack p.tar.gz -o two --digest {digest} --format json");
    let wanted =
        json!({"directory": "two", "artifact_digest": digest, "unpacked_bytes": 598, "files": 5});
    assert_eq!(bed.line(&line).expect(0).json(), wanted);
    assert_eq!(bed.names("."), ["notes", "out", "p.tar.gz", "two"]);
}

#[test]
fn modes_do_not_depend_on_the_umask() {
    let bed = packed();
    let script = format!(
        "umask 077; exec '{}' unpack p.tar.gz -o out",
        env!("CARGO_BIN_EXE_backplane")
    );
    ran(Command::new("sh")
        .args(["-c", &script])
        .current_dir(bed.folder()))
    .expect(0);
    assert_eq!(bed.mode_of("out/bin/notes"), 0o755);
    assert_eq!(bed.mode_of("out/plugin.json"), 0o644);
    assert_eq!(bed.mode_of("out"), 0o700);
}

#[test]
fn another_digest_unpacks_nothing() {
    let bed = packed();
    let other = format!("sha256:{}", "0".repeat(64));
    let ran = bed
        .backplane(&["unpack", "p.tar.gz", "-o", "out", "--digest", &other])
        .expect(1);
    ran.says("is another archive: its digest is sha256:");
    assert_eq!(bed.names("."), ["notes", "p.tar.gz"]);
}

#[test]
fn only_a_place_that_is_free_is_taken() {
    let bed = packed();
    std::fs::create_dir(bed.path("empty")).unwrap();
    bed.line("unpack p.tar.gz -o empty").expect(0);
    bed.line("diff notes empty").expect(0);
    bed.write("full/mine", "mine");
    symlink("full", bed.path("link")).unwrap();
    symlink("nowhere", bed.path("broken")).unwrap();
    let before = snapshot(bed.folder());
    for place in ["full", "link", "broken", "p.tar.gz", "full/", "notes/.."] {
        let ran = bed
            .backplane(&["unpack", "p.tar.gz", "-o", place])
            .expect(2);
        ran.says("hint: ");
        assert_eq!(snapshot(bed.folder()), before, "{place}");
    }
    std::fs::create_dir(bed.path("here")).unwrap();
    let mut inside = bed.program(&["unpack", "../p.tar.gz", "-o", "."]);
    ran(inside.current_dir(bed.path("here")))
        .expect(2)
        .says("the directory that you are in");
}

#[test]
fn an_archive_without_files_is_an_empty_directory() {
    let bed = Bed::new();
    bed.write("none.tar.gz", crate::build::gzip(&crate::build::tar(&[])));
    bed.line("unpack none.tar.gz -o out").expect(0);
    assert!(bed.names("out").is_empty());
}

#[test]
fn a_write_that_fails_leaves_nothing() {
    let bed = Bed::new();
    let big = "0123456789abcdef".repeat(1 << 12);
    bed.archive(
        "p.tar.gz",
        &[("a/first", "x"), ("b/big", &big), ("plugin.json", MANIFEST)],
    );
    let before = snapshot(bed.folder());
    let script = format!(
        "trap '' XFSZ; ulimit -f 4; exec '{}' unpack p.tar.gz -o out",
        env!("CARGO_BIN_EXE_backplane")
    );
    let ran = ran(Command::new("sh")
        .args(["-c", &script])
        .current_dir(bed.folder()));
    ran.expect(2)
        .says("error: `b/big` cannot be written")
        .says("File too large");
    assert_eq!(snapshot(bed.folder()), before);
}
