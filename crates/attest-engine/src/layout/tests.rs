//! Workspaces that are made, found, or refused with nothing changed.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use read_only::ReadOnly;

#[expect(dead_code, reason = "shared with the tests of pipelines")]
#[path = "../../tests/run/read_only.rs"]
mod read_only;

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs_err::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn init_makes_everything_once_and_then_leaves_it_alone() {
    let folder = tempfile::tempdir().unwrap();
    let told = init(folder.path()).unwrap();
    assert_eq!(told.present, Vec::<String>::new());
    assert_eq!(
        told.lines().collect::<Vec<_>>(),
        [
            "created: .attest/receipts/",
            "created: .attest/cache/",
            "created: .attest/objects/",
            "created: attest.yaml",
            "created: .gitignore (.attest/keys/ entry)",
            "created: .gitignore (.attest/receipts/ entry)",
            "created: .gitignore (.attest/cache/ entry)",
            "created: .gitignore (.attest/causal_ledger/ entry)",
            "created: .gitignore (.attest/objects/ entry)",
        ]
    );
    let before = fs_err::read(folder.path().join(".gitignore")).unwrap();
    let again = init(folder.path()).unwrap();
    assert_eq!(again.created, Vec::<String>::new());
    assert_eq!(again.present, told.created);
    assert!(
        again
            .lines()
            .all(|line| line.starts_with("already present: "))
    );
    assert_eq!(
        fs_err::read(folder.path().join(".gitignore")).unwrap(),
        before
    );
    assert_eq!(
        files(folder.path()),
        [".attest", ".gitignore", "attest.yaml"]
    );
}

#[test]
fn init_keeps_what_the_user_wrote() {
    let folder = tempfile::tempdir().unwrap();
    let ignore = folder.path().join(".gitignore");
    fs_err::write(&ignore, b"target\n\xff\n.attest/cache/\r\nlast").unwrap();
    fs_err::set_permissions(&ignore, std::fs::Permissions::from_mode(0o600)).unwrap();
    fs_err::write(folder.path().join("attest.yaml"), "mine").unwrap();
    let told = init(folder.path()).unwrap();
    assert!(told.present.contains(&"attest.yaml".to_owned()));
    assert!(
        told.present
            .contains(&".gitignore (.attest/cache/ entry)".to_owned())
    );
    let bytes = fs_err::read(&ignore).unwrap();
    let kept = b"target\n\xff\n.attest/cache/\r\nlast\n.attest/keys/\n";
    assert!(bytes.starts_with(kept), "{}", bytes.escape_ascii());
    let mode = fs_err::metadata(&ignore).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(
        fs_err::read(folder.path().join("attest.yaml")).unwrap(),
        b"mine"
    );
}

#[test]
fn init_changes_nothing_where_something_is_in_the_way() {
    for name in [".attest", ".gitignore"] {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        symlink(elsewhere.path(), folder.path().join(name)).unwrap();
        let error = init(folder.path()).unwrap_err();
        assert!(matches!(error, LayoutError::Link { .. }), "{name}: {error}");
        assert_eq!(files(folder.path()), [name]);
        assert_eq!(files(elsewhere.path()), Vec::<String>::new());
    }
    let folder = tempfile::tempdir().unwrap();
    fs_err::write(folder.path().join(".attest"), "").unwrap();
    let error = init(folder.path()).unwrap_err();
    assert!(error.to_string().contains("is in the way"), "{error}");
    assert_eq!(files(folder.path()), [".attest"]);

    for name in ["attest.yaml", ".gitignore"] {
        let folder = tempfile::tempdir().unwrap();
        fs_err::create_dir(folder.path().join(name)).unwrap();
        let error = init(folder.path()).unwrap_err();
        assert!(matches!(error, LayoutError::NotAFile { .. }), "{error}");
        assert_eq!(files(folder.path()), [name]);
    }
}

