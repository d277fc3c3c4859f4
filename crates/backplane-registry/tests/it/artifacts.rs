//! Uploads and downloads.

use axum::http::header;
use serde_json::json;
use test_case::test_case;

use crate::support::*;

const TAG: header::HeaderName = header::IF_NONE_MATCH;

#[tokio::test]
async fn an_upload_is_told_and_not_seen_until_it_is_released() {
    let rig = Rig::new();
    let archive = package("acme-tools", "1.0.0");
    let put = rig.send(put_artifact(&archive, ALL)).await;
    assert_eq!(put.status, 201);
    let told = put.json();
    assert_eq!(
        told,
        json!({
            "protocol_version": "1",
            "artifact_digest": digest(&archive),
            "artifact_bytes": archive.len(),
            "unpacked_bytes": told["unpacked_bytes"],
            "files": 2,
            "plugin_id": "acme-tools",
            "version": "1.0.0",
            "diagnostics": [],
        })
    );
    assert_eq!(rig.send(put_artifact(&archive, ALL)).await.status, 200);
    let path = format!("/artifacts/{}", digest(&archive));
    rig.get(&path, ALL).await.refused(404, "not_found");
    assert_eq!(rig.get("/catalog", ALL).await.json()["data"], json!([]));
    rig.get("/resolve?plugin_id=acme-tools", ALL)
        .await
        .refused(404, "not_found");
    rig.publish(&archive).await;
    assert_eq!(rig.get(&path, READER).await.bytes, archive);
}

#[tokio::test]
async fn a_download_says_what_it_is() {
    let rig = Rig::new();
    let archive = package("acme-tools", "1.0.0");
    rig.publish(&archive).await;
    let path = format!("/artifacts/{}", digest(&archive));
    let tag = format!("\"{}\"", digest(&archive));
    for method in ["GET", "HEAD"] {
        let answer = rig
            .send(Ask::new(method, &path).token(READER).empty())
            .await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-type"), "application/x-tar+gzip");
        assert_eq!(answer.header("etag"), tag);
        assert_eq!(answer.header("accept-ranges"), "bytes");
        assert_eq!(
            answer.header("cache-control"),
            "private, max-age=31536000, immutable"
        );
        assert_eq!(answer.header("content-length"), archive.len().to_string());
        let body: &[u8] = if method == "GET" { &archive } else { b"" };
        assert_eq!(answer.bytes, body);
    }
    for condition in [tag.clone(), format!("W/{tag}"), "*".to_owned()] {
        let ask = Ask::new("GET", &path).token(READER).with(TAG, &condition);
        let answer = rig.send(ask.empty()).await;
        assert_eq!(answer.status, 304);
        assert!(answer.bytes.is_empty());
        assert_eq!(answer.header("etag"), tag);
        assert!(answer.header("cache-control").contains("immutable"));
    }
    // A length that stands in a 304 is that of the bytes.
    let head = Ask::new("HEAD", &path).token(READER).with(TAG, &tag);
    let head = rig.send(head.empty()).await;
    assert_eq!(head.status, 304);
    assert_eq!(head.header("content-length"), archive.len().to_string());
    let other = Ask::new("GET", &path).token(READER).with(TAG, "\"other\"");
    assert_eq!(rig.send(other.empty()).await.status, 200);
    let other = Ask::new("GET", &path)
        .token(READER)
        .with(header::IF_MATCH, "\"other\"");
    rig.send(other.empty())
        .await
        .refused(412, "precondition_failed");
}

