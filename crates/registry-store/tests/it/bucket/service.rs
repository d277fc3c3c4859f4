//! A service that speaks as much of S3 as the store needs, on loopback, and does what a test says.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use digest_text::Sha256Text;
use futures_util::stream;
use registry_store::{ArtifactPlace, S3};
use tokio::task::JoinSet;

const KEY_ID: &str = "KEYIDOFTHEREGISTRY";
/// Must never be seen.
const SECRET: &str = "canary/secret/access/key";
const MODIFIED: &str = "Thu, 01 Jan 2026 00:00:00 GMT";

/// What is done with the next request of a method, in place of what it asks for.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// An answer that refuses, with the code that S3 gives it.
    Refuse(u16, &'static str),
    /// To another place.
    Redirect(String),
    /// Half of the body, then the connection is closed.
    Cut,
    /// Half of the object, as if that were all of it.
    Half,
    /// More bytes than the head announced.
    Whole,
    /// In small pieces with pauses.
    Drip,
    /// No answer at all.
    Nothing,
}

#[derive(Debug, Default)]
struct Inner {
    objects: BTreeMap<String, Bytes>,
    acts: VecDeque<(Method, Act)>,
    seen: Vec<(Method, String)>,
    /// What no request may be like.
    faults: Vec<String>,
}

type Shared = Arc<Mutex<Inner>>;

/// The service, while it is held.
#[derive(Debug)]
pub(crate) struct Service {
    inner: Shared,
    pub(crate) endpoint: String,
    _serving: JoinSet<std::io::Result<()>>,
}

impl Service {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let inner = Shared::default();
        let router = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&inner));
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await });
        Self {
            inner,
            endpoint,
            _serving: serving,
        }
    }

    /// A bucket there.
    pub(crate) fn s3(&self) -> S3 {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        S3 {
            bucket: "plugins".to_owned(),
            region: "eu-test-1".to_owned(),
            endpoint: Some(self.endpoint.clone()),
            prefix: Some("a/registry".to_owned()),
            access_key_id: KEY_ID.to_owned(),
            secret_access_key: SECRET.to_owned(),
            tls: Arc::new(tls),
            silence: S3::SILENCE,
        }
    }

    pub(crate) fn place(&self) -> ArtifactPlace {
        ArtifactPlace::S3(Box::new(self.s3()))
    }

    /// Does something else with a request to come.
    pub(crate) fn next(&self, method: Method, act: Act) {
        self.inner.lock().unwrap().acts.push_back((method, act));
    }

    /// The names in the bucket.
    pub(crate) fn names(&self) -> Vec<String> {
        self.inner.lock().unwrap().objects.keys().cloned().collect()
    }

    /// Changes what is kept under each name.
    pub(crate) fn change(&self, change: impl Fn(&Bytes) -> Option<Bytes>) {
        let objects = &mut self.inner.lock().unwrap().objects;
        let changed = std::mem::take(objects)
            .into_iter()
            .filter_map(|(name, bytes)| Some((name, change(&bytes)?)));
        objects.extend(changed);
    }

    /// How many requests of a method came.
    pub(crate) fn count(&self, method: &Method) -> usize {
        let seen = &self.inner.lock().unwrap().seen;
        seen.iter().filter(|(seen, _)| seen == method).count()
    }

    /// Whether everything that came was as it must be, and everything came that was waited for.
    pub(crate) fn check(&self) {
        let inner = self.inner.lock().unwrap();
        assert!(inner.faults.is_empty(), "{:?}", inner.faults);
        assert!(inner.acts.is_empty(), "{:?}", inner.acts);
    }
}

async fn answer(State(shared): State<Shared>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let path = head.uri.path().to_owned();
    let act = {
        let mut inner = shared.lock().unwrap();
        let fault = judge(&head.headers, &head.uri.to_string(), &body);
        inner.faults.extend(fault);
        inner.seen.push((head.method.clone(), path.clone()));
        let waited = inner.acts.front();
        let is_next = waited.is_some_and(|(method, _)| *method == head.method);
        is_next.then(|| inner.acts.pop_front()).flatten()
    };
    match act.map(|(_, act)| act) {
        Some(Act::Refuse(status, code)) => refuse(status, code),
        Some(Act::Redirect(to)) => {
            (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, to)]).into_response()
        }
        Some(Act::Nothing) => {
            tokio::time::sleep(Duration::from_secs(3_600)).await;
            refuse(500, "InternalError")
        }
        act => shared
            .lock()
            .unwrap()
            .done(&head.method, &path, &head.headers, body, act.as_ref()),
    }
}

