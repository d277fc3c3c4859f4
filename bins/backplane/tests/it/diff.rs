//! `diff`: what differs between two packages.

use crate::bed::Bed;

fn two() -> Bed {
    let bed = Bed::with_package();
    bed.line("pack notes -o p.tar.gz").expect(0);
    bed.line("unpack p.tar.gz -o new").expect(0);
    bed
}

#[test]
fn a_directory_its_archive_and_what_comes_out_of_it_are_the_same() {
    let bed = two();
    for line in ["diff notes p.tar.gz", "diff p.tar.gz new", "diff new notes"] {
        let ran = bed.line(line).expect(0);
        assert!(ran.out.ends_with("\nsame: 5 files\n"), "{}", ran.out);
    }
    let found = bed.line("diff notes new --format json").expect(0).json();
    assert_eq!(found["verdict"], "same");
    assert_eq!(found["files"].as_array().unwrap().len(), 0);
}

#[test]
fn every_difference_is_listed_by_file() {
    let bed = two();
    bed.write("new/added.txt", "x");
    std::fs::remove_file(bed.path("new/mcp.json")).unwrap();
    bed.write("new/skills/take-note/example.txt", "milk and bread\n");
    bed.write("new/bin/notes", "#!/bin/zz\n");
    bed.mode("new/plugin.json", 0o600);
    let ran = bed.line("diff p.tar.gz new").expect(1);
    insta::assert_snapshot!(ran.out, @r"
    a  p.tar.gz
    b  new

    added    added.txt
             1 byte, text, mode 0644

    changed  bin/notes
             10 bytes, as before, but others, text, mode 0755 -> 0644

    removed  mcp.json
             284 bytes, text, mode 0644

    changed  plugin.json
             mode 0644 -> 0600

    changed  skills/take-note/example.txt
             5 -> 15 bytes, text

    different: 5 files
    ");
    let found = bed.line("diff p.tar.gz new --format json").expect(1).json();
    assert_eq!(found["verdict"], "different");
    assert_eq!(found["files"][0]["a"], serde_json::Value::Null);
    assert_eq!(found["files"][1]["b"]["mode"], "0644");
    assert_eq!(found["files"][4]["content"], "text");
}

#[test]
fn content_that_is_no_text_is_binary_on_either_side() {
    let bed = two();
    bed.write("new/bin/notes", b"\x7fELF\0");
    bed.mode("new/bin/notes", 0o755);
    for line in ["diff notes new", "diff new notes"] {
        let ran = bed.line(line).expect(1);
        assert!(ran.out.contains(" bytes, binary\n"), "{}", ran.out);
    }
}

#[test]
fn what_cannot_be_compared_is_no_difference() {
    let bed = two();
    bed.write("broken.tar.gz", "no gzip");
    bed.line("diff notes nope")
        .expect(2)
        .says("`nope` is not there");
    let ran = bed.line("diff notes broken.tar.gz").says("(gzip_header)");
    assert_eq!(ran.out, "");
    assert_eq!(ran.code, 2, "1 would say that they differ");
}

#[test]
fn hostile_names_are_made_visible() {
    let bed = two();
    bed.write("new/a\u{7f}", "");
    let strict = bed.line("diff notes new").expect(2);
    assert!(strict.err.contains(r"a\u{7f}"), "{}", strict.err);
    let ran = bed.line("diff notes new --follow-links").expect(1);
    assert!(ran.out.contains(r"a\u{7f}"), "{}", ran.out);
}
