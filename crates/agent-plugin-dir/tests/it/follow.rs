//! Links that stay inside.

use agent_plugin_dir::{LoadError, ReadError, load_directory_with_metadata, read_following_links};
use agent_plugin_dir::{Options, load_directory};
use plugin_archive::{Limits, Rule, pack, unpack_with_metadata};

use crate::tree::{MANIFEST, Tree, lines, skill};

fn paths(tree: &Tree) -> Vec<String> {
    tree.load().files.into_keys().collect()
}

#[test]
fn links_to_files_and_directories_keep_the_bytes_under_the_alias_path() {
    let tree = Tree::empty();
    tree.write("meta/manifest", MANIFEST);
    tree.link("plugin.json", "meta/manifest");
    tree.write("library/review/SKILL.md", skill("review"));
    tree.write("library/review/scripts/run", "#!/bin/sh\n");
    tree.mode("library/review/scripts/run", 0o750);
    tree.link("skills", "library");
    let path = tree.path();
    let (package, modes) =
        load_directory_with_metadata(&path, &Options::default(), &Limits::default()).unwrap();
    assert_eq!(lines(&package.diagnostics), [""; 0]);
    assert_eq!(package.files["plugin.json"], MANIFEST.as_bytes());
    assert_eq!(package.files["skills/review/scripts/run"], b"#!/bin/sh\n");
    assert_eq!(package.files["library/review/scripts/run"], b"#!/bin/sh\n");
    assert_eq!(modes["skills/review/scripts/run"], 0o750);
    assert_eq!(package.skills.len(), 1);
    assert_eq!(package.skills[0].path, "skills/review/SKILL.md");
    let resources: Vec<_> = package.skills[0].files.iter().collect();
    assert_eq!(resources, ["skills/review/scripts/run"]);
}

#[test]
fn a_chain_an_absolute_link_and_a_way_out_and_back_are_links_inside() {
    let tree = Tree::package();
    tree.write("real/file", "x");
    tree.link("one", "two");
    tree.link("two", "real/../three");
    tree.link("three", "real");
    tree.link(
        "absolute",
        tree.path().canonicalize().unwrap().join("real/file"),
    );
    tree.link("back", "../package/real/file");
    assert_eq!(
        paths(&tree),
        [
            "absolute",
            "back",
            "one/file",
            "plugin.json",
            "real/file",
            "three/file",
            "two/file"
        ]
    );
    assert!(tree.load().diagnostics.is_empty());
}

#[test]
fn a_link_is_resolved_from_where_it_really_lies() {
    let tree = Tree::package();
    tree.write("a/b/file", "right");
    tree.write("file", "wrong");
    tree.link("a/b/c/link", "../file");
    tree.link("alias", "a/b/c");
    assert_eq!(tree.load().files["alias/link"], b"right");

    // also below what a link leads to
    let tree = Tree::package();
    tree.write("a/file", "right");
    tree.write("file", "wrong");
    tree.link("a/b/c/link", "../../file");
    tree.link("alias", "a/b");
    assert_eq!(tree.load().files["alias/c/link"], b"right");
}

#[test]
fn two_links_to_one_directory_are_no_cycle() {
    let tree = Tree::package();
    tree.write("real/file", "x");
    tree.link("a", "real");
    tree.link("b", "real");
    assert_eq!(
        paths(&tree),
        ["a/file", "b/file", "plugin.json", "real/file"]
    );
}

#[test]
fn the_package_itself_may_be_named_by_a_link() {
    let tree = Tree::package();
    tree.write("real", "x");
    tree.link("inner", "real");
    tree.link("../one", "package");
    tree.link("../two", "one");
    let path = tree.path().with_file_name("two");
    let package = load_directory(&path, &Options::default(), &Limits::default()).unwrap();
    assert_eq!(package, tree.load());
    assert_eq!(package.files["inner"], b"x");
}

#[test]
fn what_is_read_along_links_can_be_packed_and_has_no_links() {
    let tree = Tree::package();
    tree.write("bin/run", "x");
    tree.mode("bin/run", 0o711);
    tree.link("alias", "bin");
    tree.link("gone", "nothing");
    tree.link("out", "../outside.txt");
    let read = read_following_links(&tree.path(), &Limits::default()).unwrap();
    assert_eq!(
        lines(&read.diagnostics),
        [
            "Warning link_dangling gone",
            "Warning resource_escapes_root out"
        ]
    );
    assert_eq!(read.snapshot.modes["alias/run"], 0o711);
    let limits = Limits::default();
    let archive = pack(&read.snapshot.files, &read.snapshot.modes, &limits).unwrap();
    let unpacked = unpack_with_metadata(&archive, &limits).unwrap();
    assert_eq!(unpacked, read.snapshot);
}

#[test]
fn a_name_that_is_no_text_is_refused_here_too() {
    use std::os::unix::ffi::OsStrExt;
    let tree = Tree::package();
    let name = std::ffi::OsStr::from_bytes(b"a\xff\x1b");
    tree.link(name, "plugin.json");
    match tree.try_load() {
        Err(LoadError::Read(ReadError::Refused(error))) => {
            assert_eq!(error.rule, Rule::PathUtf8);
            assert_eq!(error.entry.unwrap().name, "a\\xff\\u{1b}");
        }
        other => assert!(other.is_ok() && other.is_err(), "refused otherwise"),
    }
}