#[tokio::test]
async fn parts_are_parts_of_the_bytes() {
    let rig = Rig::new();
    let archive = package("acme-tools", "1.0.0");
    rig.publish(&archive).await;
    let (path, length) = (format!("/artifacts/{}", digest(&archive)), archive.len());
    let tag = format!("\"{}\"", digest(&archive));
    let ask = |range: &str| {
        Ask::new("GET", &path)
            .token(READER)
            .with(header::RANGE, range)
    };
    for (range, from, to) in [
        ("bytes=0-0", 0, 1),
        ("bytes=5-9", 5, 10),
        ("bytes=7-", 7, length),
        ("bytes=-4", length - 4, length),
        ("bytes=3-999999", 3, length),
    ] {
        let answer = rig.send(ask(range).empty()).await;
        assert_eq!(answer.status, 206, "{range}");
        assert_eq!(answer.bytes, archive[from..to], "{range}");
        let shown = format!("bytes {from}-{}/{length}", to - 1);
        assert_eq!(answer.header("content-range"), shown);
        assert_eq!(answer.header("content-length"), (to - from).to_string());
        assert_eq!(answer.header("etag"), tag);
    }
    let beyond = rig.send(ask(&format!("bytes={length}-")).empty()).await;
    beyond.refused(416, "range_not_satisfiable");
    assert_eq!(beyond.header("content-range"), format!("bytes */{length}"));
    for (range, condition) in [("bytes=0-1,3-4", &tag[..]), ("bytes=0-1", "\"other\"")] {
        let ask = ask(range).with(header::IF_RANGE, condition);
        let answer = rig.send(ask.empty()).await;
        assert_eq!(answer.status, 200, "{range}");
        assert_eq!(answer.bytes, archive);
    }
    let head = Ask::new("HEAD", &path)
        .token(READER)
        .with(header::RANGE, "bytes=0-0");
    let head = rig.send(head.empty()).await;
    assert_eq!(head.status, 200, "a range is a range of a GET");
}

#[tokio::test]
async fn who_may_read_without_a_token_gets_what_caches_may_share() {
    let rig = Rig::with(|service| service.anonymous_read = true);
    let archive = package("acme-tools", "1.0.0");
    rig.publish(&archive).await;
    let path = format!("/artifacts/{}", digest(&archive));
    let answer = rig.get(&path, "").await;
    assert_eq!(answer.status, 200);
    assert!(answer.header("cache-control").starts_with("public, "));
    assert_eq!(rig.get("/catalog", "").await.status, 200);
    // A token that is sent has to be one.
    rig.get("/catalog", "wrong")
        .await
        .refused(401, "unauthorized");
    rig.send(put_artifact(&archive, ""))
        .await
        .refused(401, "unauthorized");
    // Who runs what is for those with a token alone.
    for path in ["/whoami", "/installations"] {
        rig.get(path, "").await.refused(401, "unauthorized");
    }
}

#[test_case("sha256:ABCD"; "upper case")]
#[test_case("abcd"; "bare")]
#[test_case("blake3:abcd"; "another algorithm")]
#[test_case("sha256:"; "nothing")]
#[test_case("sha256:%2e%2e%2fregistry.sqlite"; "a path")]
#[test_case("%ff"; "no text")]
#[test_case("sha256:%00"; "a nul")]
#[tokio::test]
async fn what_is_no_digest_is_refused(start: &str) {
    let rig = Rig::new();
    let digest = format!("{start:0<71}");
    for path in [
        format!("/artifacts/{start}"),
        format!("/artifacts/{digest}x"),
        format!("/artifacts/{start}/receipt"),
    ] {
        rig.get(&path, ALL).await.refused(400, "invalid_request");
        let put = Ask::new("PUT", &path).token(ALL);
        let put = put.with(header::CONTENT_TYPE, "application/octet-stream");
        rig.send(put.body("x"))
            .await
            .refused(400, "invalid_request");
    }
    let upper = digest_of_letters()
        .to_uppercase()
        .replace("SHA256", "sha256");
    rig.get(&format!("/artifacts/{upper}"), ALL)
        .await
        .refused(400, "invalid_request");
}

fn digest_of_letters() -> String {
    format!("sha256:{}", "ab".repeat(32))
}

