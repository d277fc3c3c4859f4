//! The file beside a download: private, locked, and never somebody else's.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use backplane_http::{ResumeError, ResumeFile};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

const FORM: &str = "backplane-part 1\n";

#[test]
fn it_is_for_its_owner_alone() {
    let folder = folder();
    let path = folder.path().join("x.part");
    let file = ResumeFile::open(&path).unwrap();
    assert_eq!(file.path(), path);
    assert_eq!(fs_err::metadata(&path).unwrap().mode() & 0o777, 0o600);
    file.remove();
    assert!(!path.exists());

    fs_err::write(&path, FORM).unwrap();
    fs_err::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
    let _file = ResumeFile::open(&path).unwrap();
    assert_eq!(fs_err::metadata(&path).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn one_download_at_a_time_has_it() {
    let folder = folder();
    let path = folder.path().join("x.part");
    let first = ResumeFile::open(&path).unwrap();
    let error = ResumeFile::open(&path).unwrap_err();
    assert!(matches!(error, ResumeError::InUse { .. }), "{error}");
    drop(first);
    ResumeFile::open(&path).unwrap();
}

#[test]
fn what_is_none_of_a_download_stays_as_it_is() {
    let folder = folder();
    let path = folder.path().join("x.part");
    for text in ["my notes", "backplane-part 2\n", "backplane-part 1 \n"] {
        fs_err::write(&path, text).unwrap();
        let error = ResumeFile::open(&path).unwrap_err();
        assert!(matches!(error, ResumeError::Foreign { .. }), "{error}");
        assert!(error.to_string().contains("x.part"));
        assert_eq!(fs_err::read_to_string(&path).unwrap(), text);
    }
    let other = folder.path().join("other");
    fs_err::write(&path, FORM).unwrap();
    fs_err::hard_link(&path, &other).unwrap();
    let error = ResumeFile::open(&path).unwrap_err();
    assert!(matches!(error, ResumeError::Foreign { .. }), "{error}");
}

#[test]
fn a_link_a_folder_and_a_pipe_are_refused() {
    let folder = folder();
    let target = folder.path().join("target");
    fs_err::write(&target, "").unwrap();
    let link = folder.path().join("link");
    symlink(&target, &link).unwrap();
    let dangling = folder.path().join("dangling");
    symlink(folder.path().join("absent"), &dangling).unwrap();
    let pipe = folder.path().join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    for path in [&link, &dangling, &pipe, &folder.path().to_owned()] {
        let error = ResumeFile::open(path).unwrap_err();
        assert!(matches!(error, ResumeError::NotAFile { .. }), "{error}");
    }
    assert!(!folder.path().join("absent").exists());
    let error = ResumeFile::open(folder.path().join("no/such/folder")).unwrap_err();
    assert!(matches!(error, ResumeError::Io { .. }), "{error}");
}

#[test]
fn a_head_that_was_cut_off_is_begun_again() {
    let folder = folder();
    let path = folder.path().join("x.part");
    let whole = format!("{FORM}http://127.0.0.1/x\n\"tag\"\nbytes");
    for end in 0..whole.len() {
        fs_err::write(&path, &whole[..end]).unwrap();
        ResumeFile::open(&path).unwrap().keep();
        // What was cut off has nothing to go on with.
        let head = whole.len() - "bytes".len();
        assert_eq!(path.exists(), end >= head, "{end}");
    }
    for bad in [
        "http://x\nW/\"tag\"\nbytes",
        "http://x\ntag\nbytes",
        "\u{0}\n\n\n",
    ] {
        fs_err::write(&path, format!("{FORM}{bad}")).unwrap();
        ResumeFile::open(&path).unwrap().keep();
        assert!(!path.exists(), "{bad}");
    }
}
