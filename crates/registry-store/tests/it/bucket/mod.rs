//! Artifacts in a bucket whose service does what it should not.

pub(crate) mod service;

use std::time::Duration;

use axum::http::Method;
use bytes::Bytes;
use registry_store::{ArtifactPlace, Limits, S3, Store, StoreError};

use self::service::{Act, Service};
use crate::fixture::{Package, all, at, publish, released, upload};
use crate::root::Root;
use crate::suite::asides::receipt_of;

struct Scene {
    service: Service,
    root: Root,
    store: Store,
    package: Package,
}

impl Scene {
    async fn new() -> Self {
        Self::with(|_| ()).await
    }

    async fn with(change: impl FnOnce(&mut S3)) -> Self {
        let (service, root) = (Service::start().await, Root::new());
        let mut s3 = service.s3();
        change(&mut s3);
        let store = root.open(ArtifactPlace::S3(Box::new(s3)));
        let noise: Vec<u8> = (0..20_000u32)
            .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
            .collect();
        Self {
            service,
            root,
            store,
            package: Package::with_file("acme", "1", "", &noise),
        }
    }

    async fn upload(&self) -> Result<(), StoreError> {
        let admission = self.store.admit().await.unwrap();
        let Package { bytes, digest, .. } = self.package.clone();
        let checked = admission.check(bytes, digest).await.unwrap();
        self.store.upload(checked, at(0)).await.map(drop)
    }

    async fn read(&self) -> Result<Vec<u8>, StoreError> {
        let length = self.package.bytes.len() as u64;
        all(self.store.read(self.package.digest, 0..length).await).await
    }
}

/// Said to the client as something that passes, and to the log with the reason.
fn passes(error: &StoreError, reason: &str) {
    assert!(matches!(error, StoreError::ArtifactsAway { .. }), "{error}");
    assert_eq!((error.wire().status(), error.is_refusal()), (503, false));
    told(error, reason);
}

fn told(error: &StoreError, reason: &str) {
    let text = bounded::text::with_causes(error);
    assert!(text.contains(reason), "{text}");
    assert!(!text.contains("canary"), "{text}");
    assert!(!error.to_string().contains(reason), "{error}");
}

#[tokio::test]
async fn artifacts_and_receipts_are_objects_below_the_prefix_until_they_are_removed() {
    let scene = Scene::new().await;
    scene.upload().await.unwrap();
    let receipt = receipt_of(&scene.package.bytes, "");
    let by = "publisher".to_owned();
    let digest = scene.package.digest;
    let put = scene.store.put_receipt(digest, receipt, by, at(0));
    assert!(put.await.unwrap());
    let hex = digest.to_string().replace("sha256:", "");
    let name = format!("/plugins/a/registry/sha256/{}/{hex}", &hex[..2]);
    assert_eq!(
        scene.service.names(),
        [name.clone(), format!("{name}.receipt")]
    );
    assert_eq!(scene.store.collect(at(24)).await.unwrap().uploads, 1);
    assert!(scene.service.names().is_empty());
    assert_eq!(scene.service.count(&Method::DELETE), 2);
    scene.service.check();
}

#[tokio::test]
async fn what_fails_for_a_moment_is_tried_again() {
    let scene = Scene::new().await;
    for (method, status, code) in [
        (Method::PUT, 503, "SlowDown"),
        (Method::PUT, 500, "InternalError"),
        (Method::HEAD, 503, "SlowDown"),
        (Method::GET, 429, "TooManyRequests"),
    ] {
        scene.service.next(method, Act::Refuse(status, code));
    }
    released(&scene.store, &scene.package, "stable", 0).await;
    assert_eq!(scene.read().await.unwrap(), scene.package.bytes);
    assert_eq!(scene.service.count(&Method::PUT), 3);
    assert_eq!(scene.service.count(&Method::GET), 2);
    scene.service.check();
}

#[tokio::test]
async fn what_goes_on_failing_is_given_up_and_changes_nothing() {
    let scene = Scene::new().await;
    for _ in 0..5 {
        scene
            .service
            .next(Method::PUT, Act::Refuse(503, "SlowDown"));
    }
    passes(&scene.upload().await.unwrap_err(), "SlowDown");
    assert!(
        publish(&scene.store, &scene.package, None, 0)
            .await
            .is_err()
    );
    scene.service.check();
    // And the same upload succeeds later.
    released(&scene.store, &scene.package, "stable", 1).await;
    assert_eq!(scene.read().await.unwrap(), scene.package.bytes);
}