#[test]
fn init_in_a_read_only_folder_says_where_it_failed() {
    let folder = tempfile::tempdir().unwrap();
    let Some(read_only) = ReadOnly::make(folder.path()) else {
        return;
    };
    let error = init(folder.path()).unwrap_err();
    drop(read_only);
    let LayoutError::Io { source, .. } = error else {
        panic!("{error}");
    };
    let refused = [
        io::ErrorKind::PermissionDenied,
        io::ErrorKind::ReadOnlyFilesystem,
    ];
    assert!(refused.contains(&source.kind()), "{source}");
    assert!(source.to_string().contains(".attest"), "{source}");
    assert_eq!(files(folder.path()), Vec::<String>::new());
}

#[test]
fn many_inits_at_once_agree_and_each_thing_is_made_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let told: Vec<Init> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| init(folder.path()).unwrap()))
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    for what in [".attest/receipts/", "attest.yaml"] {
        let makers = told
            .iter()
            .filter(|one| one.created.contains(&what.to_owned()))
            .count();
        assert_eq!(makers, 1, "{what}");
    }
    let pipeline = fs_err::read_to_string(folder.path().join("attest.yaml")).unwrap();
    assert_eq!(pipeline, STARTER);
    let ignore = fs_err::read_to_string(folder.path().join(".gitignore")).unwrap();
    assert_eq!(ignore.lines().count(), 5, "{ignore}");
    assert_eq!(
        files(folder.path()),
        [".attest", ".gitignore", "attest.yaml"]
    );
}

#[test]
fn the_state_folder_is_chosen_by_option_then_variable_then_place() {
    let workspace = Path::new("/w");
    let folder = |option: Option<&str>, variable: Option<&str>| {
        State::choose(workspace, option.map(Path::new), variable.map(OsStr::new))
            .folder()
            .to_owned()
    };
    assert_eq!(folder(None, None), Path::new("/w/.attest"));
    assert_eq!(folder(None, Some("")), Path::new("/w/.attest"));
    assert_eq!(folder(None, Some("state")), Path::new("/w/state"));
    assert_eq!(folder(None, Some("/s")), Path::new("/s"));
    assert_eq!(folder(Some("/o"), Some("/s")), Path::new("/o"));
}

#[test]
fn a_workspace_that_was_not_initialised_is_refused_unless_its_state_is_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let state = State::choose(folder.path(), None, None);
    let error = state.prepare().unwrap_err().to_string();
    assert!(
        error.starts_with("not an ATTEST repository (run 'attest init')"),
        "{error}"
    );
    assert_eq!(files(folder.path()), Vec::<String>::new());

    let elsewhere = tempfile::tempdir().unwrap();
    let named = elsewhere.path().join("a/b");
    let state = State::choose(folder.path(), Some(&named), None);
    state.prepare().unwrap();
    assert_eq!(files(&named), ["cache", "causal_ledger", "receipts"]);
    assert_eq!(files(folder.path()), Vec::<String>::new());
}

#[test]
fn a_link_in_place_of_a_folder_of_the_state_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    init(folder.path()).unwrap();
    let ledger = folder.path().join(".attest/causal_ledger");
    symlink(elsewhere.path(), &ledger).unwrap();
    let state = State::choose(folder.path(), None, None);
    let error = state.prepare().unwrap_err();
    assert!(matches!(error, LayoutError::Link { path } if path == ledger));
    assert_eq!(files(elsewhere.path()), Vec::<String>::new());
}

#[test]
fn a_new_file_never_replaces_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.yaml");
    assert!(create_whole(&path, b"one").unwrap());
    assert!(!create_whole(&path, b"two").unwrap());
    assert_eq!(fs_err::read(&path).unwrap(), b"one");
    symlink("/nowhere", folder.path().join("link")).unwrap();
    assert!(!create_whole(&folder.path().join("link"), b"three").unwrap());
    assert_eq!(files(folder.path()), ["link", "r.yaml"]);
}
