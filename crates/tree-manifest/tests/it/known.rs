//! Manifests whose bytes are known beforehand.

use crate::tree::{COMMAND, Tree};

/// BLAKE3 of `hello\n`, `b\n`, `é\n`, `a.txt` and nothing.
const HELLO: &str = "8e4c7c1b99dbfd50e7a95185fead5ee1448fa904a2fdd778eaf5f2dbfd629a99";
const B: &str = "9d902f9864f3043dca97e40698eee07a2fe6771591c687ed129cde8f6fcc4a79";
const E_ACUTE: &str = "267da5db0e62e0cce77270edd35196125a33e09385d6df90da57a54f7c0ecef5";
const TO_A_TXT: &str = "0c1b1bc9896253c19131abb26e3b1342f8ea0fb3148a5dcbe06ebe141831a5d5";
const EMPTY: &str = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";

/// The workspace of the receipts that the original made.
fn original() -> Tree {
    let tree = Tree::new();
    tree.file("src/a.txt", "hello\n")
        .file("src/b.txt", "b\n")
        .file("src/dir/é x.txt", "é\n")
        .link("src/link", "a.txt");
    tree
}

#[test]
fn the_originals_workspace_has_the_originals_manifest() {
    let expected = format!(
        "attest-manifest/v1\nrun:{COMMAND}\nf:{HELLO} src/a.txt\nf:{B} src/b.txt\n\
         f:{E_ACUTE} src/dir/é x.txt\nl:{TO_A_TXT} src/link\n"
    );
    let tree = original();
    for declared in [
        &["src/"][..],
        &["src"],
        &["./src"],
        &["src/dir", "src", "src/a.txt", "src/"],
    ] {
        assert_eq!(
            tree.inputs(declared).unwrap().text(),
            expected,
            "{declared:?}"
        );
    }
}

#[test]
fn outputs_have_no_line_for_the_command() {
    let tree = original();
    assert_eq!(
        tree.outputs(&["src/dir"]).unwrap().text(),
        format!("attest-manifest/v1\nf:{E_ACUTE} src/dir/é x.txt\n")
    );
    assert_eq!(tree.outputs(&[]).unwrap().text(), "attest-manifest/v1\n");
}

#[test]
fn hidden_files_count_and_empty_folders_do_not() {
    let tree = Tree::new();
    tree.file("out/.hidden", "b\n")
        .file("out/.d/empty", "")
        .folder("out/none/at/all");
    let expected = [
        format!("f:{EMPTY} out/.d/empty"),
        format!("f:{B} out/.hidden"),
    ];
    assert_eq!(tree.lines(&["out"]), expected);
    assert_eq!(tree.lines(&["."]), expected);
    assert!(tree.lines(&["out/none"]).is_empty());
}

#[test]
fn a_pattern_is_a_name_like_any_other() {
    let tree = original();
    assert_eq!(
        tree.inputs(&["src/*.txt"]).unwrap_err().to_string(),
        "declared input not found: src/*.txt"
    );
    tree.file("src/*.txt", "b\n");
    assert_eq!(tree.lines(&["src/*.txt"]), [format!("f:{B} src/*.txt")]);
}

#[test]
fn mode_bits_are_not_hashed() {
    use std::os::unix::fs::PermissionsExt;
    let tree = original();
    let before = tree.lines(&["src"]);
    let mode = std::fs::Permissions::from_mode(0o755);
    fs_err::set_permissions(tree.path("src/a.txt"), mode).unwrap();
    assert_eq!(tree.lines(&["src"]), before);
}

#[test]
fn paths_are_sorted_by_their_bytes_across_folders() {
    let tree = Tree::new();
    for path in ["a/b", "a.b", "a-b", "B", "é", "a/B/z"] {
        tree.file(path, "b\n");
    }
    let paths: Vec<_> = ["B", "a-b", "a.b", "a/B/z", "a/b", "é"]
        .map(|path| format!("f:{B} {path}"))
        .into();
    assert_eq!(tree.lines(&["é", "a", "a.b", "B", "a-b"]), paths);
}
