//! Limits hold before anything is read, also where links make more of a package than there is.

use agent_plugin_dir::{LoadError, Options, ReadError, load_directory, read_directory};
use plugin_archive::{ArchiveError, LimitName, Limits, Rule};
use test_case::test_case;

use crate::tree::Tree;

fn strict(tree: &Tree, limits: &Limits) -> Result<(), ArchiveError> {
    match read_directory(&tree.path(), limits) {
        Ok(_) => Ok(()),
        Err(ReadError::Refused(error)) => Err(error),
        Err(other) => panic_with(&other),
    }
}

fn loaded(tree: &Tree, limits: &Limits) -> Result<(), ArchiveError> {
    match load_directory(&tree.path(), &Options::default(), limits) {
        Ok(_) => Ok(()),
        Err(LoadError::Read(ReadError::Refused(error))) => Err(error),
        Err(other) => panic_with(&other),
    }
}

#[expect(clippy::panic, reason = "tests fail loudly")]
fn panic_with<T>(error: &dyn std::error::Error) -> T {
    panic!("{error}")
}

fn exceeded(error: &ArchiveError) -> (LimitName, u64, String) {
    let name = error.entry.clone().unwrap().name;
    match error.rule {
        Rule::Limit { name: rule, limit } => (rule, limit, name),
        other => panic_with(&std::io::Error::other(other.to_string())),
    }
}

/// Five files in three directories, one of them empty; seven levels at most.
fn tree() -> Tree {
    let tree = Tree::package();
    tree.write("a.txt", vec![b'x'; 1_000]);
    tree.write("b/c.txt", vec![b'x'; 400]);
    tree.write("b/d.txt", "");
    tree.write("e/f/g", "0123456789");
    tree.folder("e/h");
    tree
}

const TOTAL: u64 = 1_000 + 400 + 10 + crate::tree::MANIFEST.len() as u64;

#[test_case(LimitName::TotalBytes, TOTAL; "bytes of all files")]
#[test_case(LimitName::FileBytes, 1_000; "bytes of one file")]
#[test_case(LimitName::Files, 5; "files")]
#[test_case(LimitName::Entries, 9; "files and directories")]
#[test_case(LimitName::Depth, 3; "levels")]
fn each_limit_passes_at_its_value_and_is_named_one_below(name: LimitName, value: u64) {
    let set = |value| {
        let mut limits = Limits::default();
        match name {
            LimitName::TotalBytes => limits.total_bytes = value,
            LimitName::FileBytes => limits.file_bytes = value,
            LimitName::Files => limits.files = value,
            LimitName::Entries => limits.entries = value,
            LimitName::Depth => limits.depth = value,
            // of an archive, which a directory is not yet
            LimitName::ArchiveBytes | LimitName::UncompressedBytes => {}
        }
        limits
    };
    let tree = tree();
    assert_eq!(strict(&tree, &set(value)), Ok(()));
    assert_eq!(loaded(&tree, &set(value)), Ok(()));
    for error in [
        strict(&tree, &set(value - 1)).unwrap_err(),
        loaded(&tree, &set(value - 1)).unwrap_err(),
    ] {
        let (rule, limit, path) = exceeded(&error);
        assert_eq!((rule, limit), (name, value - 1));
        assert!(
            !path.is_empty() && error.to_string().contains(&path),
            "{error}"
        );
        assert!(error.to_string().contains(name.as_str()), "{error}");
    }
}

#[test]
fn a_directory_may_be_64_levels_deep_and_no_more() {
    let tree = Tree::package();
    let deep = vec!["d"; 63].join("/");
    tree.write(format!("{deep}/f"), "x");
    assert_eq!(strict(&tree, &Limits::default()), Ok(()));
    tree.folder(format!("{deep}/g/h"));
    let error = strict(&tree, &Limits::default()).unwrap_err();
    assert_eq!(
        exceeded(&error),
        (LimitName::Depth, 64, format!("{deep}/g/h"))
    );
}

#[test]
fn a_file_that_is_too_long_is_refused_unread() {
    let tree = Tree::package();
    tree.write("huge", "");
    let file = fs_err::OpenOptions::new()
        .write(true)
        .open(tree.at("huge"))
        .unwrap();
    // more than fits into any memory, and nothing on the disk
    file.set_len(1 << 42).unwrap();
    for error in [
        strict(&tree, &Limits::default()).unwrap_err(),
        loaded(&tree, &Limits::default()).unwrap_err(),
    ] {
        let wanted = (
            LimitName::FileBytes,
            Limits::default().file_bytes,
            "huge".to_owned(),
        );
        assert_eq!(exceeded(&error), wanted);
    }
}

#[test]
fn a_directory_of_too_many_names_is_left_at_the_first_one_too_many() {
    let tree = Tree::package();
    for number in 0..200 {
        tree.folder(format!("empty/{number}"));
    }
    let limits = Limits {
        entries: 20,
        ..Limits::default()
    };
    let (name, limit, path) = exceeded(&strict(&tree, &limits).unwrap_err());
    assert_eq!((name, limit), (LimitName::Entries, 20));
    assert!(path.starts_with("empty/"), "{path}");
}

#[test]
fn links_that_double_a_package_at_each_level_stay_in_the_limits() {
    let tree = Tree::package();
    for level in 0..60 {
        tree.link(format!("d{level}/x"), format!("../d{}", level + 1));
        tree.link(format!("d{level}/y"), format!("../d{}", level + 1));
    }
    tree.write("d60/file", "x");
    let error = loaded(&tree, &Limits::default()).unwrap_err();
    assert!(matches!(
        exceeded(&error).0,
        LimitName::Entries | LimitName::Files
    ));

    // what is behind links counts as often as it is there
    let tree = Tree::package();
    tree.write("one", vec![b'x'; 600]);
    tree.link("two", "one");
    let limits = Limits {
        total_bytes: 1_000,
        ..Limits::default()
    };
    let (name, _, path) = exceeded(&loaded(&tree, &limits).unwrap_err());
    assert_eq!((name, path.as_str()), (LimitName::TotalBytes, "two"));
}
