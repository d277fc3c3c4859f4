//! One attempt: send, follow what may be followed, judge the head, read the body.

use std::time::Duration;

use backplane_client::{Answer, Body, Fault, Method, Redirects, Request, TransportError};
use bounded::text::visible;
use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, IF_RANGE, LOCATION, RANGE,
};
use reqwest::{Client, Response};
use tokio_util::bytes::Bytes;
use url::Url;

use crate::body::{Pulse, outgoing};
use crate::clock::Clock;
use crate::error::of_reqwest;
use crate::head;
use crate::partial::Partial;

/// How long the reasons of a failure are waited for; its status is there already.
const REFUSAL_TIME: Duration = Duration::from_secs(2);

/// A request as it is sent, each time.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    pub(crate) url: Url,
    /// Whom it goes to, for messages.
    origin: String,
    headers: HeaderMap,
    body: Option<Bytes>,
    pub(crate) limit: usize,
    refusal_limit: usize,
    redirects: Redirects,
}

impl Ask {
    pub(crate) fn of(request: &Request) -> Result<Self, TransportError> {
        let refused = |what| TransportError::new(Fault::Refused, what);
        let url = Url::parse(request.url()).map_err(|_| refused("the request has no URL"))?;
        let mut headers = HeaderMap::new();
        for header in request.headers() {
            let name = HeaderName::from_bytes(header.name().as_bytes());
            let value = HeaderValue::from_bytes(header.value().as_bytes());
            let (Ok(name), Ok(mut value)) = (name, value) else {
                return Err(refused("a header of the request cannot be sent"));
            };
            value.set_sensitive(header.is_credential());
            headers.insert(name, value);
        }
        // An artifact is its stored bytes, and a limit is one of what is read.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let body = request.body().map(Bytes::copy_from_slice);
        if let Some(body) = &body {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        Ok(Self {
            method: request.method(),
            origin: visible(&url.origin().ascii_serialization()),
            url,
            headers,
            body,
            limit: request.answer_limit(),
            refusal_limit: request.refusal_limit(),
            redirects: Redirects::of(request)?,
        })
    }

    /// Tells whether more than JSON may move.
    pub(crate) fn is_transfer(&self) -> bool {
        let json = backplane_client::MAX_JSON_BYTES;
        self.limit > json || self.body.as_ref().is_some_and(|body| body.len() > json)
    }
}

/// Why an attempt gave nothing.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) error: TransportError,
    /// Whether only what was there of the body is to blame, and the next attempt starts without it.
    pub(crate) anew: bool,
}

impl From<TransportError> for Failed {
    fn from(error: TransportError) -> Self {
        let anew = false;
        Self { error, anew }
    }
}

/// Makes one attempt. It may be dropped at any time: what came of the body is in `partial`.
pub(crate) async fn exchange(
    client: &Client,
    ask: &Ask,
    partial: &mut Partial,
    pulse: &Pulse,
    clock: &dyn Clock,
) -> Result<Answer, Failed> {
    let missing = partial.missing().map(|(from, tag)| (from, tag.to_owned()));
    let response = send(client, ask, missing.as_ref(), pulse).await?;
    let status = response.status().as_u16();
    match (status, missing) {
        (206, Some((from, tag))) => {
            let rest = head::rest_of(response.headers(), from, &tag);
            let Some(whole) = rest.filter(|_| !head::is_encoded(response.headers())) else {
                return Err(start_anew(partial));
            };
            if let Err(error) = partial.check_announced(u64::try_from(whole).ok()) {
                partial.begin(None);
                return Err(error.into());
            }
            read(response, ask, partial, pulse).await?;
            if partial.len() != whole {
                return Err(start_anew(partial));
            }
            Ok(Answer::new(200, Body::Bytes(partial.take())))
        }
        (206, None) => Err(broken("a part of what was asked for").into()),
        (416, Some(_)) => Err(start_anew(partial)),
        (200..=299, _) => {
            if head::is_encoded(response.headers()) {
                return Err(broken("a content encoding that was not asked for").into());
            }
            partial.check_announced(response.content_length())?;
            let whole = ask.method == Method::Get && status == 200;
            let tag = whole.then(|| head::resumable(response.headers())).flatten();
            partial.begin(tag);
            read(response, ask, partial, pulse).await?;
            Ok(Answer::new(status, Body::Bytes(partial.take())))
        }
        _ => {
            let wait = head::wait(response.headers(), clock.wall());
            let soon = clock.now().saturating_add(REFUSAL_TIME);
            let body = tokio::select! {
                body = refusal(response, ask.refusal_limit) => body,
                () = clock.wait(soon) => Vec::new(),
            };
            let mut answer = Answer::new(status, Body::Bytes(body));
            answer.retry_after = wait;
            Ok(answer)
        }
    }
}

