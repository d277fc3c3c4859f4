//! `GET /metrics`: who may read it, that it follows the grammar, and that every series moves.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use serde_json::json;

use crate::openmetrics::{Exposition, check};
use crate::support::{Rig, failure, heartbeat, read_config, text_result};

async fn scraped(rig: &Rig) -> Exposition {
    let reply = rig.get("/metrics").await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.body);
    check(&reply.body).unwrap_or_else(|error| panic!("{error}\n{}", reply.body))
}

/// What series say, in whole numbers.
async fn says(rig: &Rig, series: &[(&str, u32)]) {
    let now = scraped(rig).await;
    for (name, value) in series {
        let name = format!("forge_gate_{name}");
        assert!(
            (now.value(&name) - f64::from(*value)).abs() < 1e-9,
            "{name} is {}, not {value}",
            now.value(&name)
        );
    }
}

fn bare(path: &str) -> Request<Body> {
    Request::get(path)
        .header(header::HOST, "127.0.0.1")
        .body(Body::empty())
        .unwrap()
}

#[tokio::test]
async fn only_the_owner_reads_it_unless_the_configuration_says_otherwise() {
    let rig = Rig::start().await;
    let refused = rig.send(bare("/metrics")).await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    let reply = rig.get("/metrics").await;
    assert_eq!(
        reply.headers[header::CONTENT_TYPE],
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    assert_eq!(reply.headers[header::CACHE_CONTROL], "no-store");
    let open = Rig::start_with(|config| config["metrics_without_token"] = json!(true)).await;
    assert_eq!(open.send(bare("/metrics")).await.status, StatusCode::OK);
    // It opens nothing else, and not to a page that rebinds its name.
    assert_eq!(
        open.send(bare("/v1/pools")).await.status,
        StatusCode::UNAUTHORIZED
    );
    let mut foreign = bare("/metrics");
    foreign
        .headers_mut()
        .insert(header::HOST, "evil.example".parse().unwrap());
    assert_eq!(open.send(foreign).await.status, StatusCode::FORBIDDEN);
}

#[test]
fn a_public_listener_tells_nobody_without_a_token() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = crate::support::config_in(&dir);
    config["metrics_without_token"] = json!(true);
    assert!(read_config(&config).unwrap().metrics_without_token);
    config["listen"] = json!("0.0.0.0:8080");
    config["allow_plain_listener"] = json!(true);
    let error = read_config(&config).unwrap_err().to_string();
    assert!(error.contains("metrics_without_token"), "{error}");
}

#[tokio::test]
async fn a_fresh_gate_says_every_series_and_no_id() {
    let rig = Rig::start().await;
    let job = rig.submit_text("x").await;
    rig.job(&job).await;
    let now = scraped(&rig).await;
    let families: BTreeSet<&str> = now.families.keys().map(String::as_str).collect();
    let expected = [
        "activity_attempts",
        "activity_dropped",
        "attempts_ended",
        "attempts_leased",
        "build",
        "claim_seconds",
        "connections",
        "database_bytes",
        "database_wal_bytes",
        "http_requests",
        "jobs_ended",
        "jobs_submitted",
        "leases",
        "pool_paused",
        "queue_jobs",
        "queue_oldest_seconds",
        "slots",
        "store_operation_seconds",
        "uptime_seconds",
    ]
    .map(|name| format!("forge_gate_{name}"));
    assert_eq!(families, expected.iter().map(String::as_str).collect());
    for name in now.names() {
        assert!(!name.contains(&job), "{name}");
    }
    for outcome in [
        "succeeded",
        "terminal_failed",
        "retryable_failed",
        "expired",
        "cancelled",
    ] {
        let series = format!("attempts_ended_total{{pool=\"other\",outcome=\"{outcome}\"}}");
        says(&rig, &[(&series, 0)]).await;
    }
}

#[tokio::test]
async fn queues_and_leases_are_those_of_the_moment() {
    let rig = Rig::start().await;
    rig.submit_text("x").await;
    rig.submit_text("y").await;
    rig.clock.advance(Duration::from_secs(90));
    let mut worker = rig.connect(0).await;
    let lease = worker.lease().await;
    says(
        &rig,
        &[
            ("queue_jobs{pool=\"coding\",state=\"ready\"}", 1),
            ("queue_jobs{pool=\"coding\",state=\"retrying\"}", 0),
            ("queue_oldest_seconds{pool=\"coding\"}", 90),
            ("queue_oldest_seconds{pool=\"other\"}", 0),
            ("leases{pool=\"coding\"}", 1),
            ("leases{pool=\"other\"}", 0),
            ("slots{pool=\"coding\",state=\"working\"}", 1),
            ("slots{pool=\"coding\",state=\"away\"}", 1),
            ("slots{pool=\"other\",state=\"away\"}", 1),
            ("pool_paused{pool=\"coding\"}", 0),
            ("uptime_seconds", 90),
        ],
    )
    .await;
    rig.post("/v1/pools/coding/pause", "").await;
    worker
        .send(failure(&lease, "execution_failed", "retryable"))
        .await;
    worker.ack(&lease).await;
    says(
        &rig,
        &[
            ("queue_jobs{pool=\"coding\",state=\"retrying\"}", 1),
            ("leases{pool=\"coding\"}", 0),
            ("slots{pool=\"coding\",state=\"idle\"}", 1),
            ("pool_paused{pool=\"coding\"}", 1),
        ],
    )
    .await;
    let now = scraped(&rig).await;
    assert!(now.value("forge_gate_database_bytes") > 0.0);
    assert!(now.value("forge_gate_database_wal_bytes") > 0.0);
}

