//! What cannot stand in a manifest, and how it is said.

use std::{
    ffi::OsStr,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt, net::UnixListener},
    path::Path,
};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tree_manifest::{Limits, ManifestError, Options};

use crate::tree::Tree;

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[test]
fn a25_an_output_that_is_missing_is_an_error() {
    let tree = Tree::new();
    tree.file("out/there", "x");
    for path in ["gone", "out/gone", "out/there/below", "out/there/", "gone/"] {
        let message = format!("declared output not found: {path}");
        assert_eq!(tree.refusal(&["out", path]), message);
    }
    assert!(matches!(
        tree.inputs(&["gone"]),
        Err(ManifestError::Missing { .. })
    ));
}

#[test]
fn a25_an_output_that_is_a_symlink_stands_as_the_link_or_is_refused() {
    let tree = Tree::new();
    tree.file("a/real", "x").link("out", "a/real");
    assert_eq!(
        tree.refusal(&["out"]),
        "symlink `out` leads to `a/real`, which lies under no declared path of this step; \
         declare the target or remove the link"
    );
    let target = blake3::hash(b"a/real").to_hex();
    let content = blake3::hash(b"x").to_hex();
    let expected = [format!("f:{content} a/real"), format!("l:{target} out")];
    assert_eq!(tree.lines(&["out", "a"]), expected);
    assert_eq!(tree.lines(&["a", "out", "a/real"]), expected);
}

#[test]
fn a25_an_output_that_is_a_folder_stands_as_its_files() {
    let tree = Tree::new();
    tree.file("out/a/b", "x").file("out/c", "x");
    let content = blake3::hash(b"x").to_hex();
    let expected = [format!("f:{content} out/a/b"), format!("f:{content} out/c")];
    assert_eq!(tree.lines(&["out"]), expected);
}

#[test]
fn a25_an_output_that_is_a_fifo_or_socket_is_refused_and_never_opened() {
    let tree = Tree::new();
    tree.folder("out");
    fifo(&tree.path("out/pipe"));
    let message = "`out/pipe` is a FIFO; a manifest holds only files and symlinks";
    assert_eq!(tree.refusal(&["out/pipe"]), message);
    assert_eq!(tree.refusal(&["out"]), message);
    let message = "`sock` is a socket; a manifest holds only files and symlinks";
    let _listener = UnixListener::bind(tree.path("sock")).unwrap();
    assert_eq!(tree.refusal(&["sock"]), message);
}

#[test]
fn a25_an_output_that_is_a_device_is_refused() {
    let declared = ["null".to_owned()];
    let error = tree_manifest::outputs(Path::new("/dev"), &declared, &Options::default());
    assert_eq!(
        error.unwrap_err().to_string(),
        "`null` is a device; a manifest holds only files and symlinks"
    );
}

#[test]
fn a25_an_output_that_cannot_be_read_is_an_error_with_its_path() {
    let tree = Tree::new();
    tree.file("out/shut", "x").file("shut/in", "x");
    for path in ["out/shut", "shut"] {
        let mode = std::fs::Permissions::from_mode(0o000);
        fs_err::set_permissions(tree.path(path), mode).unwrap();
    }
    let shown = (tree.outputs(&["out"]), tree.outputs(&["shut"]));
    let mode = std::fs::Permissions::from_mode(0o700);
    fs_err::set_permissions(tree.path("shut"), mode).unwrap();
    if rustix::process::geteuid().is_root() {
        // Nothing is unreadable to root but what the kernel itself refuses.
        let declared = ["mem".to_owned()];
        let error = tree_manifest::outputs(Path::new("/proc/self"), &declared, &Options::default());
        assert_eq!(error.unwrap_err().to_string(), "cannot read `mem`");
        return;
    }
    let message = |result: Result<_, ManifestError>| result.unwrap_err().to_string();
    assert_eq!(message(shown.0), "cannot open `out/shut`");
    assert_eq!(message(shown.1), "cannot open `shut`");
}

#[test]
fn a26_declared_paths_that_are_no_plain_relative_paths_are_refused() {
    let tree = Tree::new();
    tree.file("a/b", "x");
    let absolute = tree.path("a").to_str().unwrap().to_owned();
    let plain = "has an empty, `.` or `..` component";
    let control = "has a control character in its name, which a manifest cannot hold";
    for (path, shown, reason) in [
        ("../", "../", plain),
        ("../secret", "../secret", plain),
        ("a/../../secret", "a/../../secret", plain),
        ("a/./b", "a/./b", plain),
        ("a//b", "a//b", plain),
        ("", "", "is empty"),
        ("a\0", "a\\u{0}", control),
        ("a\nf:00 b", "a\\u{a}f:00 b", control),
        (
            &absolute,
            &absolute,
            "is absolute; declared paths are relative to the workspace",
        ),
    ] {
        let message = format!("declared output `{shown}` {reason}");
        assert_eq!(tree.refusal(&["a", path]), message);
    }
}

