//! The catalog, releases, channels, and what withdrawing one changes.

use serde_json::{Value, json};
use test_case::test_case;

use crate::support::*;

fn id(release: &Value) -> &str {
    release["release_id"].as_str().unwrap()
}

#[tokio::test]
async fn a_release_is_told_whole() {
    let rig = Rig::new();
    let archive = package("acme-tools", "1.0.0");
    let release = rig.publish(&archive).await;
    assert_eq!(
        release,
        json!({
            "protocol_version": "1",
            "release_id": release["release_id"],
            "plugin_id": "acme-tools",
            "name": "acme-tools",
            "version": "1.0.0",
            "description": "What acme-tools does",
            "channels": ["stable"],
            "artifact_digest": digest(&archive),
            "artifact_bytes": archive.len(),
            "unpacked_bytes": release["unpacked_bytes"],
            "files": 2,
            "published_at": "2026-12-01T04:00:00Z",
            "publisher": "all",
            "status": "published",
            "yanked_reason": null,
            "receipt": false,
            "manifest": {
                "$schema": agent_plugin::PLUGIN_SCHEMA,
                "name": "acme-tools",
                "version": "1.0.0",
                "description": "What acme-tools does",
            },
        })
    );
    let same = [
        "plugin_id=acme-tools".to_owned(),
        "plugin_id=acme-tools&channel=stable".to_owned(),
        format!("release_id={}", id(&release)),
        format!("plugin_id=acme-tools&release_id={}", id(&release)),
    ];
    for query in same {
        let found = rig.get(&format!("/resolve?{query}"), READER).await;
        assert_eq!(found.json(), release, "{query}");
    }
}