#[tokio::test]
async fn who_refuses_is_not_asked_again_and_says_why() {
    let scene = Scene::new().await;
    for (asked, (status, code)) in (1..).zip([
        (404, "NoSuchBucket"),
        (403, "AccessDenied"),
        (409, "OperationAborted"),
        (412, "PreconditionFailed"),
    ]) {
        scene.service.next(Method::PUT, Act::Refuse(status, code));
        let error = scene.upload().await.unwrap_err();
        assert_eq!(error.wire().status(), 500, "{error}");
        told(&error, code);
        assert_eq!(scene.service.count(&Method::PUT), asked);
    }
    scene.service.next(
        Method::PUT,
        Act::Refuse(400, "AuthorizationHeaderMalformed"),
    );
    passes(
        &scene.upload().await.unwrap_err(),
        "AuthorizationHeaderMalformed",
    );
    released(&scene.store, &scene.package, "stable", 0).await;
    scene
        .service
        .next(Method::GET, Act::Refuse(403, "AccessDenied"));
    told(&scene.read().await.unwrap_err(), "AccessDenied");
    scene.service.check();
}

#[tokio::test]
async fn a_redirect_is_followed_nowhere() {
    let (scene, elsewhere) = (Scene::new().await, Service::start().await);
    let to = || Act::Redirect(format!("{}/plugins/x", elsewhere.endpoint));
    scene.service.next(Method::PUT, to());
    passes(&scene.upload().await.unwrap_err(), "307");
    released(&scene.store, &scene.package, "stable", 0).await;
    scene.service.next(Method::GET, to());
    passes(&scene.read().await.unwrap_err(), "307");
    scene.service.next(Method::HEAD, to());
    let looked = publish(&scene.store, &scene.package, None, 0).await;
    passes(&looked.unwrap_err(), "307");
    for method in [Method::GET, Method::HEAD, Method::PUT] {
        assert_eq!(elsewhere.count(&method), 0);
    }
    scene.service.check();
}

#[tokio::test]
async fn a_body_that_is_cut_is_asked_for_again_from_there() {
    let scene = Scene::new().await;
    released(&scene.store, &scene.package, "stable", 0).await;
    for _ in 0..2 {
        scene.service.next(Method::GET, Act::Cut);
    }
    assert!(scene.read().await.unwrap() == scene.package.bytes);
    assert_eq!(scene.service.count(&Method::GET), 3);
    for _ in 0..9 {
        scene.service.next(Method::GET, Act::Cut);
    }
    let error = scene.read().await.unwrap_err();
    assert!(matches!(error, StoreError::ArtifactsAway { .. }), "{error}");
}

#[tokio::test]
async fn bytes_that_are_missing_or_of_another_length_are_not_served() {
    let scene = Scene::new().await;
    released(&scene.store, &scene.package, "stable", 0).await;
    let digest = scene.package.digest;
    let length = scene.package.bytes.len() as u64;
    let damaged = async |word: &str| {
        for range in [0..0, 0..1, length - 1..length, 0..length] {
            let error = all(scene.store.read(digest, range).await).await;
            let error = error.unwrap_err();
            assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
            assert!(error.to_string().contains(word), "{error}");
        }
        let error = scene.store.verify(digest).await.unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
    };
    scene.service.change(|bytes| Some(bytes.slice(..5)));
    damaged("it has 5 bytes").await;
    scene.service.change(|bytes| {
        Some(
            [bytes, &b"and more than that"[..]]
                .concat()
                .repeat(20_000)
                .into(),
        )
    });
    damaged("bytes, not").await;
    scene.service.change(|_| None);
    damaged("it is missing").await;
    assert!(!upload(&scene.store, &scene.package, 1).await.created);
    scene.store.verify(digest).await.unwrap();
    scene.service.next(Method::GET, Act::Half);
    assert!(scene.read().await.is_err());
    scene.service.check();
}

#[tokio::test]
async fn more_bytes_than_were_asked_for_are_not_handed_on() {
    let scene = Scene::new().await;
    released(&scene.store, &scene.package, "stable", 0).await;
    scene.service.next(Method::GET, Act::Whole);
    let error = all(scene.store.read(scene.package.digest, 10..20).await).await;
    let error = error.unwrap_err();
    assert!(
        error.to_string().contains("does not end where it should"),
        "{error}"
    );
}

