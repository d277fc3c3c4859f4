//! Bounded reads, atomic writes and locks.

use std::os::unix::fs::symlink;

use safe_fs::{
    SafeFsError, create_private_file, lock_exclusive, read_bounded, read_private_bounded,
    write_atomic,
};

use crate::support::{Scratch, chmod, mode_of};

#[test]
fn as_many_bytes_as_the_limit_are_read_and_one_more_is_refused() {
    let scratch = Scratch::new();
    let path = scratch.join("file");
    write_atomic(&path, b"12345", 0o600).unwrap();
    assert_eq!(read_bounded(&path, 5).unwrap(), b"12345");
    assert_eq!(read_private_bounded(&path, 5).unwrap(), b"12345");
    for error in [
        read_bounded(&path, 4).unwrap_err(),
        read_private_bounded(&path, 4).unwrap_err(),
    ] {
        assert!(
            matches!(error, SafeFsError::TooLarge { limit: 4, .. }),
            "{error}"
        );
    }
    write_atomic(&path, b"", 0o600).unwrap();
    assert_eq!(read_bounded(&path, 0).unwrap(), b"");
}

#[test]
fn a_bounded_read_follows_links_but_never_waits_for_a_fifo() {
    let scratch = Scratch::new();
    fs_err::write(scratch.join("file"), "x").unwrap();
    symlink("file", scratch.join("link")).unwrap();
    assert_eq!(read_bounded(&scratch.join("link"), 1).unwrap(), b"x");

    let (fifo, mode) = (scratch.join("fifo"), rustix::fs::Mode::RWXU);
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    for path in [fifo, scratch.path.clone(), "/dev/zero".into()] {
        let error = read_bounded(&path, 1).unwrap_err();
        assert!(
            matches!(error, SafeFsError::NotARegularFile { .. }),
            "{error}"
        );
    }
    assert!(
        read_bounded(&scratch.join("absent"), 1)
            .unwrap_err()
            .is_not_found()
    );
}

#[test]
fn an_atomic_write_sets_the_mode_replaces_links_and_leaves_no_other_file() {
    let scratch = Scratch::new();
    fs_err::write(scratch.join("target"), "untouched").unwrap();
    symlink("target", scratch.join("name")).unwrap();
    write_atomic(&scratch.join("name"), b"new", 0o644).unwrap();

    assert_eq!(fs_err::read(scratch.join("target")).unwrap(), b"untouched");
    assert_eq!(fs_err::read(scratch.join("name")).unwrap(), b"new");
    assert!(
        !fs_err::symlink_metadata(scratch.join("name"))
            .unwrap()
            .is_symlink()
    );
    assert_eq!(mode_of(&scratch.join("name")), 0o644);
    assert_eq!(fs_err::read_dir(&scratch.path).unwrap().count(), 2);
}

#[test]
fn a_failed_atomic_write_changes_nothing() {
    let scratch = Scratch::new();
    fs_err::create_dir(scratch.join("folder")).unwrap();
    let error = write_atomic(&scratch.join("folder"), b"new", 0o600).unwrap_err();
    assert!(
        matches!(error, SafeFsError::NotARegularFile { .. }),
        "{error}"
    );
    assert_eq!(fs_err::read_dir(&scratch.path).unwrap().count(), 1);
    assert!(
        write_atomic(&scratch.join("absent/file"), b"", 0o600)
            .unwrap_err()
            .is_not_found()
    );
    assert!(write_atomic("/".as_ref(), b"", 0o600).is_err());
}

#[test]
fn a_lock_has_one_owner_until_its_guard_is_dropped() {
    let scratch = Scratch::new();
    let path = scratch.join("db.lock");
    let guard = lock_exclusive(&path).unwrap();
    let error = lock_exclusive(&path).unwrap_err();
    assert!(matches!(error, SafeFsError::AlreadyOwned { .. }), "{error}");
    drop(guard);
    let guard = lock_exclusive(&path).unwrap();
    assert_eq!(mode_of(&path), 0o600);

    // The file is what the two sides agree on: with another file the lock is another one.
    fs_err::remove_file(&path).unwrap();
    let second = lock_exclusive(&path).unwrap();
    drop((guard, second));
}

#[test]
fn a_lock_file_is_private_and_no_link() {
    let scratch = Scratch::new();
    create_private_file(&scratch.join("file")).unwrap();
    symlink("file", scratch.join("link")).unwrap();
    let error = lock_exclusive(&scratch.join("link")).unwrap_err();
    assert!(matches!(error, SafeFsError::SymbolicLink { .. }), "{error}");
    chmod(&scratch.join("file"), 0o644);
    let error = lock_exclusive(&scratch.join("file")).unwrap_err();
    assert!(matches!(error, SafeFsError::WrongMode { .. }), "{error}");
}