#[tokio::test]
async fn every_end_is_counted_once() {
    let rig = Rig::start_with(|config| config["lifecycle"]["max_attempts"] = json!(2)).await;
    let mut worker = rig.connect(0).await;
    let ended = |of: &str, outcome: &str| {
        format!("{of}_ended_total{{pool=\"coding\",outcome=\"{outcome}\"}}")
    };
    let leased = "attempts_leased_total{pool=\"coding\"}";

    rig.submit_text("a").await;
    let lease = worker.lease().await;
    worker.send(heartbeat(&lease)).await;
    worker.send(text_result(&lease, "done")).await;
    worker.ack(&lease).await;
    says(
        &rig,
        &[
            ("jobs_submitted_total{pool=\"coding\"}", 1),
            (leased, 1),
            (&ended("attempts", "succeeded"), 1),
            (&ended("jobs", "succeeded"), 1),
        ],
    )
    .await;

    rig.submit_text("b").await;
    let lease = worker.lease().await;
    worker
        .send(failure(&lease, "invalid_task", "terminal"))
        .await;
    worker.ack(&lease).await;
    says(
        &rig,
        &[
            (&ended("attempts", "terminal_failed"), 1),
            (&ended("jobs", "failed"), 1),
        ],
    )
    .await;

    let twice = rig.submit_text("c").await;
    let lease = worker.lease().await;
    worker
        .send(failure(&lease, "execution_failed", "retryable"))
        .await;
    worker.ack(&lease).await;
    says(&rig, &[(&ended("attempts", "retryable_failed"), 1)]).await;
    rig.pass(Duration::from_secs(2)).await;
    let lease = worker.lease().await;
    worker
        .send(failure(&lease, "execution_failed", "retryable"))
        .await;
    worker.ack(&lease).await;
    rig.until(&twice, "failed").await;
    says(
        &rig,
        &[
            (&ended("attempts", "retryable_failed"), 2),
            (&ended("jobs", "failed"), 2),
        ],
    )
    .await;

    let cancelled = rig.submit_text("d").await;
    worker.lease().await;
    for _ in 0..2 {
        rig.post(&format!("/v1/jobs/{cancelled}/cancel"), "").await;
    }
    says(
        &rig,
        &[
            (&ended("attempts", "cancelled"), 1),
            (&ended("jobs", "cancelled"), 1),
            (leased, 5),
        ],
    )
    .await;

    let mut other = rig.connect(1).await;
    let lost = rig.submit_text("e").await;
    other.lease().await;
    drop(other);
    rig.pass(Duration::from_secs(31)).await;
    rig.until(&lost, "retry_wait").await;
    says(
        &rig,
        &[
            (&ended("attempts", "expired"), 1),
            (&ended("jobs", "failed"), 2),
            (leased, 6),
        ],
    )
    .await;
}

#[tokio::test]
async fn times_and_requests_are_counted() {
    let rig = Rig::start().await;
    let before = scraped(&rig).await;
    let job = rig.submit_text("x").await;
    rig.job(&job).await;
    let mut worker = rig.connect(0).await;
    worker.lease().await;
    rig.job(&"f".repeat(32)).await;
    rig.get("/nowhere").await;
    rig.send(bare("/v1/jobs")).await;
    let after = scraped(&rig).await;
    let claims = |found: &Exposition| found.value("forge_gate_claim_seconds_count");
    assert!((claims(&after) - claims(&before) - 1.0).abs() < 1e-9);
    let bucket = "forge_gate_store_operation_seconds_bucket{operation=\"submit\",le=\"+Inf\"}";
    assert!((after.value(bucket) - 1.0).abs() < 1e-9);
    for operation in [
        "submit",
        "claim",
        "connect_slot",
        "job",
        "queue_place",
        "next_due",
    ] {
        let series =
            format!("forge_gate_store_operation_seconds_count{{operation=\"{operation}\"}}");
        assert!(after.value(&series) >= 1.0, "{operation}");
    }
    for (method, route, class, count) in [
        ("POST", "/v1/jobs", "2xx", 1),
        ("GET", "/v1/jobs", "4xx", 1),
        ("GET", "/v1/jobs/{id}", "2xx", 1),
        ("GET", "/v1/jobs/{id}", "4xx", 1),
        ("GET", "/v1/workers/connect", "1xx", 1),
        ("GET", "none", "4xx", 1),
        ("GET", "/metrics", "2xx", 1),
    ] {
        let series = format!(
            "forge_gate_http_requests_total{{method=\"{method}\",route=\"{route}\",class=\"{class}\"}}"
        );
        assert!(
            (after.value(&series) - f64::from(count)).abs() < 1e-9,
            "{series}"
        );
    }
}

#[tokio::test]
async fn connections_are_counted_while_they_are_open() {
    let rig = Rig::start().await;
    says(&rig, &[("connections", 0)]).await;
    let idle = tokio::net::TcpStream::connect(rig.address).await.unwrap();
    let open = async |wanted: f64| {
        loop {
            let found = scraped(&rig).await.value("forge_gate_connections");
            if (found - wanted).abs() < 1e-9 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let patience = crate::support::PATIENCE;
    tokio::time::timeout(patience, open(1.0)).await.unwrap();
    drop(idle);
    tokio::time::timeout(patience, open(0.0)).await.unwrap();
}
