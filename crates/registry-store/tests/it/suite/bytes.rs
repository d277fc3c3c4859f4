//! Bytes: uploads, reading, and what nobody released.

use bytes::Bytes;
use digest_text::Sha256Text;
use registry_store::{ArtifactPlace, Limits, ReleaseStatus, Store, StoreError};

use crate::fixture::{Package, all, at, catalog, channel, publish, released, resolve, upload};
use crate::root::Root;
use crate::suite::in_every_place;

in_every_place! {
    an_upload_is_seen_once_it_is_released
    bytes_that_are_not_what_they_should_be_change_nothing
    parts_of_an_artifact_are_read_exactly
    uploads_that_nobody_releases_are_removed
    so_many_packages_are_in_memory_and_no_more
}

async fn an_upload_is_seen_once_it_is_released(place: ArtifactPlace) {
    let root = Root::new();
    let store = root.open(place);
    let package = Package::new("acme.tools", "1.0.0", "Tools of Acme");
    let missing = publish(&store, &package, None, 0).await;
    assert!(matches!(missing, Err(StoreError::NotFound { .. })));

    let uploaded = upload(&store, &package, 0).await;
    assert!(uploaded.created);
    assert_eq!(uploaded.plugin_id, package.id);
    assert_eq!(uploaded.version.as_deref(), Some("1.0.0"));
    assert_eq!(
        (uploaded.files, uploaded.artifact_bytes),
        (2, package.bytes.len() as u64)
    );
    assert!(!upload(&store, &package, 1).await.created);

    let hidden = all(store.read(package.digest, 0..1).await).await;
    assert!(matches!(hidden, Err(StoreError::NotFound { .. })));
    assert!(catalog(&store, None, 10).await.is_empty());
    assert!(resolve(&store, "acme.tools", None).await.is_err());
    let known = store.artifact(package.digest).await.unwrap().unwrap();
    assert_eq!((known.released, known.uploaded_at), (false, at(1)));

    let published = publish(&store, &package, Some("stable"), 2).await.unwrap();
    assert!(published.created);
    let release = resolve(&store, "acme.tools", None).await.unwrap();
    assert_eq!(release, published.release);
    assert_eq!(release.release_id, package.release());
    assert_eq!(release.channels, [channel("stable")]);
    assert_eq!(
        (release.published_at, release.publisher.as_str()),
        (at(2), "publisher")
    );
    assert_eq!(release.status, ReleaseStatus::Published);
    let json = String::from_utf8(strict_json::to_line(&release)).unwrap();
    let manifest =
        r#""manifest":{"$schema":"https://agent-plugins.org/schemas/1.0.0/plugin.schema.json","#;
    assert!(json.contains(manifest), "{json}");
    assert!(
        json.contains(r#""yanked_reason":null,"receipt":false"#),
        "{json}"
    );

    let length = package.bytes.len() as u64;
    let bytes = all(store.read(package.digest, 0..length).await)
        .await
        .unwrap();
    assert_eq!(bytes, package.bytes);
    assert_eq!(catalog(&store, None, 10).await, ["acme.tools"]);
}

async fn bytes_that_are_not_what_they_should_be_change_nothing(place: ArtifactPlace) {
    let root = Root::new();
    let limits = Limits {
        archive: plugin_archive::Limits {
            archive_bytes: 4096,
            ..plugin_archive::Limits::default()
        },
        ..Limits::default()
    };
    let store = Store::open(&root.path(), place, limits).unwrap();
    let check = |bytes: Bytes, digest| {
        let store = store.clone();
        async move {
            store
                .admit()
                .await
                .unwrap()
                .check(bytes, digest)
                .await
                .map(drop)
                .unwrap_err()
        }
    };
    let package = Package::new("acme", "1", "");
    let error = check(package.bytes.clone(), Sha256Text::of("")).await;
    assert_eq!(error.wire().as_str(), "integrity_mismatch");

    let noise: Vec<u8> = (0..4097u32).flat_map(u32::to_le_bytes).take(4097).collect();
    let error = check(noise.clone().into(), Sha256Text::of(&noise)).await;
    assert_eq!(error.wire().status(), 413);
    assert!(error.to_string().contains("max_archive_bytes"), "{error}");
    let error = check(Bytes::from_static(b"no"), Sha256Text::of("no")).await;
    assert_eq!(
        (error.wire().status(), error.wire().as_str()),
        (422, "invalid_package")
    );
    assert!(error.to_string().contains("gzip_header"), "{error}");

    let files = plugin_archive::Files::from([("plugin.json".to_owned(), b"{}".to_vec())]);
    let rejected = Package::packed("none", &files);
    let error = check(rejected.bytes, rejected.digest).await;
    assert_eq!(error.wire().as_str(), "invalid_package");
    assert!(error.to_string().starts_with("`plugin.json`: "), "{error}");
    let long = Package::new("acme", &"1".repeat(257), "");
    let error = check(long.bytes, long.digest).await;
    assert_eq!(error.wire().as_str(), "limit_exceeded");

    assert!(store.digests(None, 10).await.unwrap().is_empty());
}

async fn parts_of_an_artifact_are_read_exactly(place: ArtifactPlace) {
    let root = Root::new();
    let store = root.open(place);
    let noise: Vec<u8> = (0..50_000u32)
        .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    let package = Package::with_file("acme", "1", "", &noise);
    released(&store, &package, "stable", 0).await;
    let length = package.bytes.len() as u64;
    assert!(length > 130_000, "several pieces");
    for range in [
        0..length,
        0..1,
        length - 1..length,
        65_535..65_537,
        1..131_073,
        0..0,
        length..length,
    ] {
        let expected = &package.bytes
            [usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()];
        let read = all(store.read(package.digest, range.clone()).await)
            .await
            .unwrap();
        assert!(read == expected, "{range:?}");
    }
    #[expect(clippy::reversed_empty_ranges, reason = "what is refused")]
    for range in [0..length + 1, length + 1..length + 2, 2..1] {
        let refused = store.read(package.digest, range).await.err().unwrap();
        assert_eq!(refused.wire().as_str(), "invalid_request");
    }
}

async fn uploads_that_nobody_releases_are_removed(place: ArtifactPlace) {
    let root = Root::new();
    let store = root.open(place);
    let (kept, left) = (Package::new("kept", "1", ""), Package::new("left", "1", ""));
    let again = Package::new("again", "1", "");
    released(&store, &kept, "stable", 0).await;
    upload(&store, &left, 0).await;
    upload(&store, &again, 0).await;
    upload(&store, &again, 5).await;
    assert_eq!(store.collect(at(23)).await.unwrap().uploads, 0);
    let collected = store.collect(at(24)).await.unwrap();
    assert_eq!(
        (collected.uploads, collected.bytes),
        (1, left.bytes.len() as u64)
    );
    assert!(store.artifact(left.digest).await.unwrap().is_none());
    assert!(publish(&store, &left, None, 24).await.is_err());
    assert!(store.artifact(again.digest).await.unwrap().is_some());
    assert_eq!(store.collect(at(1_000)).await.unwrap().uploads, 1);
    store.verify(kept.digest).await.unwrap();
    assert!(upload(&store, &left, 1_000).await.created);
    assert!(publish(&store, &left, None, 1_000).await.unwrap().created);
    store.verify(left.digest).await.unwrap();
}

async fn so_many_packages_are_in_memory_and_no_more(place: ArtifactPlace) {
    let root = Root::new();
    let limits = Limits {
        uploads: 2,
        ..Limits::default()
    };
    let store = Store::open(&root.path(), place, limits).unwrap();
    let package = Package::new("acme", "1", "");
    let first = store.admit().await.unwrap();
    let second = store
        .admit()
        .await
        .unwrap()
        .check(package.bytes.clone(), package.digest)
        .await
        .unwrap();
    let third = store.admit();
    tokio::pin!(third);
    let early = tokio::time::timeout(std::time::Duration::from_millis(50), &mut third).await;
    assert!(early.is_err(), "a checked package is still in memory");
    store.upload(second, at(0)).await.unwrap();
    third.await.unwrap();
    drop(first);
}
