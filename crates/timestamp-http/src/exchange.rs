//! The request and its answer.

use std::time::Duration;

use attest_timestamp::{MAX_RESPONSE_BYTES, Nonce, request, token_of_response};
use bounded::text::{visible, visible_bytes};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Response, StatusCode};
use tls_files::{ClientTls, Transport};

use crate::address::TsaUrl;
use crate::error::FetchError;

/// How long an authority may take, from the first byte to the last.
pub const TOTAL_TIME: Duration = Duration::from_secs(30);

const QUERY: &str = "application/timestamp-query";
const REPLY: &str = "application/timestamp-reply";
/// How much of a foreign header is shown.
const SHOWN: usize = 80;

/// Fetches a token over a signature, in DER. It starts a runtime of its own and ends it, so it
/// must not be called inside of one.
///
/// # Errors
/// Nobody answers in time, or with something else than a token.
pub fn fetch(
    authority: &TsaUrl,
    signature: &[u8; 64],
    nonce: &Nonce,
    time: Duration,
) -> Result<Vec<u8>, FetchError> {
    let query = request(signature, nonce).map_err(FetchError::Request)?;
    let client = client(authority, time)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(FetchError::Runtime)?;
    let answer = runtime.block_on(exchange(&client, authority, query));
    // A look-up of a name that hangs is not waited for.
    drop(client);
    runtime.shutdown_background();
    token_of_response(&answer?).map_err(|source| FetchError::Response {
        url: authority.to_string(),
        source,
    })
}

fn client(authority: &TsaUrl, time: Duration) -> Result<Client, FetchError> {
    let plain = authority.transport != Transport::Tls;
    // Without TLS no roots are read.
    let config = if plain {
        ClientTls::trust_nobody()
    } else {
        ClientTls::config(None)
    };
    let config = config.map_err(|source| FetchError::Tls(source.into()))?;
    let mut builder = Client::builder()
        .user_agent(concat!("attest/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .timeout(time)
        .tls_backend_preconfigured((*config).clone());
    // What stays on this machine goes through no proxy; all else as the environment has it.
    if plain {
        builder = builder.no_proxy();
    }
    builder
        .build()
        .map_err(|error| FetchError::Client(innermost(&error)))
}

async fn exchange(
    client: &Client,
    authority: &TsaUrl,
    query: Vec<u8>,
) -> Result<Vec<u8>, FetchError> {
    let url = || authority.to_string();
    let lost = |error: reqwest::Error| FetchError::Network {
        url: url(),
        cause: innermost(&error),
    };
    let post = client.post(authority.url.clone());
    let post = post.header(CONTENT_TYPE, QUERY).header(ACCEPT, REPLY);
    let mut response = post.body(query).send().await.map_err(lost)?;
    check_head(&response, &url)?;
    let mut answer = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(lost)? {
        if chunk.len() > MAX_RESPONSE_BYTES.saturating_sub(answer.len()) {
            return Err(FetchError::TooLong { url: url() });
        }
        answer.extend_from_slice(&chunk);
    }
    Ok(answer)
}

fn check_head(response: &Response, url: &dyn Fn() -> String) -> Result<(), FetchError> {
    let status = response.status();
    if status != StatusCode::OK {
        return Err(FetchError::Status {
            url: url(),
            status: status.as_u16(),
            hint: hint(status),
        });
    }
    if !is_reply(response.headers()) {
        return Err(FetchError::ContentType {
            url: url(),
            found: found(response.headers()),
        });
    }
    let announced = response.content_length().unwrap_or(0);
    if usize::try_from(announced).is_ok_and(|length| length <= MAX_RESPONSE_BYTES) {
        Ok(())
    } else {
        Err(FetchError::TooLong { url: url() })
    }
}

fn hint(status: StatusCode) -> &'static str {
    if status.is_redirection() {
        ", a redirect; give the address that it leads to"
    } else if matches!(
        status,
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED
    ) {
        "; is the path right?"
    } else {
        ""
    }
}

/// The one type of answers, whatever its case and parameters.
fn is_reply(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (types.next(), types.next()) else {
        return false;
    };
    let value = value.to_str().unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case(REPLY)
}

fn found(headers: &HeaderMap) -> String {
    match headers.get(CONTENT_TYPE) {
        None => "no content type".to_owned(),
        Some(value) => {
            let bytes = value.as_bytes();
            let shown = bytes.get(..SHOWN).unwrap_or(bytes);
            format!("`{}`", visible_bytes(shown))
        }
    }
}

/// The innermost cause: the layers above it only say that there is one.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    let text = cause.to_string();
    if error.is_timeout() && !text.contains("timed out") {
        return visible(&format!("{text} (timed out)"));
    }
    visible(&text)
}
