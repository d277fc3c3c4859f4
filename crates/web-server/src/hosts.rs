//! Which names a request may address and where a browser may have sent it from.
//!
//! A server on loopback answers to loopback names only, so that a page which
//! rebinds its DNS name to 127.0.0.1 gets nothing. Elsewhere clients connect by
//! whatever name leads here, unless the configuration lists the names.

use std::collections::BTreeSet;
use std::net::IpAddr;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri, header};

/// The rules, fixed at start.
#[derive(Debug, Clone, Default)]
pub struct HostRules {
    /// The names that pass; `None` lets every name pass.
    hosts: Option<BTreeSet<String>>,
    /// Loopback names and addresses pass too.
    loopback: bool,
    origins: BTreeSet<String>,
}

/// Why a request is not for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreign {
    /// No `Host`, several, or not a host.
    Malformed,
    /// The `Host` is not one of ours.
    Host,
    /// The `Origin` is another site.
    Origin,
}

impl HostRules {
    /// The rules of a listener.
    #[must_use]
    pub fn new(
        listens_on_loopback: bool,
        listen_host: &str,
        allowed_hosts: Option<&BTreeSet<String>>,
        allowed_origins: &BTreeSet<String>,
    ) -> Self {
        let hosts = match (listens_on_loopback, allowed_hosts) {
            (false, None) => None,
            (false, Some(allowed)) => Some(allowed.clone()),
            (true, allowed) => {
                let mut hosts = allowed.cloned().unwrap_or_default();
                if !listen_host.is_empty() {
                    hosts.insert(listen_host.to_ascii_lowercase());
                }
                Some(hosts)
            }
        };
        Self {
            hosts,
            loopback: listens_on_loopback,
            origins: allowed_origins.clone(),
        }
    }

    /// Judges the head of a request.
    ///
    /// # Errors
    /// Why it is not for this server.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Foreign> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err(Foreign::Malformed);
        };
        let host: Authority = host
            .to_str()
            .ok()
            .filter(|host| !host.contains('@'))
            .and_then(|host| host.parse().ok())
            .ok_or(Foreign::Malformed)?;
        if !self.knows(&host) || uri.authority().is_some_and(|named| !self.knows(named)) {
            return Err(Foreign::Host);
        }
        let mut origins = headers.get_all(header::ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (None, _) => Ok(()),
            (Some(origin), None) if self.accepts(origin.as_bytes(), &host) => Ok(()),
            _ => Err(Foreign::Origin),
        }
    }

    fn knows(&self, authority: &Authority) -> bool {
        let Some(hosts) = &self.hosts else {
            return true;
        };
        let host = bare(authority.host()).to_ascii_lowercase();
        hosts.contains(&host) || (self.loopback && is_loopback(&host))
    }

    fn accepts(&self, origin: &[u8], host: &Authority) -> bool {
        let Ok(origin) = std::str::from_utf8(origin) else {
            return false;
        };
        let origin = origin.to_ascii_lowercase();
        if self.origins.contains(&origin) {
            return true;
        }
        let Some((scheme, authority)) = origin.split_once("://") else {
            return false;
        };
        let default_port = match scheme {
            "http" => 80,
            "https" => 443,
            _ => return false,
        };
        let Ok(authority) = authority.parse::<Authority>() else {
            return false;
        };
        // A `Host` without a port has the default one of the scheme the browser used.
        let port = |of: &Authority| of.port_u16().unwrap_or(default_port);
        authority.host().eq_ignore_ascii_case(host.host())
            && !authority.as_str().contains('@')
            && port(&authority) == port(host)
    }
}

/// A host as it stands in `Host`, without its port, in lower case.
#[must_use]
pub fn host_name(text: &str) -> Option<String> {
    let authority: Authority = text.parse().ok()?;
    let plain = authority.port().is_none() && !text.contains('@') && !text.ends_with(':');
    (plain && !authority.host().is_empty()).then(|| text.to_ascii_lowercase())
}

