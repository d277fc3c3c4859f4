//! The routes of the owner, called without a socket.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use serde_json::{Value, json};
use test_case::test_case;

use crate::support::{BASE, CANDIDATE, OWNER, Rig, WORKER, coding, failure, owner, text_result};

const ROUTES: &[(&str, &str)] = &[
    ("POST", "/v1/jobs"),
    ("GET", "/v1/jobs"),
    ("GET", "/v1/jobs/0"),
    ("GET", "/v1/jobs/0/status"),
    ("GET", "/v1/jobs/0/result"),
    ("GET", "/v1/jobs/0/events"),
    ("GET", "/v1/jobs/0/output"),
    ("POST", "/v1/jobs/0/cancel"),
    ("POST", "/v1/jobs/0/retry"),
    ("GET", "/v1/jobs/0/attempts/0/evidence"),
    ("GET", "/v1/pools"),
    ("POST", "/v1/pools/coding/pause"),
    ("POST", "/v1/pools/coding/resume"),
    ("GET", "/metrics"),
    ("GET", "/v1/workers"),
    ("GET", "/v1/workers/worker-1"),
];

fn unknown_job() -> String {
    "f".repeat(32)
}

#[tokio::test]
async fn health_and_readiness_need_no_token() {
    let mut rig = Rig::start().await;
    let bare = |path: &str| {
        Request::get(path)
            .header(header::HOST, "localhost")
            .body(Body::empty())
            .unwrap()
    };
    let healthy = rig.send(bare("/healthz")).await;
    assert_eq!(
        (healthy.status, healthy.body.as_str()),
        (StatusCode::OK, "{\"status\":\"ok\"}\n")
    );
    let ready = rig.send(bare("/readyz")).await;
    assert_eq!(
        (ready.status, ready.body.as_str()),
        (StatusCode::OK, "{\"status\":\"ready\"}\n")
    );
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
    ] {
        assert_eq!(ready.headers[name], value);
    }
    assert!(
        ready.headers["content-security-policy"]
            .to_str()
            .unwrap()
            .starts_with("default-src 'none'")
    );
    rig.stop().await;
    assert_eq!(
        rig.send(bare("/readyz")).await.status,
        StatusCode::SERVICE_UNAVAILABLE
    );
    assert_eq!(rig.send(bare("/healthz")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn r57_every_owner_route_wants_the_owners_token() {
    let rig = Rig::start().await;
    for (method, path) in ROUTES {
        for authorization in [
            None,
            Some("Bearer wrong".to_owned()),
            Some(format!("Bearer {WORKER}")),
            Some(format!("Bearer {OWNER} ")),
            Some(format!("Basic {OWNER}")),
            Some(OWNER.to_owned()),
            Some("Bearer ".to_owned()),
        ] {
            let mut request = Request::builder()
                .method(*method)
                .uri(*path)
                .header(header::HOST, "127.0.0.1");
            if let Some(authorization) = &authorization {
                request = request.header(header::AUTHORIZATION, authorization);
            }
            let reply = rig.send(request.body(Body::empty()).unwrap()).await;
            assert_eq!(
                reply.status,
                StatusCode::UNAUTHORIZED,
                "{method} {path} {authorization:?}"
            );
            assert_eq!(reply.body.trim_end(), "unauthorized");
            assert!(
                reply.headers["content-type"]
                    .to_str()
                    .unwrap()
                    .starts_with("text/plain")
            );
            assert_eq!(reply.headers["cache-control"], "no-store");
        }
        let twice = Request::builder()
            .method(*method)
            .uri(*path)
            .header(header::HOST, "127.0.0.1")
            .header(header::AUTHORIZATION, format!("Bearer {OWNER}"))
            .header(header::AUTHORIZATION, format!("Bearer {OWNER}"));
        assert_eq!(
            rig.send(twice.body(Body::empty()).unwrap()).await.status,
            StatusCode::UNAUTHORIZED
        );
        let reply = rig
            .send(owner(method, path).body(Body::empty()).unwrap())
            .await;
        assert_ne!(reply.status, StatusCode::UNAUTHORIZED, "{method} {path}");
        assert_eq!(
            reply.headers["cache-control"], "no-store",
            "{method} {path}"
        );
    }
    let in_query =
        Request::get(format!("/v1/jobs?token={OWNER}")).header(header::HOST, "localhost");
    assert_eq!(
        rig.send(in_query.body(Body::empty()).unwrap()).await.status,
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test]
async fn r57_foreign_hosts_and_origins_are_turned_away() {
    let rig = Rig::start().await;
    for path in ["/v1/jobs", "/healthz"] {
        let foreign = owner("GET", path).header(header::ORIGIN, "http://evil.example");
        let reply = rig.send(foreign.body(Body::empty()).unwrap()).await;
        assert_eq!(
            (reply.status, reply.code().as_str()),
            (StatusCode::FORBIDDEN, "foreign_origin")
        );
        let foreign = Request::get(path).header(header::HOST, "evil.example");
        let reply = rig.send(foreign.body(Body::empty()).unwrap()).await;
        assert_eq!(
            (reply.status, reply.code().as_str()),
            (StatusCode::FORBIDDEN, "foreign_host")
        );
        let reply = rig
            .send(Request::get(path).body(Body::empty()).unwrap())
            .await;
        assert_eq!(
            (reply.status, reply.code().as_str()),
            (StatusCode::BAD_REQUEST, "invalid_host")
        );
    }
    let post = owner("POST", "/v1/jobs")
        .header(header::ORIGIN, "null")
        .body(Body::from("{\"input\":\"x\"}"));
    assert_eq!(rig.send(post.unwrap()).await.status, StatusCode::FORBIDDEN);
    let own = owner("POST", "/v1/jobs")
        .header(header::ORIGIN, "http://127.0.0.1")
        .body(Body::from("{\"input\":\"x\"}"));
    assert_eq!(rig.send(own.unwrap()).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn a_text_job_is_accepted_as_it_is_described() {
    let rig = Rig::start().await;
    let reply = rig
        .post(
            "/v1/jobs",
            json!({"input": "hello", "source_ref": "issue 7", "priority": -100}),
        )
        .await;
    assert_eq!(reply.status, StatusCode::CREATED);
    assert!(reply.body.ends_with("}\n"));
    let job = reply.json();
    let id = job["id"].as_str().unwrap();
    assert_eq!(id.len(), 32);
    let now = json!("2026-01-01T00:00:00Z");
    assert_eq!(
        job,
        json!({
            "id": id, "kind": "legacy", "status": "pending", "worker_pool": "coding", "policy_version": 1,
            "priority": -100, "source_ref": "issue 7", "created_at": now, "updated_at": now,
        })
    );
    let mut shown = rig.job(id).await;
    // The one thing that only this route says.
    let waiting = shown.as_object_mut().unwrap().remove("waiting").unwrap();
    assert_eq!(waiting["reason"], "no_worker_connected");
    assert_eq!(shown, job);
    let status = rig.get(&format!("/v1/jobs/{id}/status")).await.json();
    assert_eq!(
        status,
        json!({
            "id": id, "kind": "legacy", "status": "pending", "created_at": now, "updated_at": now,
        })
    );
    let events = rig.get(&format!("/v1/jobs/{id}/events")).await.json();
    assert_eq!(events[0]["kind"], "submitted");
    assert_eq!(events[0]["job_id"], id);
}

#[tokio::test]
async fn a_coding_job_is_accepted_as_it_is_described() {
    let rig = Rig::start().await;
    let mut body = coding();
    body["commit_author_name"] = json!("Ada");
    body["commit_author_email"] = json!("ada@example.com");
    let job = rig.post("/v1/jobs", body).await.json();
    assert_eq!(
        (&job["kind"], &job["base_sha"]),
        (&json!("coding"), &json!(BASE))
    );
    assert_eq!(job["repository_id"], "agent-forge");
    for hidden in ["instruction", "input", "tests", "result", "resolved_policy"] {
        assert!(job.get(hidden).is_none(), "{hidden}");
    }
}

fn changed(pointer: &str, value: Value) -> Value {
    let mut body = coding();
    body[pointer] = value;
    body
}

#[test_case(json!({}); "nothing")]
#[test_case(json!({"input": ""}); "an empty input")]
#[test_case(json!({"input": null}); "a null input")]
#[test_case(json!({"input": "x", "instruction": "y"}); "a text job with a coding field")]
#[test_case(json!({"input": "x", "worker_pool": "coding"}); "a pool")]
#[test_case(json!({"input": "x", "policy": {}}); "a policy")]
#[test_case(json!({"input": "x", "source_ref": null}); "a null source")]
#[test_case(json!({"input": "x", "source_ref": "a\u{7}"}); "a source with a control character")]
#[test_case(json!({"input": "x", "source_ref": "s".repeat(513)}); "a long source")]
#[test_case(json!({"input": "x", "priority": 101}); "a high priority")]
#[test_case(json!({"input": "x", "priority": -101}); "a low priority")]
#[test_case(json!({"input": "x", "priority": 1.5}); "a broken priority")]
#[test_case(json!({"input": "x", "priority": "1"}); "a priority in quotes")]
#[test_case(changed("repository", json!("/srv/repo")); "a repository path")]
#[test_case(changed("repository_id", json!("unheard-of")); "an unknown repository")]
#[test_case(changed("base_sha", json!("HEAD")); "a base that is no hash")]
#[test_case(changed("base_sha", json!("A".repeat(40))); "a base in upper case")]
#[test_case(changed("instruction", json!("")); "an empty instruction")]
#[test_case(changed("instruction", json!("i".repeat(65_537))); "a long instruction")]
#[test_case(changed("tests", json!([[]])); "a check without a program")]
#[test_case(changed("tests", json!("go test")); "checks as a text")]
#[test_case(changed("tests", json!(vec![["t"]; 33])); "33 checks")]
#[test_case(changed("commit_author_name", json!("Ada")); "half an author")]
#[test_case(changed("max_attempts", json!(9)); "a policy field")]
#[tokio::test]
async fn a_bad_request_is_refused_with_a_reason(body: Value) {
    let rig = Rig::start().await;
    let reply = rig.post("/v1/jobs", body).await;
    assert_eq!(reply.status, StatusCode::BAD_REQUEST);
    let error = reply.json();
    assert_eq!(error["error"], "invalid request");
    assert!(!error["reason"].as_str().unwrap().is_empty());
    assert_eq!(rig.get("/v1/jobs").await.json(), json!({"items": []}));
}

#[tokio::test]
async fn r60_a_body_that_is_not_one_strict_object_is_refused() {
    let rig = Rig::start().await;
    for body in [
        "",
        "null",
        "[]",
        "{\"input\":\"x\"}x",
        "{\"input\":\"x\",\"input\":\"y\"}",
        "{\"input\":\"\\ud800\"}",
        "{\"input\":\"x\",\"\\u0069nput\":\"y\"}",
        "\u{feff}{\"input\":\"x\"}",
        "{\"Input\":\"x\"}",
    ] {
        assert_eq!(
            rig.post("/v1/jobs", body).await.status,
            StatusCode::BAD_REQUEST,
            "{body}"
        );
    }
    assert_eq!(
        rig.post("/v1/jobs", " {\r\n\t\"input\" : \"x\" }\n")
            .await
            .status,
        StatusCode::CREATED
    );
}

#[tokio::test]
async fn the_body_limit_is_one_mebibyte() {
    let rig = Rig::start().await;
    let padded = |bytes: usize| {
        let body = "{\"input\":\"x\"}";
        format!("{body}{}", " ".repeat(bytes - body.len()))
    };
    assert_eq!(
        rig.post("/v1/jobs", padded(1 << 20)).await.status,
        StatusCode::CREATED
    );
    let reply = rig.post("/v1/jobs", padded((1 << 20) + 1)).await;
    assert_eq!(reply.status, StatusCode::PAYLOAD_TOO_LARGE);
    let largest = json!({"input": "x".repeat(65_536)});
    assert_eq!(
        rig.post("/v1/jobs", largest).await.status,
        StatusCode::CREATED
    );
    let larger = json!({"input": "x".repeat(65_537)});
    assert_eq!(
        rig.post("/v1/jobs", larger).await.status,
        StatusCode::BAD_REQUEST
    );
}

#[tokio::test]
async fn a_task_that_no_lease_can_carry_is_refused() {
    let rig = Rig::start().await;
    // Each `<` becomes six bytes on the link.
    let tests = |arguments: usize| json!([vec!["<".repeat(4096); arguments]]);
    assert_eq!(
        rig.post("/v1/jobs", changed("tests", tests(40)))
            .await
            .status,
        StatusCode::CREATED
    );
    let reply = rig.post("/v1/jobs", changed("tests", tests(50))).await;
    assert_eq!(reply.status, StatusCode::BAD_REQUEST);
    assert!(reply.body.contains("when it is encoded"), "{}", reply.body);
}

#[tokio::test]
async fn an_idempotency_key_stands_for_one_request() {
    let rig = Rig::start().await;
    let submit = async |key: &str, input: &str| {
        let request = owner("POST", "/v1/jobs").header("Idempotency-Key", key);
        rig.send(
            request
                .body(Body::from(json!({"input": input}).to_string()))
                .unwrap(),
        )
        .await
    };
    let first = submit("key 1", "x").await;
    assert_eq!(first.status, StatusCode::CREATED);
    let again = submit("key 1", "x").await;
    assert_eq!(again.status, StatusCode::OK);
    assert_eq!(again.json()["id"], first.json()["id"]);
    let other = submit("key 1", "y").await;
    assert_eq!(
        (other.status, other.code().as_str()),
        (StatusCode::CONFLICT, "idempotency_conflict")
    );
    assert_eq!(
        submit(&"k".repeat(128), "x").await.status,
        StatusCode::CREATED
    );
    assert_eq!(
        submit(&"k".repeat(129), "x").await.status,
        StatusCode::BAD_REQUEST
    );
    assert_eq!(
        rig.get("/v1/jobs").await.json()["items"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[tokio::test]
async fn r25_jobs_are_listed_newest_first_in_pages() {
    let rig = Rig::start().await;
    let mut ids = Vec::new();
    for number in 0..5 {
        ids.push(rig.submit_text(&number.to_string()).await);
        rig.clock.advance(Duration::from_secs(1));
    }
    let coding = rig.submit_coding().await;
    let mut seen = Vec::new();
    let mut query = "limit=2".to_owned();
    loop {
        let page = rig.get(&format!("/v1/jobs?{query}")).await.json();
        seen.extend(
            page["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|job| job["id"].as_str().unwrap().to_owned()),
        );
        match page["next_cursor"].as_str() {
            Some(cursor) => query = format!("limit=2&cursor={cursor}"),
            None => break,
        }
    }
    ids.push(coding.clone());
    ids.reverse();
    assert_eq!(seen, ids);
    for (filter, count) in [
        ("repository_id=agent-forge", 1),
        ("pool=coding", 6),
        ("pool=other", 0),
        ("status=pending", 6),
        ("status=failed", 0),
    ] {
        let page = rig.get(&format!("/v1/jobs?{filter}")).await.json();
        assert_eq!(page["items"].as_array().unwrap().len(), count, "{filter}");
    }
    for bad in ["limit=0", "limit=101", "x=1", "status=gone", "cursor=zzz"] {
        let reply = rig.get(&format!("/v1/jobs?{bad}")).await;
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{bad}");
        assert!(!reply.code().is_empty());
    }
}

#[tokio::test]
async fn an_unknown_job_is_not_found_and_has_no_events() {
    let rig = Rig::start().await;
    for id in [unknown_job(), "x".to_owned(), "..".to_owned()] {
        for rest in ["", "/status", "/result", "/output"] {
            let reply = rig.get(&format!("/v1/jobs/{id}{rest}")).await;
            assert_eq!(
                (reply.status, reply.code().as_str()),
                (StatusCode::NOT_FOUND, "job_not_found"),
                "{id}{rest}"
            );
        }
        assert_eq!(rig.get(&format!("/v1/jobs/{id}/events")).await.body, "[]\n");
        for verb in ["cancel", "retry"] {
            let reply = rig.post(&format!("/v1/jobs/{id}/{verb}"), "").await;
            assert_eq!(reply.status, StatusCode::NOT_FOUND);
        }
        let reply = rig
            .get(&format!("/v1/jobs/{id}/attempts/{id}/evidence"))
            .await;
        assert_eq!(
            (reply.status, reply.body.as_str()),
            (StatusCode::NOT_FOUND, "{\"message\":\"not found\"}\n")
        );
    }
    assert_eq!(rig.get("/v1/nothing").await.code(), "not_found");
    assert_eq!(
        rig.post("/v1/workers", "").await.status,
        StatusCode::METHOD_NOT_ALLOWED
    );
}

#[tokio::test]
async fn a_result_is_there_when_the_job_has_ended() {
    let rig = Rig::start().await;
    let job = rig.submit_text("x").await;
    for rest in ["result", "output"] {
        let reply = rig.get(&format!("/v1/jobs/{job}/{rest}")).await;
        assert_eq!(
            (reply.status, reply.code().as_str()),
            (StatusCode::CONFLICT, "job_not_terminal")
        );
    }
    let mut worker = rig.connect(0).await;
    let lease = worker.lease().await;
    worker
        .send(failure(&lease, "invalid_task", "terminal"))
        .await;
    worker.ack(&lease).await;
    let result = rig.get(&format!("/v1/jobs/{job}/result")).await.json();
    assert_eq!(result["job"]["failure_code"], "invalid_task");
    let attempt = &result["attempts"][0];
    assert_eq!(
        (&attempt["status"], &attempt["failure_disposition"]),
        (&json!("terminal_failed"), &json!("terminal"))
    );
    assert_eq!(attempt["evidence"], json!([]));
    let timeline = result["timeline"].as_array().unwrap();
    assert_eq!(timeline[1]["attempt_ordinal"], 1);
    assert_eq!(timeline[1]["lease_expires_at"], "2026-01-01T00:00:30Z");
    let status = rig.get(&format!("/v1/jobs/{job}/status")).await.json();
    assert!(status.get("failure_code").is_none(), "{status}");
    let output = rig.get(&format!("/v1/jobs/{job}/output")).await;
    assert_eq!(
        (output.status, output.code().as_str()),
        (StatusCode::NOT_FOUND, "no_output")
    );
    let coding = rig.submit_coding().await;
    assert_eq!(
        rig.get(&format!("/v1/jobs/{coding}/output")).await.code(),
        "no_output"
    );
}

#[tokio::test]
async fn cancel_ends_a_job_once() {
    let rig = Rig::start().await;
    let job = rig.submit_text("x").await;
    let path = format!("/v1/jobs/{job}/cancel");
    let first = rig.post(&path, "").await;
    assert_eq!(first.status, StatusCode::OK);
    assert_eq!(
        (&first.json()["status"], &first.json()["failure_code"]),
        (&json!("cancelled"), &json!("cancelled"))
    );
    rig.clock.advance(Duration::from_secs(1));
    let again = rig.post(&path, "{}").await;
    assert_eq!((again.status, again.body), (StatusCode::OK, first.body));
    assert_eq!(
        rig.post(&path, "{\"force\":true}").await.code(),
        "invalid_request"
    );
    assert_eq!(rig.post(&path, "x").await.code(), "invalid_request");

    let done = rig.submit_text("y").await;
    let mut worker = rig.connect(0).await;
    let lease = worker.lease().await;
    worker.send(text_result(&lease, "ok")).await;
    worker.ack(&lease).await;
    let reply = rig.post(&format!("/v1/jobs/{done}/cancel"), "").await;
    assert_eq!(
        (reply.status, reply.code().as_str()),
        (StatusCode::CONFLICT, "job_terminal")
    );
    let reply = rig.post(&format!("/v1/jobs/{done}/retry"), "").await;
    assert_eq!(
        (reply.status, reply.code().as_str()),
        (StatusCode::CONFLICT, "job_not_retryable")
    );
}

#[tokio::test]
async fn retry_repeats_a_failed_job_as_a_new_one_and_hurries_a_waiting_one() {
    let rig = Rig::start().await;
    let job = rig.submit_text("x").await;
    assert_eq!(
        rig.post(&format!("/v1/jobs/{job}/retry"), "").await.status,
        StatusCode::CONFLICT
    );
    let mut worker = rig.connect(0).await;
    let lease = worker.lease().await;
    worker
        .send(failure(&lease, "execution_failed", "retryable"))
        .await;
    worker.ack(&lease).await;
    assert_eq!(rig.job(&job).await["retry_at"], "2026-01-01T00:00:01Z");
    let hurried = rig.post(&format!("/v1/jobs/{job}/retry"), "").await;
    assert_eq!(
        (hurried.status, &hurried.json()["id"]),
        (StatusCode::OK, &json!(job))
    );
    let lease = worker.lease().await;
    worker
        .send(failure(&lease, "invalid_task", "terminal"))
        .await;
    worker.ack(&lease).await;
    let repeated = rig.post(&format!("/v1/jobs/{job}/retry"), "").await;
    assert_eq!(repeated.status, StatusCode::CREATED);
    assert_eq!(repeated.json()["retry_of"], job.as_str());
    let lease = worker.lease().await;
    assert_eq!(
        (&lease["input"], &lease["job_id"]),
        (&json!("x"), &repeated.json()["id"])
    );
    assert_eq!(
        rig.job(&job).await["status"],
        "failed",
        "the old one stays as it is"
    );
}

#[tokio::test]
async fn workers_are_listed_before_they_ever_connected() {
    let rig = Rig::start().await;
    let list = rig.get("/v1/workers").await.json();
    let ids: Vec<_> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["worker-1", "worker-1#1", "worker-2"]);
    assert_eq!(
        list["items"][1],
        json!({
            "id": "worker-1#1", "base_id": "worker-1", "slot": 1, "pool": "coding",
            "connected": false, "last_seen": null, "occupied": false, "state": "away",
        })
    );
    let job = rig.submit_text("x").await;
    let mut worker = rig.connect(1).await;
    let lease = worker.lease().await;
    let seen = rig.get("/v1/workers/worker-1%231").await.json();
    assert_eq!(
        (&seen["connected"], &seen["occupied"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(seen["active_job_id"], job.as_str());
    assert_eq!(seen["active_attempt_id"], lease["attempt_id"]);
    assert_eq!(
        rig.get("/v1/workers/worker-1").await.json()["connected"],
        false
    );
    for unknown in ["worker-9", "worker-1%232", "worker-1%230", "X"] {
        assert_eq!(
            rig.get(&format!("/v1/workers/{unknown}")).await.code(),
            "worker_not_found",
            "{unknown}"
        );
    }
}

#[tokio::test]
async fn the_install_proof_proves_the_token() {
    let rig = Rig::start().await;
    let challenge = "A".repeat(43);
    let path = format!("/install-proof?challenge={challenge}");
    let request = Request::get(&path)
        .header(header::HOST, "localhost")
        .body(Body::empty())
        .unwrap();
    let proof = rig.send(request).await.json();
    assert_eq!(
        (&proof["status"], &proof["version"], &proof["commit"]),
        (
            &json!("ready"),
            &json!(concat!(env!("CARGO_PKG_VERSION"), "-dev")),
            &json!("unknown")
        )
    );
    assert_eq!(proof["proof"].as_str().unwrap().len(), 43);
    for bad in [
        "",
        "challenge=",
        "challenge=x",
        &format!("challenge={challenge}&x=1"),
        &format!("challenge={}=", "A".repeat(42)),
    ] {
        let reply = rig.get(&format!("/install-proof?{bad}")).await;
        assert_eq!(
            (reply.status, reply.body.as_str()),
            (
                StatusCode::BAD_REQUEST,
                "{\"error\":\"invalid challenge\"}\n"
            )
        );
    }
}

#[tokio::test]
async fn what_was_asked_for_is_in_no_answer_but_the_output() {
    let rig = Rig::start().await;
    let mut body = coding();
    body["instruction"] = json!("instruction-canary");
    let job = rig.post("/v1/jobs", body).await.json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut worker = rig.connect(0).await;
    let lease = worker.lease().await;
    worker.send(crate::support::evidence(&lease)).await;
    worker.ack(&lease).await;
    worker.send(crate::support::candidate(&lease)).await;
    worker.ack(&lease).await;
    let attempt = lease["attempt_id"].as_str().unwrap();
    for path in [
        "",
        "/status",
        "/result",
        "/events",
        "/output",
        &format!("/attempts/{attempt}/evidence"),
    ] {
        let reply = rig.get(&format!("/v1/jobs/{job}{path}")).await;
        assert!(!reply.body.contains("canary"), "{path}: {}", reply.body);
    }
    let result = rig.get(&format!("/v1/jobs/{job}/result")).await.json();
    assert_eq!(result["job"]["candidate_sha"], CANDIDATE);
}