#[tokio::test]
async fn bytes_with_another_digest_are_refused_before_anything_else() {
    let rig = Rig::new();
    let archive = package("acme-tools", "1.0.0");
    let other = rig.send(put_as(&digest_of_letters(), &archive, ALL)).await;
    other.refused(409, "integrity_mismatch");
    let other = rig
        .send(put_as(&digest_of_letters(), b"no archive", ALL))
        .await;
    other.refused(409, "integrity_mismatch");
}

#[tokio::test]
async fn what_is_no_package_is_refused_with_entry_rule_and_limit() {
    let rig = Rig::new();
    let rubbish = b"no archive at all".to_vec();
    let answer = rig.send(put_artifact(&rubbish, ALL)).await;
    answer.refused(422, "invalid_package");
    assert!(answer.message().contains("gzip_header"), "{answer:?}");
    let nameless = archive_of(&json!({"$schema": agent_plugin::PLUGIN_SCHEMA}), &[]);
    let answer = rig.send(put_artifact(&nameless, ALL)).await;
    answer.refused(422, "invalid_package");
    assert!(answer.message().contains("plugin.json"), "{answer:?}");
    let mut cut = package("acme-tools", "1.0.0");
    cut.truncate(cut.len() - 3);
    rig.send(put_artifact(&cut, ALL))
        .await
        .refused(422, "invalid_package");
    assert!(rig.store.digests(None, 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn media_types_encodings_and_parts_are_refused() {
    let rig = Rig::new();
    let archive = package("acme-tools", "1.0.0");
    let path = format!("/artifacts/{}", digest(&archive));
    let ask = || Ask::new("PUT", &path).token(ALL);
    for ask in [
        ask(),
        ask().with(header::CONTENT_TYPE, "application/json"),
        ask()
            .with(header::CONTENT_TYPE, "application/x-tar+gzip")
            .with(header::CONTENT_ENCODING, "gzip"),
    ] {
        rig.send(ask.body(archive.clone()))
            .await
            .refused(415, "unsupported_media_type");
    }
    let part = ask()
        .with(header::CONTENT_TYPE, "application/x-tar+gzip")
        .with(header::CONTENT_RANGE, "bytes 0-1/2");
    rig.send(part.body(archive.clone()))
        .await
        .refused(400, "invalid_request");
    for good in ["application/gzip", "Application/Octet-Stream"] {
        let ask = ask().with(header::CONTENT_TYPE, good);
        let answer = rig.send(ask.body(archive.clone())).await;
        assert!(answer.status.is_success(), "{answer:?}");
    }
}

#[tokio::test]
async fn a_token_uploads_only_what_it_is_for() {
    let rig = Rig::new();
    let (ours, theirs) = (package("acme-tools", "1"), package("other", "1"));
    assert_eq!(rig.send(put_artifact(&ours, ACME)).await.status, 201);
    rig.send(put_artifact(&theirs, ACME))
        .await
        .refused(403, "forbidden");
    rig.send(put_artifact(&ours, READER))
        .await
        .refused(403, "forbidden");
    let known = rig.store.digests(None, 10).await.unwrap();
    assert_eq!(known.len(), 1, "what was refused is not kept");
}

#[tokio::test]
async fn what_nobody_releases_is_removed_after_a_day() {
    let rig = Rig::new();
    let (kept, left) = (package("acme-tools", "1"), package("acme-tools", "2"));
    rig.publish(&kept).await;
    rig.send(put_artifact(&left, ALL)).await;
    rig.clock.advance(jiff::SignedDuration::from_hours(25));
    let now = "2026-12-02T05:00:01Z".parse().unwrap();
    assert_eq!(rig.store.collect(now).await.unwrap().uploads, 1);
    let body = json!({"artifact_digest": digest(&left)});
    rig.post("/releases", ALL, &body)
        .await
        .refused(404, "not_found");
    let path = format!("/artifacts/{}", digest(&kept));
    assert_eq!(rig.get(&path, ALL).await.bytes, kept);
}