/// Scheme, host and perhaps port, nothing behind them, in lower case.
#[must_use]
pub fn origin(text: &str) -> Option<String> {
    let (scheme, authority) = text.split_once("://")?;
    let authority: Authority = authority.parse().ok()?;
    let plain = matches!(scheme, "http" | "https") && !text.contains('@');
    (plain && !authority.host().is_empty()).then(|| text.to_ascii_lowercase())
}

fn bare(host: &str) -> &str {
    host.strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host)
}

fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn judge(rules: &HostRules, host: &str, origin: Option<&str>) -> Result<(), Foreign> {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        rules.check(&Uri::from_static("/v1/jobs"), &headers)
    }

    fn loopback() -> HostRules {
        HostRules::new(true, "127.0.0.1", None, &BTreeSet::new())
    }

    #[test]
    fn a_loopback_listener_answers_to_loopback_names_only() {
        for host in [
            "127.0.0.1:8080",
            "localhost",
            "LOCALHOST:1",
            "[::1]:9",
            "127.9.9.9",
        ] {
            assert_eq!(judge(&loopback(), host, None), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:8080",
            "10.0.0.1",
            "localhost.evil.example",
        ] {
            assert_eq!(judge(&loopback(), host, None), Err(Foreign::Host), "{host}");
        }
        for host in ["", "a b", "user@localhost"] {
            assert_eq!(
                judge(&loopback(), host, None),
                Err(Foreign::Malformed),
                "{host}"
            );
        }
    }

    #[test]
    fn a_public_listener_answers_to_every_name_or_to_those_listed() {
        let any = HostRules::new(false, "0.0.0.0", None, &BTreeSet::new());
        assert_eq!(judge(&any, "forge.example:443", None), Ok(()));
        let listed = BTreeSet::from(["forge.example".to_owned()]);
        let some = HostRules::new(false, "0.0.0.0", Some(&listed), &BTreeSet::new());
        assert_eq!(judge(&some, "Forge.Example:8443", None), Ok(()));
        assert_eq!(judge(&some, "127.0.0.1", None), Err(Foreign::Host));
        let both = HostRules::new(true, "127.0.0.1", Some(&listed), &BTreeSet::new());
        assert_eq!(judge(&both, "forge.example", None), Ok(()));
        assert_eq!(judge(&both, "localhost", None), Ok(()));
    }

    #[test]
    fn an_origin_is_the_host_or_listed() {
        let rules = HostRules::new(
            true,
            "127.0.0.1",
            None,
            &BTreeSet::from(["https://ui.example:8443".to_owned()]),
        );
        for origin in ["http://127.0.0.1:8080", "HTTPS://UI.EXAMPLE:8443"] {
            assert_eq!(
                judge(&rules, "127.0.0.1:8080", Some(origin)),
                Ok(()),
                "{origin}"
            );
        }
        for origin in [
            "http://127.0.0.1:8081",
            "http://localhost:8080",
            "http://127.0.0.1",
            "https://ui.example",
            "null",
            "",
            "ws://127.0.0.1:8080",
            "http://127.0.0.1:8080@evil.example",
        ] {
            let verdict = judge(&rules, "127.0.0.1:8080", Some(origin));
            assert_eq!(verdict, Err(Foreign::Origin), "{origin}");
        }
        assert_eq!(
            judge(&rules, "localhost", Some("https://localhost")),
            Ok(())
        );
        assert_eq!(
            judge(&rules, "localhost:443", Some("https://localhost")),
            Ok(())
        );
    }

    #[test]
    fn the_request_target_counts_as_well() {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("localhost"));
        let uri = Uri::from_static("http://evil.example/v1/jobs");
        assert_eq!(loopback().check(&uri, &headers), Err(Foreign::Host));
        headers.append(header::HOST, HeaderValue::from_static("localhost"));
        let uri = Uri::from_static("/v1/jobs");
        assert_eq!(loopback().check(&uri, &headers), Err(Foreign::Malformed));
    }
}
