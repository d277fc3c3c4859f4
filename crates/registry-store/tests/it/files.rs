//! The folder: owner-only, one registry, nobody else's database.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use registry_store::{ArtifactPlace, Limits, Store, StoreError};

use crate::fixture::{Package, released, resolve};
use crate::root::Root;

fn open(path: &Path) -> Result<Store, StoreError> {
    Store::open(path, ArtifactPlace::Disk, Limits::default())
}

fn modes(path: &Path) {
    for entry in fs_err::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs_err::symlink_metadata(&path).unwrap();
        let expected = if metadata.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(metadata.mode() & 0o7777, expected, "{}", path.display());
        if metadata.is_dir() {
            modes(&path);
        }
    }
}

#[tokio::test]
async fn nobody_else_may_look_and_what_was_kept_is_there_again() {
    let root = Root::new();
    let package = Package::new("acme", "1", "");
    let store = open(&root.path()).unwrap();
    let release = released(&store, &package, "stable", 0).await;
    modes(root.path().parent().unwrap());
    drop(store);
    let store = open(&root.path()).unwrap();
    assert_eq!(resolve(&store, "acme", None).await.unwrap(), release);
    store.verify(package.digest).await.unwrap();
}

#[test]
fn one_registry_has_a_folder() {
    let root = Root::new();
    let store = open(&root.path()).unwrap();
    let error = open(&root.path()).unwrap_err();
    assert!(matches!(error, StoreError::AlreadyOwned { .. }), "{error}");
    assert!(
        error.to_string().contains("another running registry"),
        "{error}"
    );
    drop(store);
    open(&root.path()).unwrap();
}

#[tokio::test]
async fn what_others_may_touch_is_refused_as_it_is() {
    let chmod = |path: &Path, mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        fs_err::set_permissions(path, mode).unwrap();
    };
    let package = Package::new("acme", "1", "");
    let hex = package.digest.to_string().replace("sha256:", "");
    let shard = format!("artifacts/sha256/{}", &hex[..2]);
    for name in ["", "registry.sqlite", "registry.lock", "artifacts", &shard] {
        let root = Root::new();
        let store = open(&root.path()).unwrap();
        released(&store, &package, "stable", 0).await;
        drop(store);
        let path = root.path().join(name);
        let mode = fs_err::metadata(&path).unwrap().mode() & 0o777;
        chmod(&path, mode | 0o040);
        let error = open(&root.path()).unwrap_err();
        assert!(
            matches!(error, StoreError::Insecure { .. }),
            "{name}: {error}"
        );
        assert_eq!(
            fs_err::metadata(&path).unwrap().mode() & 0o777,
            mode | 0o040
        );
        chmod(&path, mode);
        open(&root.path()).unwrap();
    }
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    let root = Root::new();
    drop(open(&root.path()).unwrap());
    let path = root.path().join("registry.sqlite");
    let bytes = [b'x'; 1024];
    fs_err::write(&path, bytes).unwrap();
    let error = open(&root.path()).unwrap_err();
    assert!(error.to_string().contains("no SQLite"), "{error}");
    assert_eq!(fs_err::read(&path).unwrap(), bytes);
    fs_err::write(&path, b"").unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE x (y)").unwrap();
    drop(other);
    let error = open(&root.path()).unwrap_err();
    assert!(error.to_string().contains("another program"), "{error}");
}
