//! `init`: the beginning of a package.

use std::os::unix::fs::symlink;

use serde_json::json;

use crate::bed::{Bed, ran, snapshot};

#[test]
fn what_it_makes_is_a_package_without_a_finding() {
    let bed = Bed::new();
    let ran = bed.line("init my-plugin").expect(0);
    assert_eq!(
        ran.out,
        "created  plugin.json\ncreated  skills/hello/SKILL.md\ncreated  README.md\n"
    );
    ran.says("next: `backplane inspect my-plugin`");
    let found = bed
        .line("inspect my-plugin --strict --format json")
        .expect(0)
        .json();
    assert_eq!(found["diagnostics"], json!([]));
    assert_eq!(found["package"]["name"], "my-plugin");
    assert_eq!(found["package"]["skills"][0]["name"], "hello");
    bed.line("pack my-plugin -o p.tar.gz").expect(0);
}

#[test]
fn the_name_is_that_of_the_directory_or_the_one_that_was_given() {
    let bed = Bed::new();
    std::fs::create_dir(bed.path("here")).unwrap();
    ran(bed.program(&["init"]).current_dir(bed.path("here"))).expect(0);
    let name = |path| {
        let found = bed
            .backplane(&["inspect", path, "--format", "json"])
            .expect(0);
        found.json()["package"]["name"].clone()
    };
    assert_eq!(name("here"), "here");
    let made = bed
        .line("init Some_Folder --name acme.notes --format json")
        .expect(0)
        .json();
    let wanted = json!({
        "name": "acme.notes",
        "directory": "Some_Folder",
        "created": ["plugin.json", "skills/hello/SKILL.md", "README.md"],
        "already_present": []
    });
    assert_eq!(made, wanted);
    assert_eq!(name("Some_Folder"), "acme.notes");
}

#[test]
fn nothing_is_overwritten() {
    let bed = Bed::new();
    bed.write("a/README.md", "mine");
    let made = bed.line("init a").expect(0);
    assert!(made.out.ends_with("kept     README.md\n"), "{}", made.out);
    assert_eq!(bed.read("a/README.md"), b"mine");
    bed.write("b/skills/x", "mine");
    bed.write("c/plugin.json", "mine");
    std::fs::create_dir(bed.path("d")).unwrap();
    symlink("../gone", bed.path("d/skills")).unwrap();
    let before = snapshot(bed.folder());
    for folder in ["a", "b", "c", "d"] {
        bed.backplane(&["init", folder])
            .expect(2)
            .says("is there already, and nothing is overwritten");
    }
    assert_eq!(snapshot(bed.folder()), before);
}

#[test]
fn the_way_to_the_directory_may_go_up_and_a_link_to_nothing_is_none() {
    let bed = Bed::new();
    bed.line("init new/../x").expect(0);
    assert_eq!(bed.names("."), ["new", "x"]);
    symlink("gone", bed.path("link")).unwrap();
    bed.line("init link")
        .expect(2)
        .says("`link` is no directory\nhint: name a directory, or one to make");
}

#[test]
fn a_name_that_is_none_makes_nothing() {
    let bed = Bed::new();
    for name in ["A", "a b", "a-", "a--b", "", "a\"b", "a\u{1b}[2J"] {
        let ran = bed.backplane(&["init", "x", "--name", name]).expect(2);
        let ran = ran.says("is no name of a plugin").says("hint: ");
        assert!(!ran.err.contains('\u{1b}'), "{:?}", ran.err);
    }
    assert!(bed.names(".").is_empty());
}

#[test]
fn what_cannot_be_made_whole_is_taken_back() {
    let bed = Bed::new();
    std::fs::create_dir(bed.path("x")).unwrap();
    let mut shell = std::process::Command::new("sh");
    let script = format!(
        "trap '' XFSZ; ulimit -f 0; exec '{}' init x/y",
        env!("CARGO_BIN_EXE_backplane")
    );
    ran(shell.args(["-c", &script]).current_dir(bed.folder()))
        .expect(2)
        .says("File too large");
    assert!(bed.names("x").is_empty());
}
