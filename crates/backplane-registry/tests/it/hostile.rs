//! What a hostile client sends: nothing of it changes anything, and nothing grows beyond a limit.

use axum::body::{Body, Bytes};
use axum::http::header;
use backplane_registry::ServiceLimits;
use futures_util::{future, stream};
use plugin_archive::{Files, Limits, Modes};
use serde_json::json;
use test_case::test_case;

use crate::support::*;

/// Routes that take a JSON body.
async fn json_routes(rig: &Rig) -> Vec<(&'static str, String)> {
    let release = rig.publish(&package("acme-tools", "1")).await;
    let id = release["release_id"].as_str().unwrap();
    vec![
        ("POST", "/releases".to_owned()),
        ("PUT", "/plugins/acme-tools/channels/beta".to_owned()),
        ("POST", format!("/releases/{id}/yank")),
        ("POST", format!("/releases/{id}/unyank")),
        ("POST", "/installations".to_owned()),
    ]
}

#[test_case("", 400; "nothing")]
#[test_case("null", 400; "null")]
#[test_case("[]", 400; "an array")]
#[test_case("{\"unknown\":1}", 400; "an unknown field")]
#[test_case("{\"reason\":\"a\",\"reason\":\"b\"}", 400; "a key twice")]
#[test_case("{} {}", 400; "two objects")]
#[test_case("{\"reason\":null}", 400; "a null for nothing")]
#[test_case("\u{feff}{}", 400; "a byte order mark")]
#[test_case("{\"reason\":1}", 400; "another type")]
#[tokio::test]
async fn a_body_that_is_not_one_strict_object_is_refused(body: &str, status: u16) {
    let rig = Rig::new();
    for (method, path) in json_routes(&rig).await {
        let answer = rig
            .send(Ask::new(method, &path).token(ALL).text(body))
            .await;
        assert_eq!(
            answer.refusal(),
            (status, "invalid_request".to_owned()),
            "{path}"
        );
    }
    let found = rig.get("/resolve?plugin_id=acme-tools", ALL).await.json();
    assert_eq!(found["status"], "published");
}

#[tokio::test]
async fn a_body_is_at_most_64_kibibytes_and_not_deep() {
    let rig = Rig::new();
    for (method, path) in json_routes(&rig).await {
        let long = format!("{{\"reason\":\"{}\"}}", "a".repeat(64 * 1024));
        let answer = rig
            .send(Ask::new(method, &path).token(ALL).text(&long))
            .await;
        answer.refused(413, "limit_exceeded");
        // The very last byte that is allowed is read, and then judged.
        let full = format!("{{{}}}", " ".repeat(64 * 1024 - 2));
        assert_eq!(full.len(), 64 * 1024);
        let answer = rig
            .send(Ask::new(method, &path).token(ALL).text(&full))
            .await;
        assert_ne!(answer.status, 413, "{path}");
        let over = format!("{full} ");
        let answer = rig
            .send(Ask::new(method, &path).token(ALL).text(&over))
            .await;
        answer.refused(413, "limit_exceeded");
        let deep = format!(
            "{{\"reason\":{}{}}}",
            "[".repeat(30_000),
            "]".repeat(30_000)
        );
        let answer = rig
            .send(Ask::new(method, &path).token(ALL).text(&deep))
            .await;
        answer.refused(400, "invalid_request");
    }
}

