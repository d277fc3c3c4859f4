//! When an address without TLS may be used: to this machine, or where somebody said so.

use std::net::{IpAddr, Ipv6Addr};

use crate::error::TlsError;

/// Whether plain `http://` and `ws://` may leave the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PlainPolicy {
    /// Only to loopback addresses.
    #[default]
    LoopbackOnly,
    /// Anywhere, with a warning from whoever connects.
    Anywhere,
}

/// How a connection to an address is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// By TLS.
    Tls,
    /// Not, but it stays on this machine.
    PlainLoopback,
    /// Not at all, by somebody's wish: warn.
    PlainRemote,
}

impl PlainPolicy {
    /// Judges an address by its scheme (`http`, `https`, `ws`, `wss`) and host.
    ///
    /// # Errors
    /// The scheme is another, or the address is plain and its host not this machine.
    pub fn judge(self, scheme: &str, host: &str) -> Result<Transport, TlsError> {
        match scheme {
            "https" | "wss" => Ok(Transport::Tls),
            "http" | "ws" if is_loopback_host(host) => Ok(Transport::PlainLoopback),
            "http" | "ws" if self == Self::Anywhere => Ok(Transport::PlainRemote),
            "http" | "ws" => Err(TlsError::PlainRefused {
                scheme: scheme.to_owned(),
                host: host.to_owned(),
            }),
            other => Err(TlsError::Scheme {
                scheme: other.to_owned(),
            }),
        }
    }
}

/// Tells whether a host, as it stands in a URL, is this machine: `localhost` or an address of the
/// loopback network.
#[must_use]
pub fn is_loopback_host(host: &str) -> bool {
    if host.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let address = match bare {
        Some(inside) => inside.parse::<Ipv6Addr>().map(IpAddr::V6),
        None => host.parse::<IpAddr>(),
    };
    address.is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_names_and_addresses() {
        for host in [
            "localhost",
            "LocalHost",
            "127.0.0.1",
            "127.9.8.7",
            "::1",
            "[::1]",
            "[::ffff:127.0.0.1]",
        ] {
            assert!(is_loopback_host(host), "{host}");
        }
        for host in [
            "",
            "gate",
            "localhost.example",
            "a.localhost",
            "127.0.0.1.example",
            "0.0.0.0",
            "10.0.0.1",
            "[::]",
            "[127.0.0.1]",
            "[::1",
            "::ffff:10.0.0.1",
            "127.1",
        ] {
            assert!(!is_loopback_host(host), "{host}");
        }
    }

    #[test]
    fn plain_leaves_the_machine_only_by_wish() {
        let strict = PlainPolicy::default();
        assert_eq!(strict.judge("wss", "gate").unwrap(), Transport::Tls);
        assert_eq!(
            strict.judge("ws", "[::1]").unwrap(),
            Transport::PlainLoopback
        );
        let error = strict.judge("http", "gate").unwrap_err();
        assert_eq!(
            error.to_string(),
            "refusing plain `http://` to `gate`, which is not this machine"
        );
        assert_eq!(
            PlainPolicy::Anywhere.judge("http", "gate").unwrap(),
            Transport::PlainRemote
        );
        assert!(PlainPolicy::Anywhere.judge("ftp", "localhost").is_err());
    }
}
