//! Files that are written between the first look at them and the last: the same size again, and the
//! time of their content set back.

use std::{os::unix::fs::FileExt, path::Path, thread, time::Duration};

use super::*;

/// Longer than a tick of the clock that file systems take times from.
const TICK: Duration = Duration::from_millis(40);

fn file(length: u64) -> (tempfile::TempDir, fs_err::File) {
    let folder = tempfile::tempdir().unwrap();
    let file = fs_err::OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(folder.path().join("f"))
        .unwrap();
    file.set_len(length).unwrap();
    thread::sleep(TICK);
    (folder, file)
}

fn workspace(path: &Path) -> std::sync::Arc<Folder> {
    Folder::workspace(path).unwrap()
}

fn write_and_set_back(file: &fs_err::File, offset: u64) {
    let modified = file.metadata().unwrap().modified().unwrap();
    file.file().write_all_at(b"x", offset).unwrap();
    file.set_modified(modified).unwrap();
    assert_eq!(file.metadata().unwrap().modified().unwrap(), modified);
}

fn is_changed<T: std::fmt::Debug>(result: Result<T, ManifestError>) -> bool {
    matches!(result, Err(ManifestError::Changed { path }) if path == "f")
}

#[test]
fn a_write_is_seen_whose_time_was_set_back() {
    for length in [1, BUFFER as u64 - 1, BUFFER as u64, LARGE - 1] {
        let (folder, file) = file(length);
        let (fd, before) = workspace(folder.path()).open_file("f", "f").unwrap();
        let mut buffer = vec![0; BUFFER];
        let expected = blake3::hash(&vec![0; usize::try_from(length).unwrap()]);
        assert_eq!(at_once(&fd, &before, "f", &mut buffer).unwrap(), expected);
        write_and_set_back(&file, 0);
        assert!(is_changed(at_once(&fd, &before, "f", &mut buffer)));
    }
}

#[test]
fn a_write_between_two_pieces_is_seen_whose_time_was_set_back() {
    let (folder, file) = file(LARGE);
    let mut buffer = vec![0; BUFFER];
    let open = || match open(&workspace(folder.path()), "f", "f", &mut vec![0; BUFFER]) {
        Ok(Opened::Large(large)) => large,
        other => panic!("{other:?}"),
    };
    let expected = blake3::hash(&vec![0; usize::try_from(LARGE).unwrap()]);
    assert_eq!(open().work(&mut buffer).unwrap(), Some(expected));
    let large = open();
    write_and_set_back(&file, LARGE - 1);
    write_and_set_back(&file, 0);
    assert!(is_changed(large.work(&mut buffer)));
}
