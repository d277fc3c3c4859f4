//! A registry in a folder of its own, with tokens of all kinds, and what is sent to it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, header};
use backplane_registry::{Identity, RegistryState, Scope, Service, ServiceLimits, Tokens, router};
use cli_shell::Secret;
use digest_text::Sha256Text;
use jiff::{SignedDuration, Timestamp};
use plugin_archive::{Files, Limits, Modes};
use registry_store::{ArtifactPlace, Store};
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt as _;
use web_server::HostRules;

/// Longer than anything here should take on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const V1: &str = "/plugin-protocol/v1";
/// May do everything.
pub(crate) const ALL: &str = "canary-all";
/// May read.
pub(crate) const READER: &str = "canary-reader";
/// May do everything with plugins whose id begins with `acme-`.
pub(crate) const ACME: &str = "canary-acme";
/// May report, and nothing else.
pub(crate) const REPORTER: &str = "canary-reporter";

/// A clock that a test moves.
#[derive(Clone)]
pub(crate) struct TestClock(Arc<Mutex<Timestamp>>);

impl TestClock {
    pub(crate) fn advance(&self, by: SignedDuration) {
        *self.0.lock().unwrap() += by;
    }
}

/// A registry without sockets.
pub(crate) struct Rig {
    /// Its folder, as long as it is needed.
    _dir: TempDir,
    pub(crate) clock: TestClock,
    pub(crate) store: Store,
    pub(crate) state: RegistryState,
    pub(crate) router: Router,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Service)) -> Self {
        Self::limited(ServiceLimits::default(), change)
    }

    pub(crate) fn limited(limits: ServiceLimits, change: impl FnOnce(&mut Service)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        let remembered = registry_store::Limits {
            archive: limits.archive,
            uploads: limits.uploads,
            ..registry_store::Limits::default()
        };
        let store = Store::open(&root, ArtifactPlace::Disk, remembered).unwrap();
        let hosts = HostRules::new(true, "127.0.0.1", None, &BTreeSet::new());
        let mut service = Service {
            store: store.clone(),
            tokens: tokens(dir.path()),
            hosts,
            anonymous_read: false,
            limits,
        };
        change(&mut service);
        let now = Arc::new(Mutex::new("2026-12-01T04:00:00Z".parse().unwrap()));
        let clock = TestClock(Arc::clone(&now));
        let state = RegistryState::new(service, Arc::new(move || *now.lock().unwrap()), 1);
        Self {
            _dir: dir,
            clock,
            store,
            router: router(state.clone()),
            state,
        }
    }

    /// Sends a request to the router.
    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let answer = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = answer.into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        Answer {
            status: parts.status,
            headers: parts.headers,
            bytes,
        }
    }

    pub(crate) async fn get(&self, path: &str, token: &str) -> Answer {
        self.send(Ask::new("GET", path).token(token).empty()).await
    }

    pub(crate) async fn post(&self, path: &str, token: &str, body: &Value) -> Answer {
        self.send(Ask::new("POST", path).token(token).json(body))
            .await
    }

    /// Uploads an archive and releases it into `stable`.
    pub(crate) async fn publish(&self, archive: &[u8]) -> Value {
        self.publish_to(archive, "stable").await
    }

    pub(crate) async fn publish_to(&self, archive: &[u8], channel: &str) -> Value {
        let put = self.send(put_artifact(archive, ALL)).await;
        assert!(put.status.is_success(), "{put:?}");
        let body = json!({"artifact_digest": digest(archive), "channel": channel});
        let made = self.post("/releases", ALL, &body).await;
        assert!(made.status.is_success(), "{made:?}");
        made.json()
    }
}

fn tokens(dir: &Path) -> Tokens {
    let acme = Some(vec!["acme-*".parse().unwrap()]);
    let scopes: [(&str, BTreeSet<Scope>, _); 4] = [
        (ALL, Scope::ALL.into(), None),
        (READER, BTreeSet::from([Scope::Read]), None),
        (ACME, Scope::ALL.into(), acme),
        (REPORTER, BTreeSet::from([Scope::Report]), None),
    ];
    let tokens = scopes.map(|(token, scopes, plugins)| {
        let identity = Identity {
            name: token.trim_start_matches("canary-").to_owned(),
            scopes,
            plugins,
        };
        (secret(dir, token), identity)
    });
    Tokens::new(tokens).unwrap()
}

pub(crate) fn secret(dir: &Path, text: &str) -> Secret {
    let path = dir.join(format!("{text}.token"));
    fs_err::write(&path, text).unwrap();
    Secret::from_file(&path).unwrap()
}

/// A request that is being put together.
pub(crate) struct Ask(axum::http::request::Builder);