#[test]
fn a26_names_on_disk_that_would_forge_a_line_are_refused() {
    let control = "has a control character in its name, which a manifest cannot hold";
    for (name, shown) in [
        ("a\nf:00 b", "a\\u{a}f:00 b"),
        ("a\rb", "a\\u{d}b"),
        ("a\u{9b}b", "a\\u{9b}b"),
        ("\u{7f}", "\\u{7f}"),
    ] {
        let tree = Tree::new();
        tree.file(&format!("out/{name}"), "x");
        assert_eq!(tree.refusal(&["out"]), format!("`out/{shown}` {control}"));
        let tree = Tree::new();
        tree.folder(&format!("out/{name}"));
        assert_eq!(tree.refusal(&["out"]), format!("`out/{shown}` {control}"));
    }
}

#[test]
fn names_and_targets_that_are_no_text_are_refused() {
    let bytes = OsStr::from_bytes(b"\xff\x1b");
    let tree = Tree::new();
    tree.folder("out");
    fs_err::write(tree.path("out").join(bytes), "x").unwrap();
    assert_eq!(
        tree.refusal(&["out"]),
        "`out/\u{fffd}\\u{1b}` has a name that is not UTF-8"
    );
    let tree = Tree::new();
    tree.folder("out").link("out/l", bytes);
    assert_eq!(
        tree.refusal(&["out"]),
        "`out/l` is a symlink whose target is not UTF-8"
    );
}

#[test]
fn a_link_out_of_the_workspace_is_refused() {
    for target in ["../../secret", "/etc/passwd", "../../ws2/x", "../.."] {
        let tree = Tree::new();
        tree.folder("out").link("out/l", target);
        let message = format!("symlink `out/l` leads out of the workspace (target: `{target}`)");
        assert_eq!(tree.refusal(&["out"]), message);
        assert_eq!(tree.refusal(&["."]), message);
    }
}

#[test]
fn a_link_inside_may_be_absolute_dangling_or_point_at_its_folder() {
    let tree = Tree::new();
    tree.folder("out/d")
        .link("out/absolute", tree.path("out/d").canonicalize().unwrap())
        .link("out/dangling", "d/not yet")
        .link("out/d/up", "..");
    assert_eq!(tree.lines(&["out"]).len(), 3);
    tree.link("out/d/top", "../..");
    assert!(
        tree.refusal(&["out"])
            .starts_with("symlink `out/d/top` leads to `../..`")
    );
    assert_eq!(tree.lines(&["."]).len(), 4);
}

#[test]
fn a_declared_path_through_a_link_is_refused() {
    let tree = Tree::new();
    tree.file("real/sub/f", "x")
        .link("l", "real")
        .link("out", "../");
    for (path, link) in [("l/sub/f", "l"), ("l/", "l"), ("out/secret", "out")] {
        let message = format!(
            "declared output `{path}` goes through the symlink `{link}`, and links are never followed"
        );
        assert_eq!(tree.refusal(&["real", path]), message);
    }
    assert_eq!(tree.lines(&["real", "l"]).len(), 2);
}

#[test]
fn a_workspace_that_is_none_is_an_error() {
    let tree = Tree::new();
    tree.file("f", "x");
    for path in ["f", "gone"] {
        let error = tree_manifest::outputs(&tree.path(path), &[], &Options::default());
        assert!(matches!(error, Err(ManifestError::Workspace { .. })));
    }
}

#[test]
fn more_than_the_limits_is_refused_and_what_they_allow_is_not() {
    let tree = Tree::new();
    tree.file("a/b/c", "x").file("a/d", "x");
    let with = |limits| {
        let options = Options { threads: 2, limits };
        tree.inputs_with(&["a"], &options).map(|made| made.len())
    };
    let enough = Limits {
        entries: 3,
        path_bytes: "a/b".len() + "a/d".len() + "a/b/c".len(),
        depth: 3,
    };
    assert_eq!(with(enough).unwrap(), 2);
    for (limits, words) in [
        (
            Limits {
                entries: 2,
                ..enough
            },
            "more than 2 files, links and folders",
        ),
        (
            Limits {
                path_bytes: 10,
                ..enough
            },
            "more than 10 bytes of paths",
        ),
        (
            Limits { depth: 2, ..enough },
            "`a/b/c` the declared paths hold more than 2 levels of folders",
        ),
    ] {
        let message = with(limits).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn one_file_is_hashed_alone_and_nothing_else_is() {
    let tree = Tree::new();
    tree.file("f", "x").link("l", "f");
    fifo(&tree.path("pipe"));
    let hash = |path: &str| tree_manifest::hash_file(&tree.path(path), &Options::default());
    assert_eq!(hash("f").unwrap(), *blake3::hash(b"x").as_bytes());
    for (path, words) in [
        ("l", "is a symlink"),
        ("pipe", "is a FIFO"),
        (".", "is a folder"),
        ("gone", "cannot open"),
    ] {
        let message = hash(path).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    }
}
