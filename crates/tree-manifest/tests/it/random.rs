//! Random trees, against the plainest way to make a manifest.

use std::{collections::BTreeMap, path::Path};

use proptest::{collection::vec, prelude::*, sample::select};
use tree_manifest::{Limits, Options};

use crate::tree::{COMMAND, Tree};

/// Around a block, a chunk, the buffer, a piece, and what makes a file large.
const SIZES: [usize; 27] = [
    0, 1, 63, 64, 65, 1023, 1024, 1025, 2048, 16_383, 16_384, 16_385, 65_535, 65_536, 65_537,
    262_142, 262_143, 262_144, 262_145, 1_048_575, 1_048_576, 1_048_577, 2_097_151, 2_097_152,
    2_097_153, 3_145_729, 5_242_880,
];

#[derive(Debug, Clone)]
enum Thing {
    File { size: usize, seed: u8 },
    Folder,
    Link,
}

fn thing() -> impl Strategy<Value = Thing> {
    prop_oneof![
        8 => (select(SIZES.to_vec()), any::<u8>()).prop_map(|(size, seed)| Thing::File { size, seed }),
        1 => Just(Thing::Folder),
        1 => Just(Thing::Link),
    ]
}

fn path() -> impl Strategy<Value = String> {
    let name = select(vec!["a", "b", "a.b", "é x", ".h", "-"]);
    vec(name, 1..4).prop_map(|names| names.join("/"))
}

fn content(size: usize, seed: u8) -> Vec<u8> {
    // A period that no power of two shares, so that no two pieces are alike.
    let period: Vec<u8> = (0..251u8).map(|byte| byte ^ seed).collect();
    let mut content = period.repeat(size / period.len() + 1);
    content.truncate(size);
    content
}

/// Adds what fits where it is put; a name that is taken stays as it is.
fn put(tree: &Tree, path: &str, thing: &Thing) {
    let at = tree.path(path);
    let parent = at.parent().unwrap();
    if at.symlink_metadata().is_ok() || fs_err::create_dir_all(parent).is_err() {
        return;
    }
    // A folder that turns out to be reached through a link stays out of it.
    if parent.canonicalize().unwrap()
        != canonical(tree).join(parent.strip_prefix(tree.workspace()).unwrap())
    {
        return;
    }
    match thing {
        Thing::File { size, seed } => {
            tree.file(path, content(*size, *seed));
        }
        Thing::Folder => {
            tree.folder(path);
        }
        Thing::Link => {
            tree.link(path, "a/b");
        }
    }
}

fn canonical(tree: &Tree) -> std::path::PathBuf {
    tree.workspace().canonicalize().unwrap()
}

fn plainly(workspace: &Path, below: &str, lines: &mut BTreeMap<String, String>) {
    for entry in fs_err::read_dir(workspace.join(below)).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = format!("{below}/{name}").trim_start_matches('/').to_owned();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            plainly(workspace, &path, lines);
        } else if kind.is_symlink() {
            let target = fs_err::read_link(entry.path()).unwrap();
            let hash = blake3::hash(target.to_str().unwrap().as_bytes());
            lines.insert(path.clone(), format!("l:{hash} {path}\n"));
        } else {
            let hash = blake3::hash(&fs_err::read(entry.path()).unwrap());
            lines.insert(path.clone(), format!("f:{hash} {path}\n"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_number_of_threads_makes_the_plain_manifest(
        things in vec((path(), thing()), 0..16),
        threads in 1_usize..6,
    ) {
        let tree = Tree::new();
        for (path, thing) in &things {
            put(&tree, path, thing);
        }
        let mut lines = BTreeMap::new();
        plainly(&tree.workspace(), "", &mut lines);
        let lines: String = lines.into_values().collect();
        let expected = format!("attest-manifest/v1\nrun:{COMMAND}\n{lines}");
        let options = Options { threads, limits: Limits::default() };
        let made = tree.inputs_with(&["."], &options).unwrap();
        prop_assert_eq!(made.text(), expected);
    }
}

#[test]
fn every_size_is_hashed_as_blake3_hashes_it_alone_and_beside_others() {
    let tree = Tree::new();
    for size in SIZES {
        tree.file(&format!("f/{size}"), content(size, 7));
    }
    for threads in [1, 2, 5] {
        let options = Options {
            threads,
            limits: Limits::default(),
        };
        let together = tree.inputs_with(&["f"], &options).unwrap();
        assert_eq!(together.len(), SIZES.len());
        for size in SIZES {
            let hash = blake3::hash(&content(size, 7));
            let path = format!("f/{size}");
            let alone = tree_manifest::hash_file(&tree.path(&path), &options).unwrap();
            assert_eq!(alone, *hash.as_bytes(), "{size}");
            let line = format!("f:{hash} {path}\n");
            assert!(together.text().contains(&line), "{size}");
        }
    }
}

#[test]
fn a_wide_and_a_deep_tree_are_whole_with_any_number_of_threads() {
    let tree = Tree::new();
    for index in 0..1000 {
        tree.file(&format!("wide/{index}"), index.to_string());
    }
    let mut deep = "deep".to_owned();
    for index in 0..90 {
        deep.push_str("/d");
        tree.file(&format!("{deep}/f"), index.to_string());
    }
    let one = Options {
        threads: 1,
        limits: Limits::default(),
    };
    let expected = tree.inputs_with(&["wide", "deep"], &one).unwrap();
    assert_eq!(expected.len(), 1090);
    for threads in [2, 3, 8, 100] {
        let options = Options { threads, ..one };
        assert_eq!(
            tree.inputs_with(&["deep", "wide"], &options).unwrap(),
            expected
        );
    }
}