/// Reads the body of a failure, mostly not at all: the connection then goes with the response. One
/// that is too long, breaks off, does not come or is encoded is left empty.
async fn refusal(mut response: Response, limit: usize) -> Vec<u8> {
    let mut body = Vec::new();
    let failed = response.status().as_u16() >= 400;
    if limit == 0 || !failed || head::is_encoded(response.headers()) {
        return body;
    }
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if chunk.len() <= limit - body.len() => {
                body.extend_from_slice(&chunk);
            }
            Ok(None) => return body,
            Ok(Some(_)) | Err(_) => return Vec::new(),
        }
    }
}

async fn send(
    client: &Client,
    ask: &Ask,
    missing: Option<&(usize, String)>,
    pulse: &Pulse,
) -> Result<Response, TransportError> {
    let mut headers = ask.headers.clone();
    if let Some((from, tag)) = missing {
        let sendable = |text: &str| {
            let value = HeaderValue::from_str(text);
            value.map_err(|_| TransportError::new(Fault::Refused, "a tag cannot be sent"))
        };
        headers.insert(RANGE, sendable(&format!("bytes={from}-"))?);
        headers.insert(IF_RANGE, sendable(tag)?);
    }
    let mut redirects = ask.redirects.clone();
    let mut url = ask.url.clone();
    loop {
        let mut request = client.request(method(ask.method), url);
        request = request.headers(headers.clone());
        if let Some(body) = &ask.body {
            request = request.body(outgoing(body.clone(), pulse.clone()));
        }
        let response = request.send().await;
        let response = response.map_err(|error| of_reqwest(&error, &ask.origin))?;
        pulse.beat();
        let status = response.status().as_u16();
        if !matches!(status, 301 | 302 | 303 | 307 | 308) {
            return Ok(response);
        }
        let location = head::only(response.headers(), &LOCATION).unwrap_or_default();
        let next = redirects.follow(status, location)?;
        url = Url::parse(&next).map_err(|_| broken("a redirect to no URL"))?;
    }
}

async fn read(
    mut response: Response,
    ask: &Ask,
    partial: &mut Partial,
    pulse: &Pulse,
) -> Result<(), TransportError> {
    loop {
        let chunk = response.chunk().await;
        let chunk = chunk.map_err(|error| of_reqwest(&error, &ask.origin))?;
        pulse.beat();
        let Some(chunk) = chunk else {
            return Ok(());
        };
        partial.push(&chunk)?;
    }
}

fn start_anew(partial: &mut Partial) -> Failed {
    partial.begin(None);
    Failed {
        error: broken("another part than the one that is missing"),
        anew: true,
    }
}

fn broken(what: &str) -> TransportError {
    TransportError::new(Fault::Answer, format!("the provider sent {what}"))
}

fn method(method: Method) -> reqwest::Method {
    match method {
        Method::Delete => reqwest::Method::DELETE,
        Method::Get => reqwest::Method::GET,
        Method::Patch => reqwest::Method::PATCH,
        Method::Post => reqwest::Method::POST,
        Method::Put => reqwest::Method::PUT,
    }
}
