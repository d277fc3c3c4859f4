//! Every failure has the one shape, whoever notices it: the router, the middleware or a handler.

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::json;
use test_case::test_case;

use crate::support::*;

/// Every route, and what it answers to.
const ROUTES: [(&str, &str); 15] = [
    ("/catalog", "GET,HEAD"),
    ("/resolve", "GET,HEAD"),
    ("/artifacts/sha256:aa", "GET,HEAD,PUT"),
    ("/artifacts/sha256:aa/receipt", "GET,HEAD,PUT"),
    ("/releases", "POST"),
    ("/releases/r-aa/yank", "POST"),
    ("/releases/r-aa/unyank", "POST"),
    ("/plugins/a/releases", "GET,HEAD"),
    ("/plugins/a/channels/b", "PUT"),
    ("/installations", "GET,HEAD,POST"),
    ("/whoami", "GET,HEAD"),
    ("/openapi.json", "GET,HEAD"),
    ("!/healthz", "GET,HEAD"),
    ("!/readyz", "GET,HEAD"),
    ("/catalog?q=a", "GET,HEAD"),
];

#[tokio::test]
async fn another_method_is_told_which_there_are() {
    let rig = Rig::new();
    for (path, allowed) in ROUTES {
        for method in [
            "GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "TRACE", "MADEUP",
        ] {
            if allowed.contains(method) {
                continue;
            }
            let answer = rig.send(Ask::new(method, path).token(ALL).empty()).await;
            answer.refused(405, "method_not_allowed");
            let mut told: Vec<_> = answer.header("allow").split(',').map(str::trim).collect();
            told.sort_unstable();
            assert_eq!(told.join(","), allowed, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn an_unknown_route_is_told_so() {
    let rig = Rig::new();
    for path in [
        "!/",
        "!/plugin-protocol",
        "!/plugin-protocol/v1",
        "!/plugin-protocol/v1/",
        "!/plugin-protocol/v2/catalog",
        "/catalog/",
        "/Catalog",
        "/artifacts",
        "/artifacts/",
        "/artifacts/a/b",
        "/plugins/../catalog",
        "//catalog",
        "!/catalog",
    ] {
        for method in ["GET", "POST", "DELETE"] {
            let answer = rig.send(Ask::new(method, path).token(ALL).empty()).await;
            answer.refused(404, "not_found");
        }
    }
}

#[tokio::test]
async fn no_route_is_open_but_those_that_say_nothing() {
    let rig = Rig::new();
    for (path, methods) in ROUTES {
        for method in methods.split(',').filter(|method| *method != "HEAD") {
            let open = path.starts_with('!') || path == "/openapi.json";
            for token in ["", "wrong", "canary-al", "canary-all2"] {
                let answer = rig.send(Ask::new(method, path).token(token).empty()).await;
                if open {
                    assert_eq!(answer.status, 200);
                    continue;
                }
                answer.refused(401, "unauthorized");
                assert_eq!(answer.header("www-authenticate"), "Bearer");
            }
        }
    }
}

#[test_case(&["Basic canary-all"]; "another scheme")]
#[test_case(&["Bearer"]; "no token")]
#[test_case(&["Bearer "]; "an empty token")]
#[test_case(&["Bearer  canary-all"]; "two spaces")]
#[test_case(&["canary-all"]; "no scheme")]
#[test_case(&["Bearer canary-all", "Bearer canary-all"]; "two")]
#[tokio::test]
async fn a_token_stands_in_one_header_of_one_form(values: &[&str]) {
    let rig = Rig::new();
    let mut ask = Ask::new("GET", "/catalog");
    for value in values {
        ask = ask.with(header::AUTHORIZATION, value);
    }
    rig.send(ask.empty()).await.refused(401, "unauthorized");
    let good = Ask::new("GET", "/catalog").with(header::AUTHORIZATION, "bEaReR canary-all");
    assert_eq!(rig.send(good.empty()).await.status, 200);
}

#[tokio::test]
async fn every_scope_is_asked_for() {
    let rig = Rig::new();
    let needs = [
        ("GET", "/catalog", "read"),
        ("GET", "/resolve?plugin_id=a", "read"),
        ("GET", "/artifacts/x", "read"),
        ("PUT", "/artifacts/x", "publish"),
        ("GET", "/artifacts/x/receipt", "read"),
        ("PUT", "/artifacts/x/receipt", "publish"),
        ("POST", "/releases", "publish"),
        ("GET", "/plugins/a/releases", "read"),
        ("PUT", "/plugins/a/channels/b", "promote"),
        ("POST", "/releases/x/yank", "yank"),
        ("POST", "/releases/x/unyank", "yank"),
        ("GET", "/installations", "read"),
        ("POST", "/installations", "report"),
    ];
    for (method, path, scope) in needs {
        let token = if scope == "report" { READER } else { REPORTER };
        let answer = rig.send(Ask::new(method, path).token(token).empty()).await;
        answer.refused(403, "forbidden");
        assert!(answer.message().contains(scope), "{method} {path}");
        assert!(
            answer
                .header("www-authenticate")
                .contains("insufficient_scope")
        );
    }
}

#[tokio::test]
async fn a_token_is_told_what_it_is_good_for() {
    let rig = Rig::new();
    let told = rig.get("/whoami", ACME).await.json();
    let scopes = json!(["read", "publish", "promote", "yank", "report"]);
    assert_eq!(
        told,
        json!({"protocol_version": "1", "name": "acme", "scopes": scopes, "plugins": ["acme-*"]})
    );
    let told = rig.get("/whoami", REPORTER).await.json();
    assert_eq!(told["scopes"], json!(["report"]));
    assert_eq!(told["plugins"], json!(["*"]));
}

#[tokio::test]
async fn foreign_hosts_and_sites_are_turned_away() {
    let rig = Rig::new();
    let ask = |hosts: &[&str], origin: Option<&str>| {
        let mut request = Request::builder().uri(format!("{V1}/whoami"));
        for host in hosts {
            request = request.header(header::HOST, *host);
        }
        if let Some(origin) = origin {
            request = request.header(header::ORIGIN, origin);
        }
        let request = request.header(header::AUTHORIZATION, format!("Bearer {ALL}"));
        request.body(Body::empty()).unwrap()
    };
    for hosts in [&[][..], &["a", "b"], &["a b"], &["u@localhost"]] {
        rig.send(ask(hosts, None))
            .await
            .refused(400, "invalid_request");
    }
    rig.send(ask(&["evil.example"], None))
        .await
        .refused(403, "forbidden");
    rig.send(ask(&["localhost"], Some("https://evil.example")))
        .await
        .refused(403, "forbidden");
    for hosts in ["localhost", "127.0.0.1:8790", "[::1]:1"] {
        assert_eq!(rig.send(ask(&[hosts], None)).await.status, 200);
    }
}

#[tokio::test]
async fn queries_are_read_strictly_on_every_route() {
    let rig = Rig::new();
    let release = rig.publish(&package("acme-tools", "1")).await;
    let artifact = format!(
        "/artifacts/{}",
        release["artifact_digest"].as_str().unwrap()
    );
    let yank = format!("/releases/{}/yank", release["release_id"].as_str().unwrap());
    for (method, path) in [
        ("GET", "/catalog"),
        ("GET", "/resolve"),
        ("GET", &artifact),
        ("PUT", &artifact),
        ("GET", &format!("{artifact}/receipt")),
        ("PUT", &format!("{artifact}/receipt")),
        ("POST", "/releases"),
        ("GET", "/plugins/acme-tools/releases"),
        ("PUT", "/plugins/acme-tools/channels/stable"),
        ("POST", &yank),
        ("POST", &yank.replace("yank", "unyank")),
        ("GET", "/installations"),
        ("POST", "/installations"),
        ("GET", "/whoami"),
    ] {
        for query in [
            "x=1",
            "token=a",
            "limit=",
            "limit=1&limit=1",
            "q=%ff",
            "%zz",
        ] {
            let path = format!("{path}?{query}");
            let answer = rig.send(Ask::new(method, &path).token(ALL).empty()).await;
            answer.refused(400, "invalid_request");
        }
    }
    for limit in ["0", "101", "-1", "+1", "1.0", "x", "99999999999999999999"] {
        for path in ["/catalog", "/installations", "/plugins/acme-tools/releases"] {
            rig.get(&format!("{path}?limit={limit}"), ALL)
                .await
                .refused(400, "invalid_request");
        }
    }
    for query in ["q=%20".to_owned(), format!("q={}", "a".repeat(201))] {
        let answer = rig.get(&format!("/catalog?{query}"), ALL).await;
        assert!(answer.status == 200 || answer.refusal().0 == 400, "{query}");
    }
}

#[tokio::test]
async fn every_answer_has_an_id_and_the_headers_of_browsers() {
    let rig = Rig::new();
    let mut ids = std::collections::BTreeSet::new();
    for path in ["/catalog", "/nothing", "/whoami", "!/healthz"] {
        let answer = rig.get(path, ALL).await;
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert!(answer.header("content-security-policy").contains("'none'"));
        assert!(ids.insert(answer.header("x-request-id").to_owned()));
    }
    assert!(ids.iter().all(|id| !id.is_empty()));
}

#[tokio::test]
async fn health_is_told_to_everybody() {
    let rig = Rig::new();
    let alive = rig.get("!/healthz", "").await;
    assert_eq!(alive.json(), json!({"status": "ok"}));
    assert_eq!(
        rig.get("!/readyz", "").await.json(),
        json!({"status": "ready"})
    );
    rig.state.stop();
    let stopping = rig.get("!/readyz", "").await;
    assert_eq!(stopping.status, 503);
    assert_eq!(stopping.json(), json!({"status": "stopping"}));
}

#[tokio::test]
async fn a_bucket_that_is_away_passes_and_is_not_named_to_the_client() {
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", nobody.local_addr().unwrap());
    drop(nobody);
    let place = registry_store::ArtifactPlace::S3(Box::new(registry_store::S3 {
        bucket: "plugins".to_owned(),
        region: "eu-test-1".to_owned(),
        endpoint: Some(endpoint.clone()),
        prefix: None,
        access_key_id: "KEYID".to_owned(),
        secret_access_key: "canary-secret".to_owned(),
        tls: tls_files::ClientTls::trust_nobody().unwrap(),
        silence: registry_store::S3::SILENCE,
    }));
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("bucket");
    let limits = registry_store::Limits::default();
    let store = registry_store::Store::open(&root, place, limits).unwrap();
    let rig = Rig::with(|service| service.store = store);
    let answer = rig.send(put_artifact(&package("acme-a", "1"), ALL)).await;
    answer.refused(503, "temporarily_unavailable");
    assert_eq!(answer.json()["error"]["retryable"], json!(true));
    let text = String::from_utf8_lossy(&answer.bytes);
    let address = endpoint.strip_prefix("http://").unwrap();
    for secret in ["canary", "KEYID", address, "plugins"] {
        assert!(!text.contains(secret), "{text}");
    }
    // What needs no bytes is answered.
    assert_eq!(rig.get("/catalog", READER).await.status, 200);
}
