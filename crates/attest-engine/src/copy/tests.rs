//! Copies keep what is inside and reach nothing outside.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

struct Fixture {
    folder: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs_err::create_dir(folder.path().join("from")).unwrap();
        fs_err::create_dir(folder.path().join("to")).unwrap();
        Self { folder }
    }

    fn from(&self) -> PathBuf {
        self.folder.path().join("from")
    }

    fn to(&self) -> PathBuf {
        self.folder.path().join("to")
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.from().join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }
}

fn all(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs_err::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            found.push(path.strip_prefix(folder).unwrap().display().to_string());
            if fs_err::symlink_metadata(&path).unwrap().is_dir() {
                folders.push(path);
            }
        }
    }
    found.sort();
    found
}

fn mode(path: &Path) -> u32 {
    fs_err::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_tree_is_copied_with_its_modes_and_inner_links() {
    let fixture = Fixture::new();
    fixture.write("a/b/tool", "run me");
    fixture.write("a/empty", "");
    fixture.write(".git/config", "no");
    fixture.write("a/.attest/keys/k", "no");
    fs_err::create_dir(fixture.from().join("bare")).unwrap();
    let set = |path: &str, bits| {
        let mode = std::fs::Permissions::from_mode(bits);
        fs_err::set_permissions(fixture.from().join(path), mode).unwrap();
    };
    set("a/b/tool", 0o4755);
    set("a/b", 0o555);
    for (link, target) in [
        ("in", "a/b/tool"),
        ("a/up", "../a/empty"),
        ("dangling", "nothing"),
        ("out", "../secret"),
        ("a/b2", "/etc"),
        ("round", "a/../../from/a"),
    ] {
        symlink(target, fixture.from().join(link)).unwrap();
    }
    let cancel = CancellationToken::new();
    let mut copier = Copier::new(&[".git", ".attest"], &cancel);
    copier.whole(&fixture.from(), &fixture.to()).unwrap();
    assert_eq!(
        all(&fixture.to()),
        [
            "a", "a/b", "a/b/tool", "a/empty", "a/up", "bare", "dangling", "in"
        ]
    );
    assert_eq!(
        copier.links_left_out,
        [Path::new("a/b2"), Path::new("out"), Path::new("round")]
    );
    // No set-id bit goes with a copy.
    assert_eq!(mode(&fixture.to().join("a/b/tool")), 0o755);
    assert_eq!(mode(&fixture.to().join("a/b")), 0o555);
    let text = fs_err::read_to_string(fixture.to().join("in")).unwrap();
    assert_eq!(text, "run me");
}

#[test]
fn special_files_are_refused_by_name_and_not_opened() {
    let fixture = Fixture::new();
    fixture.write("a/file", "x");
    let fifo = fixture.from().join("a/pipe\u{1b}");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let cancel = CancellationToken::new();
    let error = Copier::new(&[], &cancel)
        .whole(&fixture.from(), &fixture.to())
        .unwrap_err();
    assert!(matches!(error, CopyError::Special { kind: "FIFO", .. }));
    assert!(!error.to_string().contains('\u{1b}'), "{error:?}");
}

#[test]
fn the_folder_of_the_copies_is_not_copied_into_itself() {
    let fixture = Fixture::new();
    fixture.write("file", "x");
    let inside = fixture.from().join("tmp/copies");
    fs_err::create_dir_all(&inside).unwrap();
    let cancel = CancellationToken::new();
    Copier::new(&[], &cancel)
        .without(&inside)
        .whole(&fixture.from(), &inside)
        .unwrap();
    assert_eq!(all(&inside), ["file", "tmp"]);
}

#[test]
fn one_path_is_copied_with_the_folders_above_it() {
    let fixture = Fixture::new();
    fixture.write("src/a/one", "1");
    fixture.write("src/two", "2");
    fixture.write("other", "3");
    let cancel = CancellationToken::new();
    let mut copier = Copier::new(&[], &cancel);
    for path in ["src/a", "src/two"] {
        copier
            .one(&fixture.from(), &fixture.to(), Path::new(path))
            .unwrap();
    }
    assert_eq!(all(&fixture.to()), ["src", "src/a", "src/a/one", "src/two"]);
    let error = copier.one(&fixture.from(), &fixture.to(), Path::new("src/none"));
    assert!(error.unwrap_err().to_string().contains("src/none"));
    for path in ["..", ".", "/etc", ""] {
        let copied = copier.one(&fixture.from(), &fixture.to(), Path::new(path));
        assert!(copied.is_err(), "{path}");
    }
}

#[test]
fn a_link_in_place_of_a_folder_is_not_entered() {
    let fixture = Fixture::new();
    let outside = tempfile::tempdir().unwrap();
    fs_err::write(outside.path().join("secret"), "canary").unwrap();
    symlink(outside.path(), fixture.from().join("src")).unwrap();
    let cancel = CancellationToken::new();
    let mut copier = Copier::new(&[], &cancel);
    let copied = copier.one(&fixture.from(), &fixture.to(), Path::new("src/secret"));
    assert!(copied.is_err());
    assert!(!all(&fixture.to()).contains(&"src/secret".to_owned()));
}

#[test]
fn a_cancelled_copy_ends() {
    let fixture = Fixture::new();
    fixture.write("file", "x");
    let cancel = CancellationToken::new();
    cancel.cancel();
    let copied = Copier::new(&[], &cancel).whole(&fixture.from(), &fixture.to());
    assert!(matches!(copied, Err(CopyError::Cancelled)));
    assert_eq!(all(&fixture.to()), Vec::<String>::new());
}

#[test]
fn by_hand_and_by_the_system_copies_are_the_same() {
    let fixture = Fixture::new();
    let bytes: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
    fs_err::write(fixture.from().join("file"), &bytes).unwrap();
    let cancel = CancellationToken::new();
    let copier = Copier::new(&[], &cancel);
    let open = |name: &str, flags| {
        let path = fixture.folder.path().join(name);
        openat(CWD, &path, flags, Mode::RUSR | Mode::WUSR).unwrap()
    };
    for by_hand in [false, true] {
        let source = open("from/file", OFlags::RDONLY);
        let name = if by_hand { "to/hand" } else { "to/system" };
        let copy = open(name, OFlags::WRONLY | OFlags::CREATE);
        if by_hand {
            copier.by_hand(&source, &copy).unwrap();
        } else {
            copier.content(&source, &copy).unwrap();
        }
        let copied = fs_err::read(fixture.folder.path().join(name)).unwrap();
        assert_eq!(copied, bytes, "{name}");
    }
}
