//! Receipts, installations, and what is refused everywhere.

use bytes::Bytes;
use digest_text::Blake3Text;
use registry_store::{
    ArtifactPlace, InstallationFilter, InstallationStatus, Limits, Report, Store, Wanted,
};

use crate::fixture::{Package, at, channel, page, publish, released, upload};
use crate::root::Root;
use crate::suite::in_every_place;

in_every_place! {
    a_receipt_stands_beside_its_artifact
    installations_are_remembered_as_they_were_reported_last
    what_cannot_be_asked_is_refused
}

pub(crate) fn receipt_of(bytes: &[u8], more: &str) -> Bytes {
    let digest = Blake3Text::of(bytes).to_string();
    let hash = "0".repeat(64);
    let digest = digest.strip_prefix("blake3:").unwrap();
    let text = format!(
        "schema_version: 2\npipeline_hash: '{hash}'\nsteps: []\ntimestamp: 2026-01-01T00:00:00Z\n\
         total_duration_secs: 0\nsignature: null\nsigner_public_key: null\nattest_version: 0.1.0{more}\n\
         causal_events: []\ncausal_chain_hash: null\nprovenance:\n  invocation_id: null\n  started_at: null\n  \
         pipeline_name: null\n  source: null\n  runner_os: linux\n  runner_arch: x86_64\n  ci: null\n  steps: []\n  \
         artifacts:\n  - step: pack\n    path: a.tar.gz\n    kind: file\n    digest: '{digest}'\n    algorithm: blake3\n"
    );
    text.into_bytes().into()
}

async fn a_receipt_stands_beside_its_artifact(place: ArtifactPlace) {
    let root = Root::new();
    let store = root.open(place);
    let package = Package::new("acme", "1", "");
    let receipt = receipt_of(&package.bytes, "");
    let put = async |bytes: Bytes| {
        store
            .put_receipt(package.digest, bytes, "publisher".to_owned(), at(1))
            .await
    };
    assert_eq!(
        put(receipt.clone()).await.unwrap_err().wire().as_str(),
        "not_found"
    );
    upload(&store, &package, 0).await;
    for wrong in [
        Bytes::from_static(b"- no receipt\n"),
        receipt_of(b"other", ""),
    ] {
        let error = put(wrong).await.unwrap_err();
        assert_eq!(
            (error.wire().as_str(), error.wire().status()),
            ("receipt_mismatch", 422)
        );
    }
    assert!(put(receipt.clone()).await.unwrap());
    assert!(!put(receipt.clone()).await.unwrap());
    let other = put(receipt_of(&package.bytes, "x")).await.unwrap_err();
    assert_eq!(other.wire().as_str(), "conflict");
    assert_eq!(
        store
            .receipt(package.digest)
            .await
            .unwrap_err()
            .wire()
            .as_str(),
        "not_found"
    );

    assert!(
        publish(&store, &package, Some("stable"), 2)
            .await
            .unwrap()
            .release
            .receipt
    );
    let read = store.receipt(package.digest).await.unwrap();
    assert_eq!((read.bytes, read.stored_at), (receipt, at(1)));
    store.verify(package.digest).await.unwrap();
}

fn report(package: &Package, digit: char, host: &str, status: InstallationStatus) -> Report {
    Report {
        installation_id: digit.to_string().repeat(32).parse().unwrap(),
        host: host.to_owned(),
        plugin_id: package.id.clone(),
        release_id: package.release(),
        artifact_digest: package.digest,
        status,
        error: None,
    }
}

