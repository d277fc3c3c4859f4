//! What hosts report.

use serde_json::{Value, json};
use test_case::test_case;

use crate::support::*;

async fn released(rig: &Rig) -> Value {
    let archive = package("acme-tools", "1");
    let release = rig.publish(&archive).await;
    json!({
        "installation_id": "0f".repeat(16),
        "host": "build-1",
        "plugin_id": "acme-tools",
        "release_id": release["release_id"],
        "artifact_digest": digest(&archive),
        "status": "installed",
    })
}

#[tokio::test]
async fn the_last_report_of_an_installation_counts() {
    let rig = Rig::new();
    let mut report = released(&rig).await;
    let noted = rig.post("/installations", REPORTER, &report).await;
    assert_eq!(noted.status, 200, "{noted:?}");
    let mut wanted = report.clone();
    wanted["error"] = Value::Null;
    wanted["reported_at"] = json!("2026-12-01T04:00:00Z");
    wanted["reported_by"] = json!("reporter");
    let mut object = wanted.clone();
    object["protocol_version"] = json!("1");
    assert_eq!(noted.json(), object);
    let list = rig.get("/installations", READER).await.json();
    assert_eq!(
        list,
        json!({"protocol_version": "1", "data": [wanted], "next_cursor": null})
    );
    report["status"] = json!("failed");
    report["error"] = json!("no space");
    rig.clock.advance(jiff::SignedDuration::from_secs(5));
    let noted = rig.post("/installations", ACME, &report).await.json();
    assert_eq!(noted["error"], "no space");
    assert_eq!(noted["reported_at"], "2026-12-01T04:00:05Z");
    let list = rig.get("/installations", READER).await.json();
    assert_eq!(list["data"].as_array().unwrap().len(), 1);
    assert_eq!(list["data"][0]["reported_by"], "acme");
}

#[tokio::test]
async fn installations_are_filtered_and_paged() {
    let rig = Rig::new();
    let mut report = released(&rig).await;
    for (number, host) in ["a", "b", "a"].into_iter().enumerate() {
        report["installation_id"] = json!(format!("{number:032x}"));
        report["host"] = json!(host);
        let noted = rig.post("/installations", REPORTER, &report).await;
        assert_eq!(noted.status, 200, "{noted:?}");
    }
    let count = async |query: &str| {
        let list = rig
            .get(&format!("/installations?{query}"), READER)
            .await
            .json();
        list["data"].as_array().unwrap().len()
    };
    assert_eq!(count("host=a").await, 2);
    assert_eq!(count("host=c").await, 0);
    assert_eq!(count("plugin_id=acme-tools&host=b").await, 1);
    assert_eq!(count("plugin_id=other").await, 0);
    let page = rig
        .get("/installations?host=a&limit=1", READER)
        .await
        .json();
    let cursor = page["next_cursor"].as_str().unwrap();
    assert_eq!(count(&format!("host=a&limit=1&cursor={cursor}")).await, 1);
    rig.get(&format!("/installations?host=b&cursor={cursor}"), READER)
        .await
        .refused(400, "invalid_request");
    for host in ["%07".to_owned(), "h".repeat(256)] {
        rig.get(&format!("/installations?host={host}"), READER)
            .await
            .refused(400, "invalid_request");
    }
}

#[test_case("installation_id", json!("0F"); "no id")]
#[test_case("installation_id", json!("0F".repeat(16)); "an id in upper case")]
#[test_case("host", json!(""); "no host")]
#[test_case("host", json!("h".repeat(256)); "a host too long")]
#[test_case("host", json!("a\u{7}"); "a host that rings")]
#[test_case("host", Value::Null; "null")]
#[test_case("plugin_id", json!("Acme"); "no plugin id")]
#[test_case("release_id", json!("stable"); "no release id")]
#[test_case("artifact_digest", json!("abcd"); "no digest")]
#[test_case("status", json!("done"); "no status")]
#[test_case("error", json!("e".repeat(4097)); "an error too long")]
#[test_case("error", json!(1); "an error that is no text")]
#[test_case("extra", json!(1); "an unknown field")]
#[tokio::test]
async fn a_report_that_makes_no_sense_is_refused(field: &str, value: Value) {
    let rig = Rig::new();
    let mut report = released(&rig).await;
    report[field] = value;
    rig.post("/installations", REPORTER, &report)
        .await
        .refused(400, "invalid_request");
    let list = rig.get("/installations", READER).await.json();
    assert_eq!(list["data"], json!([]));
}

#[tokio::test]
async fn a_report_needs_its_right_and_its_release() {
    let rig = Rig::new();
    let report = released(&rig).await;
    rig.post("/installations", READER, &report)
        .await
        .refused(403, "forbidden");
    rig.get("/installations", REPORTER)
        .await
        .refused(403, "forbidden");
    let mut foreign = report.clone();
    foreign["plugin_id"] = json!("other");
    rig.post("/installations", ACME, &foreign)
        .await
        .refused(403, "forbidden");
    let mut unknown = report;
    unknown["release_id"] = json!(format!("r-{}", "0".repeat(32)));
    rig.post("/installations", ALL, &unknown)
        .await
        .refused(404, "not_found");
}
