//! Receipts beside artifacts.

use axum::http::header;
use serde_json::json;

use crate::support::*;

#[tokio::test]
async fn a_receipt_stands_beside_its_artifact_and_is_not_replaced() {
    let rig = Rig::new();
    let archive = package("acme-tools", "1");
    rig.publish(&archive).await;
    let name = digest(&archive);
    let path = format!("/artifacts/{name}/receipt");
    rig.get(&path, READER).await.refused(404, "not_found");
    let receipt = receipt_of(&archive, "1");
    let put = rig.send(put_receipt(&name, &receipt, ACME)).await;
    assert_eq!(put.status, 201, "{put:?}");
    assert_eq!(
        put.json(),
        json!({"protocol_version": "1", "artifact_digest": name, "receipt_bytes": receipt.len()})
    );
    let again = rig.send(put_receipt(&name, &receipt, ACME)).await;
    assert_eq!(again.status, 200);
    rig.send(put_receipt(&name, &receipt_of(&archive, "2"), ACME))
        .await
        .refused(409, "conflict");
    let got = rig.get(&path, READER).await;
    assert_eq!(got.status, 200);
    assert_eq!(got.header("content-type"), "application/yaml");
    assert_eq!(got.bytes, receipt);
    let tag = got.header("etag").to_owned();
    let ask = Ask::new("GET", &path).token(READER);
    let same = rig
        .send(ask.with(header::IF_NONE_MATCH, &tag).empty())
        .await;
    assert_eq!(same.status, 304);
    let ask = Ask::new("GET", &path).token(READER);
    let part = rig.send(ask.with(header::RANGE, "bytes=2-5").empty()).await;
    assert_eq!(part.status, 206);
    assert_eq!(part.bytes, receipt.as_bytes()[2..6]);
    let resolved = rig.get("/resolve?plugin_id=acme-tools", READER).await;
    assert_eq!(resolved.json()["receipt"], true);
}

#[tokio::test]
async fn what_is_no_receipt_of_the_artifact_is_refused() {
    let rig = Rig::new();
    let (archive, other) = (package("acme-tools", "1"), package("acme-tools", "2"));
    rig.publish(&archive).await;
    let name = digest(&archive);
    let unprovenanced = receipt_of(&archive, "1");
    let (unprovenanced, _) = unprovenanced.split_once("provenance:").unwrap();
    let link = receipt_of(&archive, "1").replace("kind: file", "kind: symlink");
    for wrong in [
        "",
        "not: a receipt",
        "\u{0}",
        "&a [*a]",
        &receipt_of(&other, "1"),
        unprovenanced,
        &link,
    ] {
        rig.send(put_receipt(&name, wrong, ALL))
            .await
            .refused(422, "receipt_mismatch");
    }
    let path = format!("/artifacts/{name}/receipt");
    rig.get(&path, ALL).await.refused(404, "not_found");
    rig.send(put_receipt(&digest(&other), &receipt_of(&other, "1"), ALL))
        .await
        .refused(404, "not_found");
}

#[tokio::test]
async fn a_receipt_that_is_too_long_or_of_another_type_is_refused() {
    let rig = Rig::new();
    let archive = package("acme-tools", "1");
    rig.publish(&archive).await;
    let name = digest(&archive);
    let long = "#".repeat(attest_receipt::receipt::MAX_BYTES + 1);
    rig.send(put_receipt(&name, &long, ALL))
        .await
        .refused(413, "limit_exceeded");
    let json = Ask::new("PUT", &format!("/artifacts/{name}/receipt"))
        .token(ALL)
        .json(&json!({}));
    rig.send(json).await.refused(415, "unsupported_media_type");
}