#[tokio::test]
async fn what_an_upload_finds_in_its_place_is_replaced() {
    let scene = Scene::new().await;
    scene.upload().await.unwrap();
    // Of the same length, so that only the bytes tell.
    scene
        .service
        .change(|bytes| Some(vec![0; bytes.len()].into()));
    // Another registry, restored from a copy that does not know of it.
    let root = Root::new();
    let store = Store::open(&root.path(), scene.service.place(), Limits::default()).unwrap();
    assert!(upload(&store, &scene.package, 0).await.created);
    store.verify(scene.package.digest).await.unwrap();
    scene.service.check();
}

#[tokio::test]
async fn slow_pieces_are_waited_for() {
    let scene = Scene::new().await;
    released(&scene.store, &scene.package, "stable", 0).await;
    scene.service.next(Method::GET, Act::Drip);
    assert!(scene.read().await.unwrap() == scene.package.bytes);
    scene.service.check();
}

#[tokio::test]
async fn a_service_that_says_nothing_is_left_and_asked_again() {
    let scene = Scene::with(|s3| s3.silence = Duration::from_millis(300)).await;
    released(&scene.store, &scene.package, "stable", 0).await;
    scene.service.next(Method::GET, Act::Nothing);
    assert!(scene.read().await.unwrap() == scene.package.bytes);
    for _ in 0..5 {
        scene.service.next(Method::GET, Act::Nothing);
    }
    let error = scene.read().await.unwrap_err();
    assert!(matches!(error, StoreError::ArtifactsAway { .. }), "{error}");
    scene.service.check();
}

#[tokio::test]
async fn a_registry_that_is_opened_again_finds_what_it_kept() {
    let scene = Scene::new().await;
    released(&scene.store, &scene.package, "stable", 0).await;
    let Scene {
        service,
        root,
        store,
        package,
    } = scene;
    drop(store);
    // The threads of the database end a moment later.
    let store = loop {
        match Store::open(&root.path(), service.place(), Limits::default()) {
            Ok(store) => break store,
            Err(StoreError::AlreadyOwned { .. }) => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Err(error) => panic!("{error}"),
        }
    };
    store.verify(package.digest).await.unwrap();
    let part = all(store.read(package.digest, 3..9).await).await.unwrap();
    assert_eq!(Bytes::from(part), package.bytes.slice(3..9));
    service.check();
}

#[tokio::test]
async fn a_look_tells_what_is_wrong_with_a_bucket_before_anything_is_written() {
    let scene = Scene::new().await;
    scene.store.check_place().await.unwrap();
    for (status, code) in [(404, "NoSuchBucket"), (403, "InvalidAccessKeyId")] {
        scene.service.next(Method::GET, Act::Refuse(status, code));
        let error = scene.store.check_place().await.unwrap_err();
        told(&error, code);
        let text = bounded::text::with_causes(&error);
        assert_eq!(text.matches(code).count(), 1, "{text}");
    }
    scene.service.check();
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", nobody.local_addr().unwrap());
    drop(nobody);
    let scene = Scene::with(|s3| s3.endpoint = Some(endpoint)).await;
    let error = scene.store.check_place().await.unwrap_err();
    passes(&error, "Connection refused");
}

#[tokio::test]
async fn names_that_could_change_an_address_are_refused() {
    let service = Service::start().await;
    let open = |change: fn(&mut S3)| {
        let (root, mut s3) = (Root::new(), service.s3());
        change(&mut s3);
        let place = ArtifactPlace::S3(Box::new(s3));
        Store::open(&root.path(), place, Limits::default()).map(drop)
    };
    assert!(open(|_| ()).is_ok());
    assert!(open(|s3| s3.bucket = "Old.bucket_1".to_owned()).is_ok());
    assert!(open(|s3| s3.prefix = None).is_ok());
    type Change = fn(&mut S3);
    let bad: [(&str, Change); 9] = [
        ("bucket", |s3| s3.bucket = String::new()),
        ("bucket", |s3| s3.bucket = "..".to_owned()),
        ("bucket", |s3| s3.bucket = "plug ins".to_owned()),
        ("bucket", |s3| s3.bucket = "a/../b".to_owned()),
        ("bucket", |s3| s3.bucket = "a?x".to_owned()),
        ("region", |s3| s3.region = "example.com/".to_owned()),
        ("region", |s3| s3.region = String::new()),
        ("prefix", |s3| s3.prefix = Some("a//b".to_owned())),
        ("prefix", |s3| s3.prefix = Some("a/../b".to_owned())),
    ];
    for (what, change) in bad {
        let error = open(change).unwrap_err();
        assert!(
            error.to_string().starts_with(&format!("`{what}` ")),
            "{error}"
        );
    }
}
