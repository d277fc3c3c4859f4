//! Looks commands up in folders that a test made.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

struct Bed(tempfile::TempDir);

impl Bed {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, mode: u32) -> PathBuf {
        let path = self.path(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, "#!/bin/sh\n").unwrap();
        fs_err::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        path
    }

    fn search(&self, folders: &[&str]) -> SearchPath {
        let folders: Vec<String> = folders
            .iter()
            .map(|folder| self.path(folder).display().to_string())
            .collect();
        SearchPath::new(folders.join(":"))
    }
}

fn bare(name: &str) -> Command {
    Command::Bare(name.to_owned())
}

#[test]
fn empty_and_relative_entries_are_left_out_of_the_search_path() {
    for (path, left) in [
        ("/usr/bin:/bin", Some("/usr/bin:/bin")),
        (":/usr/bin::.:bin:../x:~/bin:/bin:", Some("/usr/bin:/bin")),
        ("", None),
        (":", None),
        (".:bin", None),
    ] {
        let search = SearchPath::new(path);
        assert_eq!(search.variable(), left.map(OsStr::new), "{path}");
        assert_eq!(search.folders().count(), left.map_or(0, |_| 2), "{path}");
    }
}

#[test]
fn the_working_folder_is_never_searched() {
    // The folder that tests of a package run in is the package's own.
    let here = std::env::current_dir().unwrap();
    let name = "Cargo.toml";
    assert!(here.join(name).is_file());
    for path in ["", ":", ".", "./", "src/..", ":.:./:"] {
        let error = resolve(&bare(name), &SearchPath::new(path)).unwrap_err();
        assert!(
            matches!(error, ResolveError::NotInPath { .. }),
            "{path}: {error}"
        );
        assert!(error.to_string().contains("there are none"), "{error}");
    }
}

#[test]
fn a_path_that_is_neither_absolute_nor_bare_is_refused() {
    let bed = Bed::new();
    let file = bed.file("bin/tool", 0o755);
    let search = bed.search(&["bin", "."]);
    for command in [
        "", ".", "..", "./tool", "bin/tool", "../tool", "tool/", "a\0b",
    ] {
        let error = resolve(&bare(command), &search).unwrap_err();
        assert!(
            matches!(error, ResolveError::Relative { .. }),
            "{command:?}: {error}"
        );
    }
    let relative = Command::Absolute(PathBuf::from("bin/tool"));
    assert!(matches!(
        resolve(&relative, &search),
        Err(ResolveError::Relative { .. })
    ));
    assert_eq!(
        resolve(&Command::Absolute(file.clone()), &search).unwrap(),
        file
    );
}

#[test]
fn the_first_folder_that_has_it_wins_and_links_are_fine() {
    let bed = Bed::new();
    let second = bed.file("second/tool", 0o755);
    let search = bed.search(&["gone", "first", "second"]);
    assert_eq!(resolve(&bare("tool"), &search).unwrap(), second);
    fs_err::create_dir(bed.path("first")).unwrap();
    symlink(&second, bed.path("first/tool")).unwrap();
    assert_eq!(
        resolve(&bare("tool"), &search).unwrap(),
        bed.path("first/tool")
    );
}

#[test]
fn each_unfit_thing_has_an_error_of_its_own() {
    let bed = Bed::new();
    fs_err::create_dir_all(bed.path("bin/folder")).unwrap();
    bed.file("bin/data", 0o644);
    symlink("nowhere", bed.path("bin/dangling")).unwrap();
    symlink("loop", bed.path("bin/loop")).unwrap();
    let fifo = bed.path("bin/fifo");
    rustix::fs::mknodat(
        CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o755),
        0,
    )
    .unwrap();
    let search = bed.search(&["bin"]);
    for (name, here, reason) in [
        ("folder", "is a directory", "command is a directory"),
        ("data", "may not be executed", "command is not executable"),
        ("dangling", "", "command not found"),
        ("loop", "cannot examine", "command cannot be examined"),
        ("fifo", "is not a regular", "command is not a regular file"),
        ("gone", "", "command not found"),
    ] {
        let error = resolve(&bare(name), &search).unwrap_err();
        assert!(error.to_string().contains(here), "{name}: {error}");
        assert_eq!(error.reason(), reason, "{name}");
        let absolute = Command::Absolute(bed.path("bin").join(name));
        let error = resolve(&absolute, &search).unwrap_err();
        assert_eq!(error.reason(), reason, "{name}");
    }
}

#[test]
fn what_cannot_be_started_is_passed_over_but_told_of() {
    let bed = Bed::new();
    let first = bed.file("first/tool", 0o644);
    let search = bed.search(&["first", "second"]);
    let error = resolve(&bare("tool"), &search).unwrap_err();
    assert!(error.to_string().contains(&*first.to_string_lossy()));
    let second = bed.file("second/tool", 0o755);
    assert_eq!(resolve(&bare("tool"), &search).unwrap(), second);
}