#[tokio::test]
async fn the_same_bytes_are_the_same_release_and_other_bytes_a_new_one() {
    let rig = Rig::new();
    let archive = package("acme-tools", "1.0.0");
    let first = rig.publish(&archive).await;
    let body = json!({"artifact_digest": digest(&archive), "channel": "stable"});
    let again = rig.post("/releases", ALL, &body).await;
    assert_eq!((again.status.as_u16(), again.json()), (200, first.clone()));
    let manifest =
        json!({"$schema": agent_plugin::PLUGIN_SCHEMA, "name": "acme-tools", "version": "1.0.0"});
    let other = archive_of(&manifest, &[("other", b"bytes".to_vec())]);
    let second = rig.publish(&other).await;
    assert_ne!(id(&first), id(&second));
    let listed = rig.get("/plugins/acme-tools/releases", READER).await.json();
    assert_eq!(listed["data"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_release_without_a_channel_is_in_none() {
    let rig = Rig::new();
    let archive = package("acme-tools", "1.0.0");
    rig.send(put_artifact(&archive, ALL)).await;
    let made = rig
        .post(
            "/releases",
            ALL,
            &json!({"artifact_digest": digest(&archive)}),
        )
        .await;
    assert_eq!(made.status, 201);
    assert_eq!(made.json()["channels"], json!([]));
    rig.get("/resolve?plugin_id=acme-tools", ALL)
        .await
        .refused(404, "not_found");
}

#[tokio::test]
async fn channels_move_where_they_are_believed_to_be() {
    let rig = Rig::new();
    let first = rig.publish(&package("acme-tools", "1")).await;
    let second = rig.publish_to(&package("acme-tools", "2"), "beta").await;
    let channel = |name: &str, body: Value| {
        Ask::new("PUT", &format!("/plugins/acme-tools/channels/{name}"))
            .token(ACME)
            .json(&body)
    };
    let wrong = json!({"release_id": id(&second), "expected_release_id": id(&second)});
    rig.send(channel("stable", wrong))
        .await
        .refused(409, "conflict");
    let right = json!({"release_id": id(&second), "expected_release_id": id(&first)});
    let moved = rig.send(channel("stable", right)).await;
    assert_eq!(moved.status, 200);
    assert_eq!(moved.json()["channels"], json!(["beta", "stable"]));
    let back = rig
        .send(channel("stable", json!({"release_id": id(&first)})))
        .await;
    assert_eq!(back.json()["release_id"], first["release_id"]);
    let unknown = json!({"release_id": format!("r-{}", "0".repeat(32))});
    rig.send(channel("stable", unknown))
        .await
        .refused(404, "not_found");
    let other = rig.publish(&package("acme-other", "1")).await;
    rig.send(channel("stable", json!({"release_id": id(&other)})))
        .await
        .refused(404, "not_found");
}

#[tokio::test]
async fn what_is_withdrawn_is_led_to_by_nothing_and_found_by_its_name() {
    let rig = Rig::new();
    let archive = package("acme-tools", "1");
    let release = rig.publish(&archive).await;
    let yank = format!("/releases/{}/yank", id(&release));
    let gone = rig.post(&yank, ACME, &json!({"reason": "broken"})).await;
    assert_eq!(gone.status, 200);
    let gone = gone.json();
    assert_eq!(gone["status"], "yanked");
    assert_eq!(gone["yanked_reason"], "broken");
    for query in [
        "plugin_id=acme-tools",
        "plugin_id=acme-tools&channel=stable",
    ] {
        rig.get(&format!("/resolve?{query}"), READER)
            .await
            .refused(410, "release_yanked");
    }
    let by_id = format!("/resolve?release_id={}", id(&release));
    assert_eq!(rig.get(&by_id, READER).await.json()["status"], "yanked");
    let path = format!("/artifacts/{}", digest(&archive));
    assert_eq!(rig.get(&path, READER).await.bytes, archive);
    assert_eq!(rig.get("/catalog", READER).await.json()["data"], json!([]));
    let again = json!({"artifact_digest": digest(&archive), "channel": "beta"});
    rig.post("/releases", ALL, &again)
        .await
        .refused(409, "release_yanked");
    let promote = Ask::new("PUT", "/plugins/acme-tools/channels/beta")
        .token(ALL)
        .json(&json!({"release_id": id(&release)}));
    rig.send(promote).await.refused(409, "release_yanked");
    let unyank = Ask::new("POST", &format!("/releases/{}/unyank", id(&release)));
    let back = rig.send(unyank.token(ACME).empty()).await;
    assert_eq!(back.status, 200);
    assert_eq!(back.json()["yanked_reason"], Value::Null);
    let found = rig.get("/resolve?plugin_id=acme-tools", READER).await;
    assert_eq!(found.json()["release_id"], release["release_id"]);
}

#[tokio::test]
async fn the_catalog_is_paged_and_searched() {
    let rig = Rig::new();
    for name in ["acme-a", "acme-b", "beta-c", "zeta"] {
        rig.publish(&package(name, "1")).await;
    }
    let names = |page: &Value| -> Vec<String> {
        let data = page["data"].as_array().unwrap();
        let names = data.iter().map(|one| one["plugin_id"].as_str().unwrap());
        names.map(str::to_owned).collect()
    };
    let whole = rig.get("/catalog", READER).await.json();
    assert_eq!(names(&whole), ["acme-a", "acme-b", "beta-c", "zeta"]);
    let first = &whole["data"][0];
    let stable = &first["channels"]["stable"];
    assert_eq!(stable["version"], "1");
    assert!(stable["release_id"].is_string() && stable["artifact_digest"].is_string());
    assert_eq!(first["publisher"], "all");
    assert_eq!(first["updated_at"], "2026-12-01T04:00:00Z");
    let page = rig.get("/catalog?limit=3", READER).await.json();
    assert_eq!(names(&page), ["acme-a", "acme-b", "beta-c"]);
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = rig
        .get(&format!("/catalog?limit=3&cursor={cursor}"), READER)
        .await
        .json();
    assert_eq!(names(&rest), ["zeta"]);
    assert_eq!(rest["next_cursor"], Value::Null);
    let found = rig.get("/catalog?q=ACME-", READER).await.json();
    assert_eq!(names(&found), ["acme-a", "acme-b"]);
    let described = rig.get("/catalog?q=what+zeta", READER).await.json();
    assert_eq!(names(&described), ["zeta"]);
    // A cursor is one of its own list.
    rig.get(&format!("/catalog?q=a&cursor={cursor}"), READER)
        .await
        .refused(400, "invalid_request");
    for forged in ["x", "AAAA", "%00", &"a".repeat(3000)] {
        rig.get(&format!("/catalog?cursor={forged}"), READER)
            .await
            .refused(400, "invalid_request");
    }
}

#[tokio::test]
async fn releases_of_a_plugin_are_paged_newest_first() {
    let rig = Rig::new();
    for version in ["1", "2", "3"] {
        rig.publish(&package("acme-tools", version)).await;
        rig.clock.advance(jiff::SignedDuration::from_secs(1));
    }
    let page = rig
        .get("/plugins/acme-tools/releases?limit=2", READER)
        .await
        .json();
    let versions: Vec<_> = page["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["version"])
        .collect();
    assert_eq!(versions, ["3", "2"]);
    assert!(page["data"][0].get("manifest").is_none());
    let cursor = page["next_cursor"].as_str().unwrap();
    let path = format!("/plugins/acme-tools/releases?limit=2&cursor={cursor}");
    let rest = rig.get(&path, READER).await.json();
    assert_eq!(rest["data"][0]["version"], "1");
    let elsewhere = rig.get(&format!("/catalog?cursor={cursor}"), READER).await;
    elsewhere.refused(400, "invalid_request");
    rig.get("/plugins/unknown/releases", READER)
        .await
        .refused(404, "not_found");
}

#[test_case("", 400, "invalid_request"; "nothing")]
#[test_case("channel=stable", 400, "invalid_request"; "a channel alone")]
#[test_case("plugin_id=acme-tools&channel=r-1", 400, "invalid_request"; "no channel")]
#[test_case("plugin_id=Acme", 400, "invalid_request"; "no plugin id")]
#[test_case("release_id=r-1", 400, "invalid_request"; "no release id")]
#[test_case("plugin_id=acme-tools&plugin_id=acme-tools", 400, "invalid_request"; "twice")]
#[test_case("plugin_id=", 400, "invalid_request"; "empty")]
#[test_case("plugin_id=acme-tools&x=1", 400, "invalid_request"; "unknown")]
#[test_case("plugin_id=unknown", 404, "not_found"; "no such plugin")]
#[test_case("plugin_id=acme-tools&channel=beta", 404, "not_found"; "no such channel")]
#[test_case("release_id=r-00000000000000000000000000000000", 404, "not_found"; "no such release")]
#[tokio::test]
async fn a_selection_that_selects_nothing_is_refused(query: &str, status: u16, code: &str) {
    let rig = Rig::new();
    rig.publish(&package("acme-tools", "1")).await;
    rig.get(&format!("/resolve?{query}"), READER)
        .await
        .refused(status, code);
}

#[tokio::test]
async fn a_release_of_another_plugin_is_not_there() {
    let rig = Rig::new();
    let release = rig.publish(&package("acme-tools", "1")).await;
    rig.publish(&package("other", "1")).await;
    let path = format!("/resolve?plugin_id=other&release_id={}", id(&release));
    rig.get(&path, READER).await.refused(404, "not_found");
}

#[tokio::test]
async fn a_token_changes_only_the_plugins_that_it_is_for() {
    let rig = Rig::new();
    let archive = package("other", "1");
    let release = rig.publish(&archive).await;
    let body = json!({"artifact_digest": digest(&archive), "channel": "beta"});
    let refused = [
        rig.post("/releases", ACME, &body).await,
        rig.post(
            &format!("/releases/{}/yank", id(&release)),
            ACME,
            &json!({}),
        )
        .await,
        rig.post(
            &format!("/releases/{}/unyank", id(&release)),
            ACME,
            &json!({}),
        )
        .await,
        rig.send(
            Ask::new("PUT", "/plugins/other/channels/stable")
                .token(ACME)
                .json(&json!({"release_id": id(&release)})),
        )
        .await,
        rig.send(put_receipt(&digest(&archive), "x", ACME)).await,
    ];
    for answer in refused {
        answer.refused(403, "forbidden");
    }
    let found = rig.get("/resolve?plugin_id=other", READER).await.json();
    assert_eq!(found, release, "nothing has changed");
}
