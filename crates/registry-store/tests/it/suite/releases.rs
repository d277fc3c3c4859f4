//! Releases, channels, and what the catalog shows of them.

use registry_store::{ArtifactPlace, Limits, ReleaseStatus, Store, Wanted};

use crate::fixture::{
    Package, all, at, catalog, channel, page, publish, released, resolve, upload,
};
use crate::root::Root;
use crate::suite::in_every_place;

in_every_place! {
    the_same_bytes_are_the_same_release
    other_bytes_with_the_same_version_are_another_release
    a_channel_moves_by_promotion_alone
    a_yanked_release_is_found_by_its_id_alone
    a_plugin_is_listed_by_its_stable_release_or_its_newest
    releases_are_listed_from_the_newest_on
}

async fn the_same_bytes_are_the_same_release(place: ArtifactPlace) {
    let root = Root::new();
    let store = root.open(place);
    let (one, two) = (Package::new("acme", "1", ""), Package::new("acme", "2", ""));
    let first = released(&store, &one, "stable", 0).await;
    upload(&store, &one, 1).await;
    let again = publish(&store, &one, Some("stable"), 1).await.unwrap();
    assert!(!again.created);
    assert_eq!(again.release, first);

    // A channel that nobody uses may be taken with it, one that points elsewhere may not.
    let beta = publish(&store, &one, Some("beta"), 2).await.unwrap();
    assert!(!beta.created);
    assert_eq!(beta.release.channels, [channel("beta"), channel("stable")]);
    released(&store, &two, "stable", 3).await;
    let back = publish(&store, &one, Some("stable"), 4).await.unwrap_err();
    assert_eq!(back.wire().as_str(), "conflict");
    assert_eq!(
        resolve(&store, "acme", None).await.unwrap().release_id,
        two.release()
    );
    assert!(!publish(&store, &one, None, 5).await.unwrap().created);
}

async fn other_bytes_with_the_same_version_are_another_release(place: ArtifactPlace) {
    let root = Root::new();
    let store = root.open(place);
    let one = Package::with_file("acme", "1", "", b"one");
    let two = Package::with_file("acme", "1", "", b"two");
    let first = released(&store, &one, "stable", 0).await;
    let second = released(&store, &two, "stable", 1).await;
    assert_ne!(first.release_id, second.release_id);
    let wanted = Wanted {
        release_id: Some(first.release_id),
        ..Wanted::default()
    };
    let still = store.resolve(wanted).await.unwrap();
    assert_eq!(still.artifact_digest, one.digest);
    assert_eq!(still.channels, []);
}

async fn a_channel_moves_by_promotion_alone(place: ArtifactPlace) {
    let root = Root::new();
    let limits = Limits {
        channels: 3,
        ..Limits::default()
    };
    let store = Store::open(&root.path(), place, limits).unwrap();
    let (one, two) = (Package::new("acme", "1", ""), Package::new("acme", "2", ""));
    let other = Package::new("other", "1", "");
    released(&store, &one, "stable", 0).await;
    released(&store, &two, "beta", 1).await;
    released(&store, &other, "stable", 1).await;
    let promote = async |to: &str, release, expected| {
        store
            .promote(one.id.clone(), channel(to), release, expected, at(2))
            .await
    };
    let moved = promote("stable", two.release(), Some(two.release()))
        .await
        .unwrap_err();
    assert_eq!(moved.wire().as_str(), "conflict");
    assert!(
        moved.to_string().contains(&one.release().to_string()),
        "{moved}"
    );
    let unset = promote("new", two.release(), Some(two.release()))
        .await
        .unwrap_err();
    assert!(unset.to_string().contains("no release"), "{unset}");
    let release = promote("stable", two.release(), Some(one.release()))
        .await
        .unwrap();
    assert_eq!(release.channels, [channel("beta"), channel("stable")]);
    promote("new", one.release(), None).await.unwrap();
    let many = promote("fourth", one.release(), None).await.unwrap_err();
    assert_eq!(many.wire().as_str(), "limit_exceeded");
    assert!(resolve(&store, "acme", Some("fourth")).await.is_err());

    let foreign = promote("stable", other.release(), None).await.unwrap_err();
    assert_eq!(foreign.wire().as_str(), "not_found");
    store.yank(one.release(), None, at(3)).await.unwrap();
    let yanked = promote("stable", one.release(), None).await.unwrap_err();
    assert_eq!(
        (yanked.wire().as_str(), yanked.wire().status()),
        ("release_yanked", 409)
    );
    assert_eq!(
        resolve(&store, "acme", None).await.unwrap().release_id,
        two.release()
    );
}

