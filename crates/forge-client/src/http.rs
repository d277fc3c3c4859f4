//! One Gate over HTTP: the token goes to that address only, bodies are bounded, time is limited.
//!
//! Redirects are never followed and proxies from the environment are not used: either would hand
//! the token to somebody else.

use std::path::PathBuf;
use std::time::Duration;

use cli_shell::{Secret, visible};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, DATE, HeaderValue, LOCATION};
use reqwest::{Method, Response, StatusCode};
use strict_json::Json;
use tls_files::{ClientTls, PlainPolicy, Transport};
use url::Url;

use crate::answer::{self, ANSWER_BYTES};
use crate::error::{ClientError, NetworkError};

/// The longest time for one request, its answer included.
pub(crate) const REQUEST_TIME: Duration = Duration::from_secs(30);

const REFUSAL_BYTES: usize = 64 * 1024;
const RETRIES: [Duration; 3] = [
    Duration::from_millis(200),
    Duration::from_millis(600),
    Duration::from_millis(1_800),
];

/// What a client needs to know of its Gate.
#[derive(Debug)]
pub struct Settings {
    /// The address, `http://` or `https://`.
    pub url: String,
    /// The owner's token.
    pub token: Secret,
    /// Where the token came from, in words, for messages.
    pub token_place: String,
    /// The authorities to trust instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// Whether plain HTTP may leave the machine.
    pub plain: PlainPolicy,
}

/// A client of one Gate.
#[derive(Debug)]
pub struct GateClient {
    http: reqwest::Client,
    base: Url,
    bearer: HeaderValue,
    token_place: String,
    warn_plain: bool,
}

/// A good answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Vec<u8>,
    /// When it was made, in the server's words.
    pub(crate) date: Option<String>,
}

impl GateClient {
    /// Checks the settings and makes a client; sends nothing yet.
    ///
    /// # Errors
    /// The address is not one, is plain and leaves the machine, or TLS cannot be set up.
    pub fn new(settings: Settings) -> Result<Self, ClientError> {
        let bad = |problem: String| ClientError::Address {
            url: visible(&settings.url),
            problem,
        };
        let base = Url::parse(&settings.url).map_err(|error| bad(error.to_string()))?;
        if !base.username().is_empty() || base.password().is_some() {
            return Err(bad("it must not carry a user or password".to_owned()));
        }
        if base.query().is_some() || base.fragment().is_some() || !matches!(base.path(), "" | "/") {
            return Err(bad("it must not have a path, query or fragment".to_owned()));
        }
        if !matches!(base.scheme(), "http" | "https") {
            return Err(bad("it must start with http:// or https://".to_owned()));
        }
        let host = base.host_str().unwrap_or_default();
        let transport = settings
            .plain
            .judge(base.scheme(), host)
            .map_err(|source| ClientError::Plain {
                url: visible(&settings.url),
                source: Box::new(source),
            })?;
        let http = http_client(transport, &settings)?;
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", settings.token.expose()))
            .map_err(|_| bad("the token cannot be sent in a header".to_owned()))?;
        bearer.set_sensitive(true);
        Ok(Self {
            http,
            base,
            bearer,
            token_place: settings.token_place,
            warn_plain: transport == Transport::PlainRemote,
        })
    }

    /// Returns the Gate's address.
    #[must_use]
    pub fn url(&self) -> &str {
        self.base.as_str()
    }

    /// Host and port of that address; an IPv6 address has no brackets.
    pub(crate) fn host(&self) -> (String, u16) {
        let host = self.base.host_str().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        (
            host.to_owned(),
            self.base.port_or_known_default().unwrap_or_default(),
        )
    }

    /// Whether the token leaves this machine in clear text, which deserves a warning.
    #[must_use]
    pub fn sends_plain(&self) -> bool {
        self.warn_plain
    }

    /// Asks whether the Gate serves; needs no token.
    ///
    /// # Errors
    /// It does not answer, or not with success.
    pub async fn ready(&self) -> Result<(), ClientError> {
        self.get(&["readyz"], &[], "say whether it is ready")
            .await?;
        Ok(())
    }

    /// Asks for a value.
    pub(crate) async fn get_json(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        what: &str,
    ) -> Result<Json, ClientError> {
        let answer = self.get(path, query, what).await?;
        self.json(&answer.body)
    }

