//! `pack` and `digest`.

use std::os::unix::fs::symlink;
use std::process::Stdio;

use serde_json::json;

use crate::bed::{Bed, MANIFEST, ran, snapshot};

#[test]
fn an_archive_and_what_is_said_of_it() {
    let bed = Bed::with_package();
    let ran = bed.line("pack notes -o p.tar.gz").expect(0);
    assert_eq!(ran.err, "");
    insta::with_settings!({filters => vec![("sha256:[0-9a-f]{64}", "sha256:…"), ("size .*", "size     …")]}, {
        insta::assert_snapshot!(ran.out, @r"
        name     acme-notes
        version  1.2.0
        archive  p.tar.gz
        digest   sha256:…
        size     …
        holds    5 files, 598 bytes
        ");
    });
    let digest = bed.line("digest p.tar.gz").expect(0).out;
    assert!(ran.out.contains(digest.trim_end()), "{}", ran.out);
    let again = bed
        .line("pack notes -o q.tar.gz --format json")
        .expect(0)
        .json();
    assert_eq!(bed.read("p.tar.gz"), bed.read("q.tar.gz"));
    let wanted = json!({
        "file": "q.tar.gz",
        "name": "acme-notes",
        "version": "1.2.0",
        "artifact_digest": digest.trim_end(),
        "artifact_bytes": bed.read("q.tar.gz").len(),
        "unpacked_bytes": 598,
        "files": 5
    });
    assert_eq!(again, wanted);
}

#[test]
fn the_digest_of_any_file_is_over_its_bytes() {
    let bed = Bed::new();
    bed.write("abc", "abc");
    let ran = bed.line("digest abc").expect(0);
    let wanted = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(ran.out, format!("{wanted}\n"));
    assert_eq!(
        bed.line("digest abc --format json").expect(0).json()["artifact_digest"],
        wanted
    );
    // one byte more than an archive may have, none of them on the disk
    let file = fs_err::File::create(bed.path("big")).unwrap();
    file.set_len(33_554_433).unwrap();
    bed.line("digest big")
        .expect(1)
        .says("max_archive_bytes allows, which is 33554432");
}

#[test]
fn standard_output_gets_the_archive_and_nothing_else() {
    let bed = Bed::with_package();
    bed.line("pack notes -o p.tar.gz").expect(0);
    let output = bed
        .program(&["pack", "notes", "-o", "-"])
        .stderr(Stdio::null())
        .output();
    assert_eq!(output.unwrap().stdout, bed.read("p.tar.gz"));
}

#[test]
fn a_rejected_package_is_not_packed() {
    let bed = Bed::new();
    bed.write("bad/plugin.json", r#"{"name": "bad"}"#);
    bed.write("x.tar.gz", "mine");
    let before = snapshot(bed.folder());
    let ran = bed.line("pack bad -o x.tar.gz").expect(1);
    assert_eq!(ran.out, "");
    let ran = ran.says("plugin.json: ").says("(schema_missing)");
    ran.says("error: `bad` is rejected, and not packed\nhint: `backplane inspect bad`");
    bed.line("pack bad -o y.tar.gz --follow-links")
        .expect(1)
        .says("(schema_missing)");
    assert_eq!(snapshot(bed.folder()), before);
}

#[test]
fn an_error_in_a_part_is_said_and_packed() {
    let bed = Bed::with_package();
    bed.write("notes/skills/odd/SKILL.md", "no frontmatter");
    let ran = bed.line("pack notes -o p.tar.gz").expect(0);
    ran.says("skills/odd/SKILL.md")
        .says("(skill_frontmatter_missing)");
}

#[test]
fn of_many_findings_the_first_are_said() {
    let bed = Bed::with_package();
    for number in 0..27 {
        bed.write(
            &format!("notes/skills/odd-{number}/SKILL.md"),
            "no frontmatter",
        );
    }
    let ran = bed.line("pack notes -o p.tar.gz").expect(0);
    assert_eq!(ran.err.matches("(skill_frontmatter_missing)").count(), 20);
    ran.says("warning: and 7 more, which `backplane inspect` lists\n");
}

#[test]
fn links_and_special_files_are_refused_and_links_inside_can_be_followed() {
    let bed = Bed::with_package();
    symlink("bin/notes", bed.path("notes/start")).unwrap();
    let before = snapshot(bed.folder());
    bed.line("pack notes -o p.tar.gz")
        .expect(1)
        .says("`start` is a symbolic link")
        .says("--follow-links");
    assert_eq!(snapshot(bed.folder()), before);
    bed.line("pack notes -o p.tar.gz --follow-links").expect(0);
    bed.line("unpack p.tar.gz -o out").expect(0);
    assert_eq!(bed.read("out/start"), bed.read("notes/bin/notes"));
    assert_eq!(bed.mode_of("out/start"), 0o755);
    bed.line("diff notes p.tar.gz")
        .expect(2)
        .says("symbolic link");
    bed.line("diff notes p.tar.gz --follow-links").expect(0);
    // out of the package: left out, and told
    bed.write("secret", "canary-77");
    symlink("../secret", bed.path("notes/out")).unwrap();
    bed.line("pack notes -o q.tar.gz --follow-links")
        .expect(0)
        .says("(resource_escapes_root)");
    assert_eq!(bed.read("q.tar.gz"), bed.read("p.tar.gz"));
}

#[test]
fn modes_are_those_found_or_the_two_usual_ones() {
    let bed = Bed::with_package();
    bed.mode("notes/plugin.json", 0o4600);
    bed.mode("notes/bin/notes", 0o751);
    bed.line("pack notes -o p.tar.gz").expect(0);
    bed.line("unpack p.tar.gz -o out").expect(0);
    assert_eq!(bed.mode_of("out/plugin.json"), 0o600);
    assert_eq!(bed.mode_of("out/bin/notes"), 0o751);
    bed.line("pack notes -o q.tar.gz --normalize-modes")
        .expect(0);
    bed.line("unpack q.tar.gz -o two").expect(0);
    assert_eq!(bed.mode_of("two/plugin.json"), 0o644);
    assert_eq!(bed.mode_of("two/bin/notes"), 0o755);
    bed.line("diff notes q.tar.gz").expect(1);
    bed.line("diff notes q.tar.gz --normalize-modes").expect(0);
}

#[test]
fn the_archive_stays_out_of_the_package_by_whatever_way_it_is_named() {
    let bed = Bed::with_package();
    symlink("notes", bed.path("other")).unwrap();
    for path in ["notes/x.tar.gz", "other/bin/x.tar.gz", "notes/plugin.json"] {
        let ran = bed.backplane(&["pack", "notes", "-o", path]).expect(2);
        ran.says("lies in the directory that is packed");
    }
    assert_eq!(bed.read("notes/plugin.json"), MANIFEST.as_bytes());
    let mut inside = bed.program(&["pack", ".", "-o", "../up.tar.gz"]);
    ran(inside.current_dir(bed.path("notes"))).expect(0);
    bed.line("diff notes up.tar.gz").expect(0);
}

#[test]
fn an_archive_is_no_directory_to_make() {
    let bed = Bed::with_package();
    let before = bed.names(".");
    for output in ["new.tar.gz/", "new.tar.gz/."] {
        bed.backplane(&["pack", "notes", "-o", output])
            .expect(2)
            .says("it ends as that of a folder does; name a file");
    }
    assert_eq!(bed.names("."), before);
}