#[tokio::test]
async fn a_body_of_another_type_is_refused() {
    let rig = Rig::new();
    for (method, path) in json_routes(&rig).await {
        let form = Ask::new(method, &path)
            .token(ALL)
            .with(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        rig.send(form.body("{}"))
            .await
            .refused(415, "unsupported_media_type");
        let none = Ask::new(method, &path).token(ALL);
        rig.send(none.body("{}"))
            .await
            .refused(415, "unsupported_media_type");
    }
}

#[tokio::test]
async fn a_length_that_lies_is_not_believed() {
    let rig = Rig::new();
    let archive = package("acme-tools", "1");
    let ask = |length: &str| {
        Ask::new("PUT", &format!("/artifacts/{}", digest(&archive)))
            .token(ALL)
            .with(header::CONTENT_TYPE, "application/octet-stream")
            .with(header::CONTENT_LENGTH, length)
    };
    let huge = rig
        .send(ask("18446744073709551615").body(archive.clone()))
        .await;
    huge.refused(413, "limit_exceeded");
    let longer = (archive.len() + 1).to_string();
    rig.send(ask(&longer).body(archive.clone()))
        .await
        .refused(400, "invalid_request");
    assert!(rig.store.digests(None, 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn half_an_upload_is_none() {
    let rig = Rig::new();
    let archive = package("acme-tools", "1");
    let (half, _) = archive.split_at(archive.len() / 2);
    let chunks = [
        Ok(Bytes::copy_from_slice(half)),
        Err(std::io::Error::other("the line went dead")),
    ];
    let ask = Ask::new("PUT", &format!("/artifacts/{}", digest(&archive)))
        .token(ALL)
        .with(header::CONTENT_TYPE, "application/octet-stream");
    rig.send(ask.body(Body::from_stream(stream::iter(chunks))))
        .await
        .refused(400, "invalid_request");
    assert!(rig.store.digests(None, 10).await.unwrap().is_empty());
    // And the place that it took is free again, as often as one likes.
    for _ in 0..10 {
        let chunks = [Ok(Bytes::new()), Err(std::io::Error::other("dead"))];
        let ask = Ask::new("PUT", &format!("/artifacts/{}", digest(&archive)))
            .token(ALL)
            .with(header::CONTENT_TYPE, "application/octet-stream");
        rig.send(ask.body(Body::from_stream(stream::iter(chunks))))
            .await
            .refused(400, "invalid_request");
    }
    assert_eq!(rig.send(put_artifact(&archive, ALL)).await.status, 201);
}

fn small() -> ServiceLimits {
    ServiceLimits {
        archive: Limits {
            archive_bytes: 4096,
            uncompressed_bytes: 200_000,
            total_bytes: 100_000,
            file_bytes: 50_000,
            files: 5,
            entries: 8,
            depth: 3,
        },
        ..ServiceLimits::default()
    }
}

#[test_case(&[("zeros", 60_000)], "max_file_bytes", "zeros"; "one large file")]
#[test_case(&[("a", 45_000), ("b", 45_000), ("c", 45_000)], "max_total_bytes", "c"; "large together")]
#[test_case(&[("a", 1), ("b", 1), ("c", 1), ("d", 1), ("e", 1)], "max_files", "`"; "many")]
#[test_case(&[("a/b/c/d", 1)], "max_depth", "a/b/c/d"; "deep")]
#[tokio::test]
async fn a_bomb_is_refused_by_the_name_of_its_limit(
    files: &[(&str, usize)],
    limit: &str,
    entry: &str,
) {
    let rig = Rig::limited(small(), |_| {});
    let manifest = json!({"$schema": agent_plugin::PLUGIN_SCHEMA, "name": "bomb"}).to_string();
    let mut map = Files::from([("plugin.json".to_owned(), manifest.into_bytes())]);
    for (path, bytes) in files {
        map.insert((*path).to_owned(), vec![0; *bytes]);
    }
    let bomb = plugin_archive::pack(&map, &Modes::new(), &Limits::default()).unwrap();
    let answer = rig.send(put_artifact(&bomb, ALL)).await;
    answer.refused(422, "invalid_package");
    let message = answer.message();
    assert!(
        message.contains(limit) && message.contains(entry),
        "{message}"
    );
}

#[tokio::test]
async fn an_archive_beyond_its_limit_is_refused_whatever_it_announces() {
    let rig = Rig::limited(small(), |_| {});
    let noise: Vec<u8> = (0..5000_u32)
        .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    rig.send(put_artifact(&noise, ALL))
        .await
        .refused(413, "limit_exceeded");
    let chunks: Vec<_> = noise
        .chunks(500)
        .map(|chunk| Ok::<_, std::io::Error>(Bytes::copy_from_slice(chunk)))
        .collect();
    let ask = Ask::new("PUT", &format!("/artifacts/{}", digest(&noise)))
        .token(ALL)
        .with(header::CONTENT_TYPE, "application/octet-stream");
    rig.send(ask.body(Body::from_stream(stream::iter(chunks))))
        .await
        .refused(413, "limit_exceeded");
}

#[tokio::test]
async fn a_head_beyond_its_limit_is_refused() {
    let rig = Rig::new();
    let ask = |length: usize| {
        let filler = header::HeaderName::from_static("x-filler");
        Ask::new("GET", "/whoami")
            .token(ALL)
            .with(filler, &"a".repeat(length))
    };
    assert_eq!(rig.send(ask(15_000).empty()).await.status, 200);
    let answer = rig.send(ask(17_000).empty()).await;
    answer.refused(431, "limit_exceeded");
    let path = format!("/catalog?q={}", "a".repeat(17_000));
    rig.get(&path, ALL).await.refused(431, "limit_exceeded");
}

#[tokio::test(start_paused = true)]
async fn uploads_beyond_their_number_wait_a_little_and_are_sent_away() {
    let limits = ServiceLimits {
        uploads: 1,
        ..ServiceLimits::default()
    };
    let rig = Rig::limited(limits, |_| {});
    let archive = package("acme-tools", "1");
    let held = rig.store.admit().await.unwrap();
    let answer = rig.send(put_artifact(&archive, ALL)).await;
    answer.refused(429, "too_many_requests");
    assert_eq!(answer.header("retry-after"), "2");
    assert_eq!(answer.json()["error"]["retryable"], true);
    drop(held);
    drop(rig.store.admit().await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn an_upload_that_stands_still_is_given_up() {
    let rig = Rig::new();
    let ask = Ask::new("PUT", &format!("/artifacts/{}", digest(b"never")))
        .token(ALL)
        .with(header::CONTENT_TYPE, "application/octet-stream");
    let stuck = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
    let answer = rig.send(ask.body(stuck)).await;
    answer.refused(408, "timeout");
    let ask = Ask::new("POST", "/releases")
        .token(ALL)
        .with(header::CONTENT_TYPE, "application/json");
    let stuck = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
    rig.send(ask.body(stuck)).await.refused(408, "timeout");
}

#[tokio::test]
async fn publishing_the_same_bytes_at_once_makes_one_release() {
    let rig = Rig::new();
    let archive = package("acme-tools", "1");
    let made = future::join_all((0..8).map(|_| rig.publish(&archive))).await;
    assert!(
        made.iter()
            .all(|one| one["release_id"] == made[0]["release_id"])
    );
    let list = rig.get("/plugins/acme-tools/releases", ALL).await.json();
    assert_eq!(list["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn publishing_other_bytes_at_once_makes_releases_that_all_can_be_had() {
    let rig = Rig::new();
    let archives: Vec<_> = (0..8)
        .map(|n| package("acme-tools", &n.to_string()))
        .collect();
    let made = future::join_all(archives.iter().map(|one| rig.publish(one))).await;
    for (archive, release) in archives.iter().zip(&made) {
        let path = format!(
            "/artifacts/{}",
            release["artifact_digest"].as_str().unwrap()
        );
        assert_eq!(rig.get(&path, ALL).await.bytes, *archive);
    }
    let stable = rig.get("/resolve?plugin_id=acme-tools", ALL).await.json();
    assert!(
        made.iter()
            .any(|one| one["release_id"] == stable["release_id"])
    );
    let list = rig.get("/plugins/acme-tools/releases", ALL).await.json();
    assert_eq!(list["data"].as_array().unwrap().len(), 8);
}

#[tokio::test]
async fn a_manifest_that_would_make_answers_too_long_is_refused() {
    let rig = Rig::new();
    let manifest = |field: &str, length: usize| {
        let mut manifest = json!({"$schema": agent_plugin::PLUGIN_SCHEMA, "name": "acme-tools"});
        manifest[field] = json!("a".repeat(length));
        archive_of(&manifest, &[])
    };
    let over = rig.send(put_artifact(&manifest("version", 257), ALL)).await;
    over.refused(413, "limit_exceeded");
    assert!(over.message().contains("version"), "{over:?}");
    let fits = rig.send(put_artifact(&manifest("version", 256), ALL)).await;
    assert_eq!(fits.status, 201);
    let long = manifest("description", 1024 * 1024);
    let over = rig.send(put_artifact(&long, ALL)).await;
    over.refused(422, "invalid_package");
    assert!(over.message().contains("plugin.json"), "{over:?}");
    let release = rig.publish(&manifest("description", 1000 * 1024)).await;
    assert!(release.to_string().len() < 4 << 20);
    for path in ["/catalog", "/plugins/acme-tools/releases"] {
        let list = rig.get(path, ALL).await;
        assert!(list.bytes.len() < 6000, "{path}: {}", list.bytes.len());
    }
}