/// What is wrong with a request, if anything is.
fn judge(headers: &HeaderMap, target: &str, body: &Bytes) -> Option<String> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let everything = format!("{target} {headers:?} {}", String::from_utf8_lossy(body));
    let digest = Sha256Text::of(body).to_string();
    let authorization = text("authorization").unwrap_or_default();
    let rules = [
        ("a secret", !everything.contains(SECRET)),
        (
            "no signature",
            authorization.starts_with(&format!("AWS4-HMAC-SHA256 Credential={KEY_ID}/"))
                && authorization.contains("/eu-test-1/s3/aws4_request")
                && authorization.contains("Signature="),
        ),
        (
            "other bytes than signed",
            text("x-amz-content-sha256") == digest.strip_prefix("sha256:"),
        ),
        (
            "another place",
            target.starts_with("/plugins/a/registry/sha256/"),
        ),
        // Services differ in what they make of one.
        (
            "a condition",
            text("if-none-match").is_none() && text("if-match").is_none(),
        ),
    ];
    rules
        .iter()
        .find(|(_, holds)| !holds)
        .map(|(fault, _)| format!("{fault}: {target}"))
}

fn refuse(status: u16, code: &str) -> Response {
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>No.</Message></Error>"
    );
    let kind = [(header::CONTENT_TYPE, "application/xml")];
    (StatusCode::from_u16(status).unwrap(), kind, body).into_response()
}

impl Inner {
    fn done(
        &mut self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
        body: Bytes,
        act: Option<&Act>,
    ) -> Response {
        let objects = &mut self.objects;
        match method.as_str() {
            "PUT" => {
                let etag = format!("\"{}\"", Sha256Text::of(&body));
                objects.insert(path.to_owned(), body);
                [(header::ETAG, etag)].into_response()
            }
            "DELETE" => {
                objects.remove(path);
                StatusCode::NO_CONTENT.into_response()
            }
            "GET" | "HEAD" => match objects.get(path) {
                Some(object) => read(object, headers, act),
                None => refuse(404, "NoSuchKey"),
            },
            _ => refuse(405, "MethodNotAllowed"),
        }
    }
}

fn read(object: &Bytes, headers: &HeaderMap, act: Option<&Act>) -> Response {
    let etag = format!("\"{}\"", Sha256Text::of(object));
    let answer = Response::builder()
        .header(header::ETAG, etag)
        .header(header::LAST_MODIFIED, MODIFIED);
    let range = headers.get(header::RANGE).map(|range| {
        let range = range.to_str().unwrap().strip_prefix("bytes=").unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let end: usize = end.parse().unwrap();
        (start.parse::<usize>().unwrap(), end + 1)
    });
    let total = match act {
        Some(Act::Half) => object.len() / 2,
        _ => object.len(),
    };
    let Some((start, end)) = range else {
        return answer.body(Body::from(object.slice(..total))).unwrap();
    };
    if start >= total {
        return refuse(416, "InvalidRange");
    }
    let end = end.min(total);
    let mut part = object.slice(start..end);
    let mut length = part.len();
    let answer = answer.status(206).header(
        header::CONTENT_RANGE,
        format!("bytes {start}-{}/{total}", end - 1),
    );
    let pause = Duration::from_millis(if matches!(act, Some(Act::Drip)) {
        20
    } else {
        0
    });
    let mut pieces: VecDeque<_> = Vec::new().into();
    match act {
        Some(Act::Whole) => {
            part = object.clone();
            length = part.len();
            pieces.push_back(Ok(part));
        }
        Some(Act::Cut) => {
            pieces.push_back(Ok(part.slice(..length / 2)));
            pieces.push_back(Err(std::io::Error::other("cut")));
        }
        _ => {
            let size = length.div_ceil(8).max(1);
            pieces.extend((0..length).step_by(size).map(|from| {
                let to = (from + size).min(length);
                Ok(part.slice(from..to))
            }));
        }
    }
    let body = stream::unfold(pieces, move |mut pieces| async move {
        tokio::time::sleep(pause).await;
        pieces.pop_front().map(|piece| (piece, pieces))
    });
    answer
        .header(header::CONTENT_LENGTH, length)
        .body(Body::from_stream(body))
        .unwrap()
}
