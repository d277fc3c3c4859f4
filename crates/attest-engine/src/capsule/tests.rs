//! Capsules on disk, mounts and snapshots; no client is started.

use super::*;

const DIGEST: &str = "0000000000000000000000000000000000000000000000000000000000000000";

fn image() -> String {
    format!("docker.io/library/busybox@sha256:{DIGEST}")
}

#[test]
fn a_capsule_is_made_once_and_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = init(folder.path(), "demo", &image()).unwrap();
    assert_eq!(
        path,
        folder.path().join(".attest/capsules/demo/capsule.yaml")
    );
    let capsule = load(folder.path(), "demo").unwrap();
    assert_eq!(capsule.image, image());
    assert_eq!(capsule.capsule_hash, Some(capsule.hash().unwrap()));
    let before = fs_err::read(&path).unwrap();
    let error = init(folder.path(), "demo", &image()).unwrap_err();
    assert!(matches!(error, CapsuleFault::Exists { .. }), "{error}");
    assert_eq!(fs_err::read(&path).unwrap(), before);
}

#[test]
fn a32_an_image_that_a_tag_names_is_refused_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    for tag in ["busybox:1.36", "busybox", "busybox@sha256:abc", ""] {
        let error = init(folder.path(), "demo", tag).unwrap_err();
        let CapsuleFault::Invalid { source, .. } = error else {
            panic!("{tag}: {error}");
        };
        assert!(matches!(source, CapsuleError::NotPinned(_)), "{source}");
    }
    assert!(!folder.path().join(".attest").exists());
}

#[test]
fn a_name_never_leads_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["", ".", "..", "a/b", "../x", "/etc", "a\nb", "a\0"] {
        let error = init(folder.path(), name, &image()).unwrap_err();
        assert!(matches!(error, CapsuleFault::Name { .. }), "{name:?}");
        let error = load(folder.path(), name).unwrap_err();
        assert!(matches!(error, CapsuleFault::Name { .. }), "{name:?}");
    }
    let error = load(folder.path(), "absent").unwrap_err();
    assert!(matches!(error, CapsuleFault::NotFound { .. }), "{error}");
}

#[test]
fn a_capsule_that_was_edited_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = init(folder.path(), "demo", &image()).unwrap();
    let text = fs_err::read_to_string(&path).unwrap();
    fs_err::write(&path, text.replace("busybox", "evilbox")).unwrap();
    let error = load(folder.path(), "demo").unwrap_err();
    let CapsuleFault::Invalid { source, .. } = error else {
        panic!("{error}");
    };
    assert!(matches!(source, CapsuleError::OtherHash { .. }), "{source}");
}

#[test]
fn paths_that_would_end_early_are_not_mounted() {
    let refused = |from: &str| mount(Path::new(from), Path::new("/work"), false).is_err();
    assert!(refused("/a:b"));
    assert!(refused("/a\nb"));
    assert!(!refused("/a b"));
    let read_only = mount(Path::new("/a"), Path::new("/work/a"), true).unwrap();
    assert_eq!(read_only, "/a:/work/a:ro");
}

#[test]
fn the_fixed_variables_win() {
    let mut capsule = Capsule::new("demo", image()).unwrap();
    capsule.env.insert("TZ".into(), "Mars".into());
    capsule.env.insert("OWN".into(), "1".into());
    let variables = variables(&capsule);
    assert_eq!(variables["TZ"], "UTC");
    assert_eq!(variables["OWN"], "1");
    assert_eq!(variables.len(), 5);
}

#[test]
fn a_snapshot_holds_what_was_hashed_or_is_refused() {
    let workspace = tempfile::tempdir().unwrap();
    let place = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = workspace.path().join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    };
    write("src/a", "1");
    write("src/deep/b", "2");
    write("other", "3");
    let cancel = CancellationToken::new();
    let take = |declared: &[&str], hash: &str| {
        let declared: Vec<String> = declared.iter().map(|path| (*path).to_owned()).collect();
        Snapshot::take(
            workspace.path(),
            place.path(),
            &declared,
            DIGEST,
            hash,
            &cancel,
        )
    };
    let declared = ["src".to_owned(), "other".to_owned()];
    let options = tree_manifest::Options::default();
    let hash = tree_manifest::inputs(workspace.path(), DIGEST, &declared, &options)
        .unwrap()
        .hash();
    let snapshot = take(&["src", "./src/a", "other"], &hash).unwrap();
    assert_eq!(snapshot.tops(), [Path::new("other"), Path::new("src")]);
    let copied = fs_err::read_to_string(snapshot.folder().join("src/deep/b")).unwrap();
    assert_eq!(copied, "2");
    drop(snapshot);

    let error = take(&["src"], &hash).unwrap_err();
    assert!(matches!(error, CapsuleFault::InputsChanged { .. }));
    for path in [".", "", "..", "/etc"] {
        let error = take(&[path], &hash).unwrap_err();
        assert!(matches!(error, CapsuleFault::Input { .. }), "{path}");
    }
    let left = fs_err::read_dir(place.path()).unwrap().count();
    assert_eq!(left, 0, "snapshots go away");
    let inside = Snapshot::take(
        workspace.path(),
        workspace.path(),
        &declared,
        DIGEST,
        &hash,
        &cancel,
    );
    assert!(inside.unwrap_err().to_string().contains("TMPDIR"));
}
