//! A directory that somebody changes while it is read: no promise of success, but none of what lies
//! outside is ever returned.

use std::sync::atomic::{AtomicBool, Ordering};

use agent_plugin_dir::{ReadError, read_directory, read_following_links};
use plugin_archive::Limits;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::tree::Tree;

const READS: usize = 1_500;

/// Ends the exchanges, also when a test fails.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Exchanges a directory and a link out of the package again and again while something runs.
fn exchanging(tree: &Tree, run: impl FnOnce()) {
    let (inside, link) = (tree.at("d"), tree.at("../link"));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                renameat_with(CWD, &inside, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let _end = End(&done);
        run();
    });
}

fn tree() -> Tree {
    let tree = Tree::package();
    tree.write("d/file", "inside");
    tree.write("../outside/file", "secret");
    tree.link("../link", "../outside");
    tree
}

#[test]
fn a_strict_reader_never_follows_what_takes_the_place_of_a_directory() {
    let tree = tree();
    exchanging(&tree, || {
        for _ in 0..READS {
            match read_directory(&tree.path(), &Limits::default()) {
                Ok(files) => assert_eq!(files["d/file"], b"inside"),
                Err(ReadError::Link { path }) => assert_eq!(path, "d"),
                Err(error) => assert!(error.to_string().contains("`d`"), "{error}"),
            }
        }
    });
}

#[test]
fn a_link_inside_never_leads_out_through_what_takes_the_place_of_a_directory() {
    let tree = tree();
    tree.link("alias", "d/file");
    exchanging(&tree, || {
        for _ in 0..READS {
            if let Ok(read) = read_following_links(&tree.path(), &Limits::default()) {
                let mut contents = read.snapshot.files.values();
                assert!(contents.all(|bytes| bytes != b"secret"));
            }
        }
    });
}
