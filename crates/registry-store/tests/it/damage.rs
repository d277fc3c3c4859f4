//! What is kept is never handed out as something else.

use std::path::PathBuf;

use registry_store::{ArtifactPlace, StoreError};

use crate::fixture::{Package, all, at, publish, released, upload};
use crate::root::Root;

fn file(root: &Root, package: &Package) -> PathBuf {
    let hex = package.digest.to_string().replace("sha256:", "");
    root.path()
        .join("artifacts/sha256")
        .join(&hex[..2])
        .join(hex)
}

#[tokio::test]
async fn bytes_that_are_missing_or_of_another_length_are_not_served() {
    let root = Root::new();
    let store = root.open(ArtifactPlace::Disk);
    let package = Package::new("acme", "1", "");
    released(&store, &package, "stable", 0).await;
    let path = file(&root, &package);
    let damaged = async |word: &str| {
        for outcome in [
            all(store.read(package.digest, 0..1).await).await.map(drop),
            all(store.read(package.digest, 0..0).await).await.map(drop),
            store.verify(package.digest).await,
        ] {
            let error = outcome.unwrap_err();
            assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
            assert!(error.to_string().contains(word), "{error}");
            assert_eq!((error.wire().status(), error.is_refusal()), (500, false));
        }
    };
    fs_err::write(&path, b"short").unwrap();
    damaged("it has 5 bytes").await;
    fs_err::remove_file(&path).unwrap();
    damaged("it is missing").await;
    std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
    damaged("symbolic link").await;
    fs_err::remove_file(&path).unwrap();

    // The same bytes again mend it.
    assert!(!upload(&store, &package, 1).await.created);
    store.verify(package.digest).await.unwrap();
    assert!(all(store.read(package.digest, 0..1).await).await.is_ok());
}

#[tokio::test]
async fn other_bytes_of_the_same_length_are_found_by_verifying() {
    let root = Root::new();
    let store = root.open(ArtifactPlace::Disk);
    let package = Package::new("acme", "1", "");
    released(&store, &package, "stable", 0).await;
    store.verify(package.digest).await.unwrap();
    let path = file(&root, &package);
    let mut bytes = fs_err::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs_err::write(&path, bytes).unwrap();
    let error = store.verify(package.digest).await.unwrap_err();
    assert!(
        error.to_string().contains("its bytes are others"),
        "{error}"
    );

    // The same bytes again mend it, and who else may read it.
    assert!(!upload(&store, &package, 1).await.created);
    store.verify(package.digest).await.unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    fs_err::set_permissions(&path, open).unwrap();
    store.verify(package.digest).await.unwrap_err();
    upload(&store, &package, 2).await;
    store.verify(package.digest).await.unwrap();

    let unknown = store
        .verify(digest_text::Sha256Text::of(""))
        .await
        .unwrap_err();
    assert!(matches!(unknown, StoreError::NotFound { .. }));
}

#[tokio::test]
async fn nothing_is_published_whose_bytes_are_gone() {
    let root = Root::new();
    let store = root.open(ArtifactPlace::Disk);
    let package = Package::new("acme", "1", "");
    upload(&store, &package, 0).await;
    fs_err::remove_file(file(&root, &package)).unwrap();
    let error = publish(&store, &package, Some("stable"), 0)
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    assert!(
        !store
            .artifact(package.digest)
            .await
            .unwrap()
            .unwrap()
            .released
    );
}

#[tokio::test]
async fn bytes_that_end_while_they_are_read_end_the_stream_with_an_error() {
    let root = Root::new();
    let store = root.open(ArtifactPlace::Disk);
    let noise: Vec<u8> = (0..400_000u32)
        .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    let package = Package::with_file("acme", "1", "", &noise);
    released(&store, &package, "stable", 0).await;
    let length = package.bytes.len() as u64;
    let stream = store.read(package.digest, 0..length).await.unwrap();
    let cut = fs_err::OpenOptions::new()
        .write(true)
        .open(file(&root, &package))
        .unwrap();
    cut.set_len(100_000).unwrap();
    let error = all(Ok(stream)).await.unwrap_err();
    assert!(error.to_string().contains("ends too early"), "{error}");
}

#[tokio::test]
async fn a_receipt_that_was_changed_is_not_served() {
    let root = Root::new();
    let store = root.open(ArtifactPlace::Disk);
    let package = Package::new("acme", "1", "");
    released(&store, &package, "stable", 0).await;
    let receipt = crate::suite::asides::receipt_of(&package.bytes, "");
    store
        .put_receipt(package.digest, receipt, "p".to_owned(), at(0))
        .await
        .unwrap();
    let mut name = file(&root, &package).into_os_string();
    name.push(".receipt");
    let mut bytes = fs_err::read(PathBuf::from(&name)).unwrap();
    bytes[0] ^= 1;
    fs_err::write(PathBuf::from(&name), bytes).unwrap();
    for outcome in [
        store.receipt(package.digest).await.map(drop),
        store.verify(package.digest).await,
    ] {
        assert!(
            matches!(outcome, Err(StoreError::Damaged { .. })),
            "{outcome:?}"
        );
    }
}
