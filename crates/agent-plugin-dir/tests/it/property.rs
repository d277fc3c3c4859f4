//! A directory without links is what its map of files says, whoever reads it.

use std::collections::{BTreeMap, BTreeSet};

use agent_plugin::load;
use agent_plugin_dir::{
    Files, Options, Snapshot, load_directory, read_directory_with_metadata, read_following_links,
};
use plugin_archive::{Limits, Modes, pack, unpack_with_metadata};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;

use crate::tree::{MANIFEST, Tree, skill};

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-c]{1,2}",
        2 => select(vec!["skills", "SKILL.md", "mcp.json", "plugin.json"]).prop_map(str::to_owned),
        1 => "\\.[a-z]|[é✓ a~#]{1,3}x",
    ]
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 0..40),
        Just(MANIFEST.as_bytes().to_vec()),
        Just(skill("a").into_bytes()),
    ]
}

/// Files and modes; what is a directory on another path is dropped.
fn snapshot() -> impl Strategy<Value = Snapshot> {
    let path = vec(name(), 1..5).prop_map(|parts| parts.join("/"));
    let mode = (0_u32..0o1000).prop_map(|mode| mode | 0o400);
    btree_map(path, (content(), mode), 0..12).prop_map(|found| {
        let directories: BTreeSet<String> = found
            .keys()
            .flat_map(|path| {
                path.match_indices('/')
                    .map(|(end, _)| path[..end].to_owned())
            })
            .collect();
        let kept: BTreeMap<_, _> = found
            .into_iter()
            .filter(|(path, _)| !directories.contains(path))
            .collect();
        let mut files = Files::new();
        let mut modes = Modes::new();
        for (path, (bytes, mode)) in kept {
            files.insert(path.clone(), bytes);
            modes.insert(path, mode);
        }
        Snapshot { files, modes }
    })
}

fn laid_out(snapshot: &Snapshot) -> Tree {
    let tree = Tree::empty();
    for ((path, bytes), mode) in snapshot.files.iter().zip(snapshot.modes.values()) {
        tree.write(path, bytes);
        tree.mode(path, *mode);
    }
    tree
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_directory_is_packed_and_unpacked_as_it_was(snapshot in snapshot()) {
        let tree = laid_out(&snapshot);
        let limits = Limits::default();
        let read = read_directory_with_metadata(&tree.path(), &limits).unwrap();
        prop_assert_eq!(&read, &snapshot);
        let archive = pack(&read.files, &read.modes, &limits).unwrap();
        prop_assert_eq!(unpack_with_metadata(&archive, &limits).unwrap(), snapshot);
        let followed = read_following_links(&tree.path(), &limits).unwrap();
        prop_assert_eq!(followed.snapshot, read);
        prop_assert!(followed.diagnostics.is_empty());
    }

    #[test]
    fn a_directory_without_links_loads_as_its_map_does(mut snapshot in snapshot(), manifest: bool) {
        let under_manifest = |path: &String| path.starts_with("plugin.json/");
        if manifest && !snapshot.files.keys().any(under_manifest) {
            snapshot.files.insert("plugin.json".to_owned(), MANIFEST.into());
            snapshot.modes.insert("plugin.json".to_owned(), 0o644);
        }
        let tree = laid_out(&snapshot);
        let options = Options::default();
        let loaded = load_directory(&tree.path(), &options, &Limits::default());
        match (loaded, load(snapshot.files, &options)) {
            (Ok(loaded), wanted) => prop_assert_eq!(Ok(loaded), wanted),
            (Err(agent_plugin_dir::LoadError::Rejected(found)), wanted) => {
                prop_assert_eq!(Err(found), wanted);
            }
            (Err(other), _) => prop_assert!(false, "{}", other),
        }
    }
}
