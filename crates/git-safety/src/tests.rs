//! Which git is found, and what each of its command lines begins with.

use std::os::unix::fs::PermissionsExt;

use super::*;

#[test]
fn relative_and_empty_entries_of_a_path_are_left_out() {
    for (given, kept) in [
        ("/a:b::/c d:.:./e", "/a:/c d"),
        ("", ""),
        (":", ""),
        ("bin:.", ""),
        ("/a", "/a"),
    ] {
        assert_eq!(absolute_entries(OsStr::new(given)), kept, "{given:?}");
    }
}

#[test]
fn git_is_a_file_that_can_be_executed_in_the_first_absolute_entry_that_has_one() {
    let folder = tempfile::tempdir().unwrap();
    let entry = |name: &str| folder.path().join(name);
    for name in ["folder", "plain", "first", "second"] {
        fs_err::create_dir(entry(name)).unwrap();
    }
    fs_err::create_dir(entry("folder/git")).unwrap();
    for (name, mode) in [("plain", 0o644), ("first", 0o755), ("second", 0o755)] {
        let file = entry(name).join("git");
        fs_err::write(&file, "").unwrap();
        fs_err::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let names = ["absent", "folder", "plain", "first", "second"];
    let path = std::env::join_paths(names.map(entry)).unwrap();
    assert_eq!(find(&path), Some(entry("first").join("git")));
    let none = std::env::join_paths(["absent", "folder", "plain"].map(entry)).unwrap();
    assert_eq!(find(&none), None);
    assert_eq!(find(OsStr::new("bin:.:")), None);
}

#[test]
fn every_command_line_carries_all_settings_before_those_of_the_caller() {
    let words = command_line(Path::new("/bin/git"), ["index.version=2"]);
    let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap()).collect();
    assert_eq!(words.get(..2), Some(["/bin/git", "--no-pager"].as_slice()));
    let settings: Vec<&str> = words
        .chunks(2)
        .skip(1)
        .map(|pair| {
            assert_eq!(pair.first(), Some(&"-c"));
            *pair.last().unwrap()
        })
        .collect();
    let expected: Vec<&str> = SETTINGS
        .iter()
        .copied()
        .chain(["index.version=2"])
        .collect();
    assert_eq!(settings, expected);
}

#[test]
fn no_setting_and_no_variable_stands_twice() {
    let mut names: Vec<&str> = SETTINGS
        .iter()
        .map(|setting| setting.split_once('=').unwrap().0)
        .chain(ENVIRONMENT.iter().map(|(name, _)| *name))
        .collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}
