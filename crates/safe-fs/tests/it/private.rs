//! Private folders and files: owner, mode, links, and that nothing is repaired.

use std::{io::Write, os::unix::fs::symlink, path::Path};

use safe_fs::{
    SafeFsError, check_private_dir, check_private_file, create_private_file, private_dir,
    read_private_bounded,
};

use crate::support::{Scratch, chmod, is_root, mode_of};

#[test]
fn a_missing_last_level_is_created_with_mode_0700() {
    let scratch = Scratch::new();
    let path = scratch.join("state");
    private_dir(&path).unwrap();
    assert_eq!(mode_of(&path), 0o700);
    private_dir(&path).unwrap();
}

#[test]
fn a_missing_higher_level_is_an_error() {
    let scratch = Scratch::new();
    let error = private_dir(&scratch.join("missing/state")).unwrap_err();
    assert!(error.is_not_found(), "{error}");
}

#[test]
fn a_folder_open_to_others_is_refused_and_not_repaired() {
    let scratch = Scratch::new();
    let path = scratch.join("state");
    private_dir(&path).unwrap();
    for mode in [0o750, 0o705, 0o710, 0o701, 0o777] {
        chmod(&path, mode);
        let error = private_dir(&path).unwrap_err();
        assert!(matches!(&error, SafeFsError::WrongMode { mode: found, .. } if *found == mode));
        let advice = format!("chmod 700 {}`", path.display());
        assert!(error.to_string().ends_with(&advice), "{error}");
        assert_eq!(mode_of(&path), mode);
    }
    chmod(&path, 0o500);
    check_private_dir(&path).unwrap();
}

#[test]
fn a_link_in_any_component_is_refused() {
    let scratch = Scratch::new();
    fs_err::create_dir_all(scratch.join("real/state")).unwrap();
    chmod(&scratch.join("real/state"), 0o700);
    symlink(scratch.join("real"), scratch.join("link")).unwrap();
    symlink(scratch.join("real/state"), scratch.join("last")).unwrap();

    for path in ["link/state", "last", "link/state/"] {
        let error = check_private_dir(&scratch.join(path)).unwrap_err();
        assert!(
            matches!(error, SafeFsError::SymbolicLink { .. }),
            "{path}: {error}"
        );
    }
    let error = create_private_file(&scratch.join("link/state/db")).unwrap_err();
    assert!(
        matches!(&error, SafeFsError::SymbolicLink { link, .. } if *link == scratch.join("link"))
    );
    assert!(!scratch.join("real/state/db").exists());
    check_private_dir(&scratch.join("real/state")).unwrap();
}

#[test]
fn paths_that_can_mean_two_places_are_refused() {
    for path in ["", "/a/../b", "..", "/", "a\0b"] {
        let error = create_private_file(Path::new(path)).unwrap_err();
        assert!(
            matches!(error, SafeFsError::UnusablePath { .. }),
            "{path:?}: {error}"
        );
    }
}

#[test]
fn a_file_is_a_folder_to_nobody() {
    let scratch = Scratch::new();
    fs_err::write(scratch.join("file"), "").unwrap();
    for path in ["file", "file/below"] {
        let error = private_dir(&scratch.join(path)).unwrap_err();
        assert!(
            matches!(error, SafeFsError::NotADirectory { .. }),
            "{path}: {error}"
        );
    }
}

#[test]
fn a_created_file_is_private_and_never_replaces_anything() {
    let scratch = Scratch::new();
    let path = scratch.join("db");
    create_private_file(&path)
        .unwrap()
        .write_all(b"content")
        .unwrap();
    check_private_file(&path).unwrap();
    assert_eq!(mode_of(&path), 0o600);

    symlink("/nonexistent", scratch.join("dangling")).unwrap();
    for taken in ["db", "dangling"] {
        let error = create_private_file(&scratch.join(taken)).unwrap_err();
        assert!(
            matches!(error, SafeFsError::AlreadyExists { .. }),
            "{taken}: {error}"
        );
    }
    assert_eq!(fs_err::read(&path).unwrap(), b"content");
}

#[test]
fn a_private_file_has_mode_0600_exactly() {
    let scratch = Scratch::new();
    let path = scratch.join("db");
    create_private_file(&path).unwrap();
    for mode in [0o400, 0o640, 0o604, 0o700, 0o4600] {
        chmod(&path, mode);
        let error = check_private_file(&path).unwrap_err();
        assert!(
            matches!(error, SafeFsError::WrongMode { .. }),
            "{mode:o}: {error}"
        );
        assert_eq!(mode_of(&path), mode);
    }
}

#[test]
fn links_fifos_and_folders_are_no_private_files() {
    let scratch = Scratch::new();
    let target = scratch.join("target");
    create_private_file(&target).unwrap();
    symlink(&target, scratch.join("link")).unwrap();
    fs_err::hard_link(&target, scratch.join("second-name")).unwrap();
    fs_err::create_dir(scratch.join("folder")).unwrap();
    mkfifo(&scratch.join("fifo"));

    let refused = |name: &str| {
        let path = scratch.join(name);
        let (checked, read) = (check_private_file(&path), read_private_bounded(&path, 10));
        let (checked, read) = (checked.unwrap_err(), read.unwrap_err());
        assert_eq!(checked.to_string(), read.to_string());
        checked
    };
    assert!(matches!(refused("link"), SafeFsError::SymbolicLink { .. }));
    assert!(matches!(
        refused("second-name"),
        SafeFsError::HardLinked { .. }
    ));
    assert!(matches!(
        refused("folder"),
        SafeFsError::NotARegularFile { .. }
    ));
    assert!(matches!(
        refused("fifo"),
        SafeFsError::NotARegularFile { .. }
    ));
}

#[test]
fn another_owner_is_refused() {
    let scratch = Scratch::new();
    let (folder, file) = if is_root() {
        let (folder, file) = (scratch.join("folder"), scratch.join("file"));
        private_dir(&folder).unwrap();
        create_private_file(&file).unwrap();
        for path in [&folder, &file] {
            std::os::unix::fs::chown(path, Some(65_534), None).unwrap();
        }
        (folder, file)
    } else {
        ("/usr".into(), "/etc/passwd".into())
    };
    let error = check_private_dir(&folder).unwrap_err();
    assert!(matches!(error, SafeFsError::WrongOwner { .. }), "{error}");
    let error = check_private_file(&file).unwrap_err();
    assert!(matches!(error, SafeFsError::WrongOwner { .. }), "{error}");
}

fn mkfifo(path: &Path) {
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
}