async fn a_yanked_release_is_found_by_its_id_alone(place: ArtifactPlace) {
    let root = Root::new();
    let store = root.open(place);
    let package = Package::new("acme", "1", "");
    released(&store, &package, "stable", 0).await;
    let yanked = store
        .yank(package.release(), Some("broken".to_owned()), at(1))
        .await
        .unwrap();
    assert_eq!(yanked.status, ReleaseStatus::Yanked);
    assert_eq!(yanked.yanked_reason.as_deref(), Some("broken"));
    // Without a reason the one that was given stays.
    assert_eq!(
        store.yank(package.release(), None, at(2)).await.unwrap(),
        yanked
    );
    let error = resolve(&store, "acme", None).await.unwrap_err();
    assert_eq!(
        (error.wire().as_str(), error.wire().status()),
        ("release_yanked", 410)
    );
    let wanted = Wanted {
        release_id: Some(package.release()),
        ..Wanted::default()
    };
    assert_eq!(store.resolve(wanted).await.unwrap(), yanked);
    assert!(all(store.read(package.digest, 0..1).await).await.is_ok());
    assert!(catalog(&store, None, 10).await.is_empty());
    let error = publish(&store, &package, Some("stable"), 3)
        .await
        .unwrap_err();
    assert_eq!(
        (error.wire().as_str(), error.wire().status()),
        ("release_yanked", 409)
    );

    let back = store.unyank(package.release(), at(4)).await.unwrap();
    assert_eq!(
        (back.status, back.yanked_reason),
        (ReleaseStatus::Published, None)
    );
    assert!(resolve(&store, "acme", None).await.is_ok());
    assert_eq!(catalog(&store, Some("cme"), 10).await, ["acme"]);
    let unknown = store
        .yank(
            "r-00000000000000000000000000000000".parse().unwrap(),
            None,
            at(5),
        )
        .await;
    assert_eq!(unknown.unwrap_err().wire().as_str(), "not_found");
}

async fn a_plugin_is_listed_by_its_stable_release_or_its_newest(place: ArtifactPlace) {
    let root = Root::new();
    let store = root.open(place);
    let one = Package::new("acme", "1", "first words");
    let two = Package::new("acme", "2", "second words");
    released(&store, &one, "old", 0).await;
    let described = async || {
        let listed = store.catalog(None, page(10, None)).await.unwrap();
        let entry = listed.data.into_iter().next().unwrap();
        (
            entry.description.unwrap(),
            entry
                .channels
                .into_keys()
                .map(|name| name.to_string())
                .collect::<Vec<_>>(),
        )
    };
    upload(&store, &two, 1).await;
    publish(&store, &two, Some("beta"), 1).await.unwrap();
    assert_eq!(
        described().await,
        (
            "second words".to_owned(),
            vec!["beta".to_owned(), "old".to_owned()]
        )
    );
    store
        .promote(
            one.id.clone(),
            channel("stable"),
            one.release(),
            None,
            at(2),
        )
        .await
        .unwrap();
    assert_eq!(described().await.0, "first words");
    assert_eq!(catalog(&store, Some("FIRST"), 10).await, ["acme"]);
    assert!(catalog(&store, Some("second"), 10).await.is_empty());
    store.yank(one.release(), None, at(3)).await.unwrap();
    assert_eq!(
        described().await,
        ("second words".to_owned(), vec!["beta".to_owned()])
    );
    assert_eq!(catalog(&store, Some("second w"), 10).await, ["acme"]);
}

async fn releases_are_listed_from_the_newest_on(place: ArtifactPlace) {
    let root = Root::new();
    let store = root.open(place);
    let packages: Vec<_> = (0..5)
        .map(|n| Package::new("acme", &n.to_string(), ""))
        .collect();
    for (hours, package) in (0..).zip(&packages) {
        released(&store, package, "stable", hours).await;
    }
    store
        .yank(packages[3].release(), None, at(9))
        .await
        .unwrap();
    let plugin = || packages[0].id.clone();
    let mut versions = Vec::new();
    let mut cursor = None;
    loop {
        let listed = store.releases(plugin(), page(2, cursor)).await.unwrap();
        assert!(listed.data.iter().all(|release| release.manifest.is_none()));
        versions.extend(
            listed
                .data
                .into_iter()
                .filter_map(|release| release.version),
        );
        cursor = listed.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(versions, ["4", "3", "2", "1", "0"]);
    let unknown = store
        .releases("none".parse().unwrap(), page(2, None))
        .await
        .unwrap_err();
    assert_eq!(unknown.wire().as_str(), "not_found");
    let strange = store
        .releases(plugin(), page(2, Some("00".to_owned())))
        .await
        .unwrap_err();
    assert_eq!(strange.wire().as_str(), "invalid_request");
}