    /// Asks for bytes.
    pub(crate) async fn get(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        what: &str,
    ) -> Result<Answer, ClientError> {
        let mut url = self.path(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.send(Method::GET, url, None, None, what).await
    }

    /// Posts a body, or none, without ever repeating it.
    pub(crate) async fn post(
        &self,
        path: &[&str],
        body: Option<&[u8]>,
        key: Option<&str>,
        what: &str,
    ) -> Result<Answer, ClientError> {
        self.send(Method::POST, self.path(path), body, key, what)
            .await
    }

    /// Submits a job under a key, and again under the same key when the network fails.
    ///
    /// A request that may have arrived is repeated only to a Gate that lists jobs: one that does
    /// so also honours the key.
    pub(crate) async fn submit(&self, body: &[u8], key: &str) -> Result<Answer, ClientError> {
        let what = "accept the job";
        let mut outcome = self
            .post(&["v1", "jobs"], Some(body), Some(key), what)
            .await;
        for pause in RETRIES {
            match &outcome {
                Err(error) if error.is_transient() => {
                    tracing::debug!(reason = %error, "submitting again under the same key");
                }
                _ => break,
            }
            tokio::time::sleep(pause).await;
            let never_arrived = matches!(&outcome, Err(ClientError::Unreachable { .. }));
            if !never_arrived && !self.honours_keys().await {
                break;
            }
            outcome = match self
                .post(&["v1", "jobs"], Some(body), Some(key), what)
                .await
            {
                // The first request may still have arrived.
                Err(ClientError::Unreachable { url, source }) if !never_arrived => {
                    Err(ClientError::AnswerLost { url, source })
                }
                other => other,
            };
        }
        outcome.map_err(|error| match error {
            error @ (ClientError::AnswerLost { .. }
            | ClientError::Refused {
                status: 502..=504, ..
            }) => ClientError::Unsure {
                key: key.to_owned(),
                source: Box::new(error),
            },
            error => error,
        })
    }

    /// Reads a body as JSON.
    pub(crate) fn json(&self, body: &[u8]) -> Result<Json, ClientError> {
        answer::parse(body).map_err(|source| ClientError::NotJson {
            url: self.base.to_string(),
            source,
        })
    }

    async fn honours_keys(&self) -> bool {
        let query = [("limit", "1")];
        self.get(&["v1", "jobs"], &query, "list jobs").await.is_ok()
    }

    async fn send(
        &self,
        method: Method,
        url: Url,
        body: Option<&[u8]>,
        key: Option<&str>,
        what: &str,
    ) -> Result<Answer, ClientError> {
        let mut request = self
            .http
            .request(method, url)
            .header(AUTHORIZATION, self.bearer.clone());
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        if let Some(body) = body {
            request = request
                .header(CONTENT_TYPE, "application/json")
                .body(body.to_vec());
        }
        let response = request.send().await.map_err(|source| {
            let url = self.base.to_string();
            if source.is_connect() {
                ClientError::Unreachable {
                    url,
                    source: NetworkError::of(&source),
                }
            } else {
                ClientError::AnswerLost {
                    url,
                    source: NetworkError::of(&source),
                }
            }
        })?;
        self.judge(response, what).await
    }

    async fn judge(&self, response: Response, what: &str) -> Result<Answer, ClientError> {
        let status = response.status();
        if status.is_success() {
            let date = response.headers().get(DATE);
            let date = date.and_then(|date| Some(date.to_str().ok()?.to_owned()));
            let body = self.body(response, ANSWER_BYTES).await?;
            return Ok(Answer { status, body, date });
        }
        if status.is_redirection() {
            let to = response.headers().get(LOCATION).map(HeaderValue::as_bytes);
            return Err(ClientError::Redirect {
                url: self.base.to_string(),
                to: cli_shell::visible_bytes(to.unwrap_or(b"nowhere")),
            });
        }
        let body = self.body(response, REFUSAL_BYTES).await.unwrap_or_default();
        let (code, message) = answer::refusal(&body);
        Err(match status {
            StatusCode::UNAUTHORIZED => ClientError::Unauthorized {
                url: self.base.to_string(),
                place: self.token_place.clone(),
            },
            status => ClientError::Refused {
                what: what.to_owned(),
                status: status.as_u16(),
                code,
                message,
            },
        })
    }

    async fn body(&self, mut response: Response, limit: usize) -> Result<Vec<u8>, ClientError> {
        let mut body = Vec::new();
        let lost = |source: reqwest::Error| ClientError::AnswerLost {
            url: self.base.to_string(),
            source: NetworkError::of(&source),
        };
        while let Some(chunk) = response.chunk().await.map_err(lost)? {
            if body.len() + chunk.len() > limit {
                return Err(ClientError::TooLong {
                    url: self.base.to_string(),
                    limit,
                });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// Appends path segments, each escaped: an id from the command line cannot leave its place.
    fn path(&self, segments: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.clear().extend(segments);
        }
        url
    }
}

fn http_client(transport: Transport, settings: &Settings) -> Result<reqwest::Client, ClientError> {
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("forge/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .timeout(REQUEST_TIME)
        .tcp_nodelay(true);
    // Without TLS no roots are read, which is most of the time a short command takes.
    let ca_file = settings.ca_file.as_deref();
    let config = match (transport, ca_file) {
        (Transport::Tls, _) | (_, Some(_)) => ClientTls::config(ca_file),
        _ => ClientTls::trust_nobody(),
    };
    let config = config.map_err(|source| ClientError::Tls {
        source: Box::new(source),
    })?;
    builder = builder.tls_backend_preconfigured((*config).clone());
    builder
        .build()
        .map_err(|source| ClientError::Client { source })
}
