//! The log: one line for each request and each step of the registry's life. No token, query,
//! body, plugin text or path of a request is ever an argument here.

use std::path::Path;
use std::time::Duration;

use registry_store::Collected;

macro_rules! lifecycle {
    ($event:literal $(, $($fields:tt)*)?) => {
        tracing::info!(component = "registry", event = $event $(, $($fields)*)?, "registry lifecycle")
    };
}

pub(crate) fn startup(version: &str) {
    lifecycle!("startup", version);
}

pub(crate) fn listening(address: &str) {
    lifecycle!("listening", address);
}

pub(crate) fn failed(error: &dyn std::error::Error) {
    let reason = bounded::text::visible(&bounded::text::with_causes(error));
    tracing::error!(
        component = "registry",
        event = "failed",
        reason,
        "registry lifecycle"
    );
}

/// The path alone: whoever may read the file knows what to do with it.
pub(crate) fn token_made(path: &Path) {
    let path = path.display();
    tracing::warn!(
        component = "registry",
        event = "token_made",
        %path,
        "no token is configured, so one for everything was made; it is in this file"
    );
}

pub(crate) fn collected(collected: &Collected) {
    if *collected != Collected::default() {
        lifecycle!(
            "collected",
            uploads = collected.uploads,
            bytes = collected.bytes
        );
    }
}

/// The bucket cannot be used now; said once, before anybody publishes.
pub(crate) fn no_place(error: &dyn std::error::Error) {
    let reason = bounded::text::visible(&bounded::text::with_causes(error));
    tracing::error!(
        component = "registry",
        event = "artifacts_unreachable",
        reason,
        "the place of the artifacts cannot be used; packages can neither be published nor downloaded"
    );
}

pub(crate) fn not_collected(error: &dyn std::error::Error) {
    let reason = bounded::text::visible(&bounded::text::with_causes(error));
    tracing::warn!(
        component = "registry",
        event = "collect_failed",
        reason,
        "uploads that nobody released could not be removed; they are tried again"
    );
}

pub(crate) fn stopped() {
    lifecycle!("stopped");
}

/// What was answered; `route` is a pattern, so that nothing a client wrote is in it.
#[derive(Debug)]
pub(crate) struct Answered<'a> {
    pub(crate) request_id: &'a str,
    pub(crate) method: &'a str,
    pub(crate) route: &'a str,
    pub(crate) status: u16,
    /// The code of an error object, or nothing.
    pub(crate) code: &'a str,
    /// The name of the token, or nothing.
    pub(crate) token: &'a str,
    pub(crate) took: Duration,
}

pub(crate) fn answered(answer: &Answered<'_>) {
    let Answered {
        request_id,
        method,
        route,
        status,
        code,
        token,
        took,
    } = *answer;
    let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    tracing::info!(
        component = "registry",
        event = "request",
        request_id,
        method,
        route,
        status,
        code,
        token,
        ms,
        "request"
    );
}

/// A failure of ours, with all its causes; the client hears only that there was one.
pub(crate) fn internal(error: &dyn std::error::Error) {
    let reason = bounded::text::visible(&bounded::text::with_causes(error));
    tracing::error!(
        component = "registry",
        event = "request_failed",
        reason,
        "request"
    );
}
