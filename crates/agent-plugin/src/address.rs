//! URLs of servers. They are judged by their text and by what a parser makes of them, so that no
//! second reading of a text is another host.

use std::net::{Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// Why a URL is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Not one that may stand there at all.
    Invalid(&'static str),
    /// Plain HTTP beyond this machine.
    Insecure,
}

/// Judges a URL.
pub(crate) fn check(text: &str) -> Result<(), Refusal> {
    if text.is_empty() {
        return Err(Refusal::Invalid("must not be empty"));
    }
    if text
        .chars()
        .any(|c| c.is_control() || c.is_whitespace() || c == '\\')
    {
        let reason = "must not hold white space, control characters or `\\`";
        return Err(Refusal::Invalid(reason));
    }
    let (is_secure, rest) = scheme(text).ok_or(Refusal::Invalid(
        "must be absolute and start with `https://` or `http://`",
    ))?;
    if text.contains('#') {
        return Err(Refusal::Invalid("must not have a fragment"));
    }
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err(Refusal::Invalid("must not have user information"));
    }
    let url = Url::parse(text).map_err(|_| Refusal::Invalid("is malformed"))?;
    // A parser passes over a missing host in front of a path.
    if authority.is_empty() || authority.starts_with(':') {
        return Err(Refusal::Invalid("has no host"));
    }
    if is_secure || (is_loopback_text(host_text(authority)) && is_loopback(&url)) {
        return Ok(());
    }
    Err(Refusal::Insecure)
}

/// Returns whether the scheme is the secure one, and what follows `//`.
fn scheme(text: &str) -> Option<(bool, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    match scheme.to_ascii_lowercase().as_str() {
        "https" => Some((true, rest)),
        "http" => Some((false, rest)),
        _ => None,
    }
}

fn host_text(authority: &str) -> &str {
    match authority.find(']') {
        Some(end) => authority.get(..=end).unwrap_or(authority),
        None => authority.split(':').next().unwrap_or(authority),
    }
}

fn is_loopback_text(host: &str) -> bool {
    if let Some(address) = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    {
        return address.parse().is_ok_and(|ip: Ipv6Addr| ip.is_loopback());
    }
    host.eq_ignore_ascii_case("localhost")
        || host.parse().is_ok_and(|ip: Ipv4Addr| ip.is_loopback())
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}
