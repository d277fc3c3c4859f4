//! The reader for what becomes an archive.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use agent_plugin_dir::{ReadError, read_directory, read_directory_with_metadata};
use plugin_archive::{Limits, Modes, Rule};
use test_case::test_case;

use crate::tree::{Tree, told, without_privileges};

fn refusal(tree: &Tree) -> ReadError {
    read_directory(&tree.path(), &Limits::default()).unwrap_err()
}

#[test_case("a", "inside.txt"; "to a file")]
#[test_case(".a", "../outside.txt"; "out of the directory")]
#[test_case("b/c", "nothing"; "to nothing")]
#[test_case("b/c", "."; "to its directory")]
#[test_case("b/c", "c"; "to itself")]
fn a_link_is_refused_by_its_path(path: &str, target: &str) {
    let tree = Tree::package();
    tree.write("inside.txt", "text");
    tree.link(path, target);
    let error = refusal(&tree);
    assert!(
        matches!(&error, ReadError::Link { path: named } if named == path),
        "{error:?}"
    );
    assert_eq!(
        error.to_string(),
        format!("`{path}` is a symbolic link; only files and directories are read here")
    );
}

#[test]
fn a_link_to_a_directory_is_refused_and_not_entered() {
    let tree = Tree::package();
    tree.write("real/file", "text");
    tree.link("alias", "real");
    assert!(matches!(refusal(&tree), ReadError::Link { path } if path == "alias"));
}

#[test]
fn special_files_are_refused_by_their_path() {
    let tree = Tree::package();
    tree.fifo("deep/er/pipe");
    let error = refusal(&tree).to_string();
    assert_eq!(
        error,
        "`deep/er/pipe` is a FIFO; only files and directories are read here"
    );

    let tree = Tree::package();
    tree.socket("socket");
    let error = refusal(&tree).to_string();
    assert_eq!(
        error,
        "`socket` is a socket; only files and directories are read here"
    );
}

#[test]
fn hidden_files_are_read_and_empty_directories_are_no_part() {
    let tree = Tree::empty();
    tree.write(".git/config", "a");
    tree.write(".hidden", "b");
    tree.write("node_modules/.bin/x", "c");
    tree.write("empty.txt", "");
    tree.folder("empty/inner");
    let files = read_directory(&tree.path(), &Limits::default()).unwrap();
    let paths: Vec<_> = files.keys().map(String::as_str).collect();
    assert_eq!(
        paths,
        [".git/config", ".hidden", "empty.txt", "node_modules/.bin/x"]
    );
    assert_eq!(files["node_modules/.bin/x"], b"c");
    assert_eq!(files["empty.txt"], b"");
}

#[test]
fn an_empty_directory_has_no_files() {
    let files = read_directory(&Tree::empty().path(), &Limits::default()).unwrap();
    assert!(files.is_empty());
}

#[test]
fn modes_are_the_low_nine_bits_as_found() {
    let tree = Tree::empty();
    let modes = [
        ("run", 0o755),
        ("odd", 0o640),
        ("open", 0o666),
        ("setuid", 0o4755),
        ("setgid", 0o2711),
        ("sticky", 0o1644),
    ];
    for (path, mode) in modes {
        tree.write(path, "x");
        tree.mode(path, mode);
    }
    let snapshot = read_directory_with_metadata(&tree.path(), &Limits::default()).unwrap();
    let wanted = modes.map(|(path, mode)| (path.to_owned(), mode & 0o777));
    assert_eq!(snapshot.modes, Modes::from(wanted));
    assert!(snapshot.modes.keys().eq(snapshot.files.keys()));
}

#[test]
fn the_directory_itself_may_be_named_by_a_link() {
    let tree = Tree::package();
    tree.link("../alias", "package");
    let alias = tree.path().with_file_name("alias");
    let files = read_directory(&alias, &Limits::default()).unwrap();
    assert_eq!(
        files,
        read_directory(&tree.path(), &Limits::default()).unwrap()
    );
    assert_eq!(files.len(), 1);
}

#[test]
fn what_is_no_directory_is_told_by_its_path() {
    let tree = Tree::package();
    for name in ["nothing", "plugin.json"] {
        let path = tree.path().join(name);
        let error = read_directory(&path, &Limits::default()).unwrap_err();
        assert!(matches!(&error, ReadError::Root { path: named, .. } if *named == path));
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test_case(b"a\\b", Rule::PathBackslash, "a\\\\b"; "a backslash")]
#[test_case(b"a\nb", Rule::PathControl, "a\\nb"; "a line end")]
#[test_case(b"\x1b[31m", Rule::PathControl, "\\u{1b}[31m"; "an escape")]
#[test_case("a\u{202e}b".as_bytes(), Rule::PathControl, "a\\u{202e}b"; "a turn of direction")]
#[test_case(b"C:", Rule::PathDrive, "C:"; "a drive")]
#[test_case(b"a\xffb", Rule::PathUtf8, "a\\xffb"; "no text")]
fn a_name_that_no_archive_holds_is_refused_with_its_rule(name: &[u8], rule: Rule, shown: &str) {
    for folder in [false, true] {
        let tree = Tree::package();
        let path = Path::new("deep").join(OsStr::from_bytes(name));
        if folder {
            tree.folder(path);
        } else {
            tree.write(path, "x");
        }
        match refusal(&tree) {
            ReadError::Refused(error) => {
                assert_eq!(error.rule, rule);
                assert_eq!(error.entry.unwrap().name, format!("deep/{shown}"));
            }
            other => assert_eq!(other.to_string(), ""),
        }
    }
}

#[test]
fn what_cannot_be_read_is_told_by_its_path() {
    let tree = Tree::package();
    tree.write("deep/secret", "x");
    for path in ["..", ".", "deep"] {
        tree.mode(path, 0o755);
    }
    tree.mode("deep/secret", 0o000);
    let read =
        || without_privileges(|| read_directory(&tree.path(), &Limits::default()).unwrap_err());
    let error = told(&read());
    assert!(
        error.starts_with("failed to open `deep/secret`: Permission denied"),
        "{error}"
    );
    let error = without_privileges(|| tree.try_load().unwrap_err());
    assert!(told(&error).contains("`deep/secret`"), "{error}");

    tree.mode("deep", 0o000);
    let error = told(&read());
    tree.mode("deep", 0o755);
    assert!(
        error.starts_with("failed to open `deep`: Permission denied"),
        "{error}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_with_more_in_it_than_its_length_says_has_changed() {
    // the system says that these files are empty, and writes them as they are read
    let error = read_directory(Path::new("/proc/self/fdinfo"), &Limits::default()).unwrap_err();
    assert!(
        matches!(&error, ReadError::Changed { path } if path == "0"),
        "{error:?}"
    );
}
