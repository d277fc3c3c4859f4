//! What a killed writer leaves is removed, what a living one writes is not.

use std::{
    os::unix::fs::symlink,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use safe_fs::{SafeFsError, lock_named, sweep_left_over, write_atomic};

use crate::support::Scratch;

const NAME: &str = ".safe-fs-0123456789abcdef.tmp";

fn names(scratch: &Scratch) -> Vec<PathBuf> {
    let entries = fs_err::read_dir(&scratch.path).unwrap();
    let mut names: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    names.sort();
    names
}

#[test]
fn only_files_of_exactly_that_name_are_swept() {
    let scratch = Scratch::new();
    let others = [
        ".safe-fs-0123456789abcde.tmp",
        ".safe-fs-0123456789abcdeff.tmp",
        ".safe-fs-0123456789ABCDEF.tmp",
        ".safe-fs-0123456789abcdeg.tmp",
        ".safe-fs-0123456789abcdef.tmp2",
        "x.safe-fs-0123456789abcdef.tmp",
        "safe-fs-0123456789abcdef.tmp",
    ];
    for other in others {
        fs_err::write(scratch.join(other), "theirs").unwrap();
    }
    symlink("nowhere", scratch.join(".safe-fs-1111111111111111.tmp")).unwrap();
    fs_err::create_dir(scratch.join(".safe-fs-2222222222222222.tmp")).unwrap();
    let twice = scratch.join(".safe-fs-3333333333333333.tmp");
    fs_err::write(&twice, "two names").unwrap();
    fs_err::hard_link(&twice, scratch.join("other name")).unwrap();
    let before = names(&scratch);

    fs_err::write(scratch.join(NAME), "half").unwrap();
    fs_err::write(scratch.join(".safe-fs-ffffffffffffffff.tmp"), "").unwrap();
    assert_eq!(sweep_left_over(&scratch.path), 2);
    assert_eq!(names(&scratch), before);
    assert_eq!(sweep_left_over(&scratch.path), 0);
    assert_eq!(sweep_left_over(&scratch.join("absent")), 0);
}

#[test]
fn a_file_that_its_writer_holds_is_not_swept() {
    let scratch = Scratch::new();
    let file = fs_err::File::create(scratch.join(NAME)).unwrap();
    file.lock().unwrap();
    assert_eq!(sweep_left_over(&scratch.path), 0);
    drop(file);
    assert_eq!(sweep_left_over(&scratch.path), 1);
}

#[test]
fn writers_are_not_disturbed_by_sweepers() {
    let scratch = Scratch::new();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let sweeper = scope.spawn(|| {
            let mut swept = 0;
            while !done.load(Ordering::Relaxed) {
                swept += sweep_left_over(&scratch.path);
            }
            swept
        });
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let path = scratch.join(&format!("file-{writer}"));
                scope.spawn(move || {
                    (0..50_u32).try_for_each(|round| {
                        write_atomic(&path, &round.to_le_bytes(), 0o600)?;
                        assert_eq!(fs_err::read(&path).unwrap(), round.to_le_bytes());
                        Ok::<_, SafeFsError>(())
                    })
                })
            })
            .collect();
        let ended: Vec<_> = writers.into_iter().map(|one| one.join()).collect();
        done.store(true, Ordering::Relaxed);
        drop(sweeper.join());
        for one in ended {
            one.unwrap().unwrap();
        }
    });
    assert_eq!(names(&scratch).len(), 2);
}

#[test]
fn the_lock_of_a_file_is_on_the_file_that_has_the_name() {
    let scratch = Scratch::new();
    let path = scratch.join("receipt");
    assert!(lock_named(&path).unwrap_err().is_not_found());
    let error = lock_named(&scratch.path).unwrap_err();
    assert!(
        matches!(error, SafeFsError::NotARegularFile { .. }),
        "{error}"
    );
    write_atomic(&path, b"1", 0o444).unwrap();
    let guard = lock_named(&path).unwrap();
    let error = lock_named(&path).unwrap_err();
    assert!(matches!(error, SafeFsError::AlreadyOwned { .. }), "{error}");
    // The one who holds the lock replaces the file, and that has a lock of its own.
    write_atomic(&path, b"2", 0o444).unwrap();
    let second = lock_named(&path).unwrap();
    drop(guard);
    assert!(lock_named(&path).is_err());
    drop(second);
    lock_named(&path).unwrap();
}
