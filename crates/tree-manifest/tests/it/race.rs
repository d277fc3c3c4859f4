//! Trees that change during the walk: nothing outside is read, nothing blocks, nothing crashes.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use tree_manifest::{ManifestError, Options};

use crate::tree::Tree;

const ROUNDS: usize = 400;

/// Ends the other thread also when a test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Files beside the one that changes: reading them keeps its moment long.
fn beside(tree: &Tree) {
    for index in 0..200 {
        tree.file(&format!("out/{index}"), "inside");
    }
}

/// Exchanges two paths for as long as `body` runs.
fn while_exchanging(one: &Path, other: &Path, body: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
                thread::yield_now();
            }
        });
        let _stop = Stop(&stop);
        body();
    });
}

fn assert_honest(tree: &Tree, declared: &str, honest: &str) {
    match tree.outputs(&[declared]) {
        Ok(manifest) => assert_eq!(manifest.text(), honest),
        Err(
            ManifestError::Changed { .. }
            | ManifestError::LinkEscapes { .. }
            | ManifestError::ThroughLink { .. }
            | ManifestError::Special { .. },
        ) => {}
        Err(other) => assert_eq!(other.to_string(), "", "an honest refusal"),
    }
}

#[test]
fn a_folder_that_becomes_a_link_leads_nowhere() {
    let tree = Tree::new();
    beside(&tree);
    tree.file("out/d/secret", "inside")
        .file("out/d/e/secret", "inside");
    fs_err::create_dir_all(tree.path("../outside/e")).unwrap();
    for path in ["../outside/secret", "../outside/e/secret"] {
        fs_err::write(tree.path(path), "secret").unwrap();
    }
    tree.link("../flip", tree.path("../outside"));
    let honest = tree.outputs(&["out"]).unwrap().text();
    let deep = tree.outputs(&["out/d/e"]).unwrap().text();
    while_exchanging(&tree.path("out/d"), &tree.path("../flip"), || {
        for _ in 0..ROUNDS {
            assert_honest(&tree, "out", &honest);
            assert_honest(&tree, "out/d/e", &deep);
        }
    });
}

#[test]
fn a_file_that_becomes_a_link_or_a_fifo_is_neither_followed_nor_waited_for() {
    let tree = Tree::new();
    beside(&tree);
    tree.file("out/f", "inside")
        .link("../flip", tree.path("../secret"));
    let honest = tree.outputs(&["out"]).unwrap().text();
    let alone = tree.outputs(&["out/f"]).unwrap().text();
    let pipe = tree.path("../pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    for other in ["../flip", "../pipe"] {
        while_exchanging(&tree.path("out/f"), &tree.path(other), || {
            for _ in 0..ROUNDS {
                assert_honest(&tree, "out", &honest);
                assert_honest(&tree, "out/f", &alone);
            }
        });
        // Whatever the last exchange left, the file is put back for the next round.
        if !tree.path("out/f").symlink_metadata().unwrap().is_file() {
            let (one, other) = (tree.path("out/f"), tree.path(other));
            renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
        }
    }
}

#[test]
fn a_file_that_is_cut_short_has_one_of_its_two_hashes_or_none() {
    const LONG: usize = 5 * 1024 * 1024;
    const SHORT: usize = 100_000;
    let tree = Tree::new();
    tree.file("f", vec![0; LONG]);
    let allowed = [LONG, SHORT].map(|length| *blake3::hash(&vec![0; length]).as_bytes());
    let file = fs_err::OpenOptions::new()
        .write(true)
        .open(tree.path("f"))
        .unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for length in [SHORT, LONG] {
                    file.set_len(length as u64).unwrap();
                    thread::yield_now();
                }
            }
        });
        let _stop = Stop(&stop);
        for _ in 0..ROUNDS / 4 {
            match tree_manifest::hash_file(&tree.path("f"), &Options::default()) {
                Ok(hash) => assert!(allowed.contains(&hash)),
                Err(error) => assert!(matches!(error, ManifestError::Changed { .. }), "{error}"),
            }
        }
    });
}