async fn installations_are_remembered_as_they_were_reported_last(place: ArtifactPlace) {
    let root = Root::new();
    let limits = Limits {
        installations: 3,
        ..Limits::default()
    };
    let store = Store::open(&root.path(), place, limits).unwrap();
    let (one, two) = (
        Package::new("acme", "1", ""),
        Package::new("other", "1", ""),
    );
    released(&store, &one, "stable", 0).await;
    released(&store, &two, "stable", 0).await;
    let say = async |report: Report| store.report(report, "host".to_owned(), at(1)).await;
    use InstallationStatus::{Failed, Installed, Removed};
    let unknown = Package::new("unknown", "1", "");
    let error = say(report(&unknown, 'a', "h1", Installed))
        .await
        .unwrap_err();
    assert_eq!(error.wire().as_str(), "not_found");
    let mixed = Report {
        artifact_digest: two.digest,
        ..report(&one, 'a', "h1", Installed)
    };
    assert_eq!(say(mixed).await.unwrap_err().wire().as_str(), "not_found");

    say(report(&one, 'a', "h1", Installed)).await.unwrap();
    say(report(&two, 'b', "h1", Installed)).await.unwrap();
    say(report(&one, 'c', "h2", Installed)).await.unwrap();
    let full = say(report(&one, 'd', "h2", Installed)).await.unwrap_err();
    assert_eq!(full.wire().as_str(), "limit_exceeded");
    let stolen = say(report(&two, 'a', "h1", Removed)).await.unwrap_err();
    assert_eq!(stolen.wire().as_str(), "conflict");
    let failed = Report {
        error: Some("no space".to_owned()),
        ..report(&one, 'a', "h3", Failed)
    };
    let said = say(failed).await.unwrap();
    assert_eq!(
        (said.host.as_str(), said.status, said.error.as_deref()),
        ("h3", Failed, Some("no space"))
    );
    assert_eq!(
        (said.reported_at, said.reported_by.as_str()),
        (at(1), "host")
    );

    let listed = async |plugin: Option<&Package>, host: Option<&str>| {
        let filter = InstallationFilter {
            plugin_id: plugin.map(|p| p.id.clone()),
            host: host.map(str::to_owned),
        };
        let mut found = String::new();
        let mut cursor = None;
        loop {
            let listed = store
                .installations(filter.clone(), page(1, cursor))
                .await
                .unwrap();
            found.extend(
                listed
                    .data
                    .iter()
                    .filter_map(|one| one.installation_id.as_str().chars().next()),
            );
            cursor = listed.next_cursor;
            if cursor.is_none() {
                return found;
            }
        }
    };
    assert_eq!(listed(None, None).await, "abc");
    assert_eq!(listed(Some(&one), None).await, "ac");
    assert_eq!(listed(None, Some("h1")).await, "b");
    assert_eq!(listed(Some(&one), Some("h2")).await, "c");
    assert_eq!(listed(Some(&two), Some("h2")).await, "");
    assert_eq!(listed(Some(&unknown), None).await, "");
}

async fn what_cannot_be_asked_is_refused(place: ArtifactPlace) {
    let root = Root::new();
    let store = root.open(place);
    let package = Package::new("acme", "1", "");
    released(&store, &package, "stable", 0).await;
    let (other, plugin) = (Package::new("other", "1", ""), package.id.clone());
    let refused = async |plugin_id, release_id, channel| {
        store
            .resolve(Wanted {
                plugin_id,
                release_id,
                channel,
            })
            .await
            .map(drop)
            .unwrap_err()
            .wire()
            .as_str()
    };
    let id = package.release();
    assert_eq!(refused(None, None, None).await, "invalid_request");
    assert_eq!(
        refused(None, None, Some(channel("stable"))).await,
        "invalid_request"
    );
    assert_eq!(
        refused(None, Some(id), Some(channel("stable"))).await,
        "invalid_request"
    );
    assert_eq!(
        refused(Some(other.id.clone()), Some(id), None).await,
        "not_found"
    );
    assert_eq!(
        refused(Some(plugin.clone()), Some(id), Some(channel("beta"))).await,
        "not_found"
    );
    assert_eq!(
        refused(Some(other.id.clone()), None, None).await,
        "not_found"
    );
    let both = Wanted {
        plugin_id: Some(plugin),
        release_id: Some(id),
        channel: Some(channel("stable")),
    };
    assert!(store.resolve(both).await.is_ok());

    for limit in [0, 101] {
        let error = store.catalog(None, page(limit, None)).await.unwrap_err();
        assert_eq!(error.wire().as_str(), "invalid_request");
    }
    for query in [
        String::new(),
        "a\n".to_owned(),
        "\0".to_owned(),
        "é".repeat(201),
    ] {
        let error = store.catalog(Some(query), page(1, None)).await.unwrap_err();
        assert_eq!(error.wire().as_str(), "invalid_request");
    }
    assert!(
        store
            .catalog(Some("é".repeat(200)), page(1, None))
            .await
            .is_ok()
    );
    for reason in [String::new(), "x".repeat(1025), "a\u{7}".to_owned()] {
        let error = store.yank(id, Some(reason), at(1)).await.unwrap_err();
        assert_eq!(error.wire().as_str(), "invalid_request");
    }
    for host in ["", "a\n", &"h".repeat(256)] {
        let bad = report(&package, 'a', host, InstallationStatus::Installed);
        let error = store
            .report(bad, "host".to_owned(), at(1))
            .await
            .unwrap_err();
        assert_eq!(error.wire().as_str(), "invalid_request");
    }
    let mut long = report(&package, 'a', "h", InstallationStatus::Failed);
    long.error = Some("e".repeat(4097));
    assert!(store.report(long, "host".to_owned(), at(1)).await.is_err());
    store.ping().await.unwrap();
}