impl Ask {
    /// A path that begins with `/v1` aside, paths are those below the prefix.
    pub(crate) fn new(method: &str, path: &str) -> Self {
        let path = match path.strip_prefix('!') {
            Some(whole) => whole.to_owned(),
            None => format!("{V1}{path}"),
        };
        let builder = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "127.0.0.1");
        Self(builder)
    }

    pub(crate) fn token(self, token: &str) -> Self {
        match token {
            "" => self,
            token => self.with(header::AUTHORIZATION, &format!("Bearer {token}")),
        }
    }

    pub(crate) fn with(self, name: HeaderName, value: &str) -> Self {
        Self(self.0.header(name, HeaderValue::from_str(value).unwrap()))
    }

    pub(crate) fn empty(self) -> Request<Body> {
        self.0.body(Body::empty()).unwrap()
    }

    pub(crate) fn json(self, body: &Value) -> Request<Body> {
        self.text(&body.to_string())
    }

    pub(crate) fn text(self, body: &str) -> Request<Body> {
        self.with(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body.to_owned()))
    }

    pub(crate) fn body(self, body: impl Into<Body>) -> Request<Body> {
        self.0.body(body.into()).unwrap()
    }
}

/// The request that uploads an archive under its digest.
pub(crate) fn put_artifact(archive: &[u8], token: &str) -> Request<Body> {
    put_as(&digest(archive), archive, token)
}

pub(crate) fn put_as(digest: &str, archive: &[u8], token: &str) -> Request<Body> {
    Ask::new("PUT", &format!("/artifacts/{digest}"))
        .token(token)
        .with(header::CONTENT_TYPE, "application/x-tar+gzip")
        .body(archive.to_vec())
}

/// The request that puts a receipt beside an archive.
pub(crate) fn put_receipt(digest: &str, receipt: &str, token: &str) -> Request<Body> {
    Ask::new("PUT", &format!("/artifacts/{digest}/receipt"))
        .token(token)
        .with(header::CONTENT_TYPE, "application/yaml")
        .body(receipt.to_owned())
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), "application/json", "{self:?}");
        serde_json::from_slice(&self.bytes).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// The status and the code of an error object, whose shape is checked.
    pub(crate) fn refusal(&self) -> (u16, String) {
        let body = self.json();
        assert_eq!(body["protocol_version"], "1", "{body}");
        assert_eq!(body.as_object().unwrap().len(), 2, "{body}");
        let error = body["error"].as_object().unwrap();
        assert_eq!(error.len(), 3, "{body}");
        assert!(error["retryable"].is_boolean(), "{body}");
        let message = error["message"].as_str().unwrap();
        assert!(!message.is_empty() && !message.contains("canary"), "{body}");
        assert_eq!(self.header("cache-control"), "no-store", "{self:?}");
        (
            self.status.as_u16(),
            error["code"].as_str().unwrap().to_owned(),
        )
    }

    pub(crate) fn message(&self) -> String {
        self.json()["error"]["message"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: &str) {
        assert_eq!(self.refusal(), (status, code.to_owned()), "{self:?}");
    }
}

pub(crate) fn digest(archive: &[u8]) -> String {
    Sha256Text::of(archive).to_string()
}

/// The archive of a small plugin.
pub(crate) fn package(name: &str, version: &str) -> Vec<u8> {
    let manifest = json!({
        "$schema": agent_plugin::PLUGIN_SCHEMA,
        "name": name,
        "version": version,
        "description": format!("What {name} does"),
    });
    archive_of(&manifest, &[("README.md", b"read me".to_vec())])
}

pub(crate) fn archive_of(manifest: &Value, more: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut files = Files::from([("plugin.json".to_owned(), manifest.to_string().into_bytes())]);
    for (path, bytes) in more {
        files.insert((*path).to_owned(), bytes.clone());
    }
    plugin_archive::pack(&files, &Modes::new(), &Limits::default()).unwrap()
}

/// A receipt that names these bytes among what was made.
pub(crate) fn receipt_of(archive: &[u8], version: &str) -> String {
    let hash = attest_receipt::encode::blake3_hex(archive);
    let zeros = "0".repeat(64);
    format!(
        "schema_version: 2
pipeline_hash: {zeros}
steps:
- name: pack
  input_hash: {zeros}
  output_hash: {zeros}
  duration_secs: 1
  exit_code: 0
  cache_hit: false
  stdout: ''
  stderr: ''
timestamp: 2026-12-01T00:00:00Z
total_duration_secs: 1
signature: null
signer_public_key: null
attest_version: '{version}'
causal_events: []
causal_chain_hash: null
provenance:
  invocation_id: null
  started_at: null
  pipeline_name: null
  source: null
  runner_os: linux
  runner_arch: x86_64
  ci: null
  steps:
  - name: pack
    needs: []
    command_hash: {zeros}
    inputs: []
    outputs:
    - plugin.tar.gz
  artifacts:
  - step: pack
    path: plugin.tar.gz
    kind: file
    digest: {hash}
    algorithm: blake3
"
    )
}
