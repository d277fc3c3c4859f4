//! The address to listen on, as `host:port`, `[v6]:port` or `:port`.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use tokio::net::TcpListener;

use crate::socket;

/// A host and a port; an empty host means every interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    host: String,
    port: u16,
}

impl Listen {
    /// The host without brackets; empty for every interface.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether this is every interface, or an address that is not of loopback. A name is neither.
    #[must_use]
    pub fn is_surely_public(&self) -> bool {
        self.host.is_empty()
            || self
                .host
                .parse::<IpAddr>()
                .is_ok_and(|address| !address.is_loopback())
    }

    /// Asks which addresses this is; every interface is one of each family.
    ///
    /// # Errors
    /// The name leads nowhere.
    pub async fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        if self.host.is_empty() {
            return Ok(vec![
                SocketAddr::from((std::net::Ipv6Addr::UNSPECIFIED, self.port)),
                SocketAddr::from((std::net::Ipv4Addr::UNSPECIFIED, self.port)),
            ]);
        }
        let found = tokio::net::lookup_host((self.host.as_str(), self.port)).await?;
        Ok(found.collect())
    }

    /// Listens on the first of these addresses that can be had, where a crowd may wait.
    ///
    /// # Errors
    /// None can be had.
    pub async fn bind(addresses: &[SocketAddr]) -> io::Result<(TcpListener, SocketAddr)> {
        let own = TcpListener::bind(addresses).await?;
        socket::widen(&own)?;
        let address = own.local_addr()?;
        Ok((own, address))
    }

    /// Takes over a socket that listens already.
    ///
    /// # Errors
    /// It is no socket that can be listened on.
    pub fn adopt(passed: std::net::TcpListener) -> io::Result<(TcpListener, SocketAddr)> {
        let address = passed.local_addr()?;
        let passed = TcpListener::from_std(passed)?;
        socket::widen(&passed)?;
        Ok((passed, address))
    }

    /// The port; 0 lets the system choose.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }
}

/// Why a text is no listen address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ListenError {
    /// Empty or too long.
    #[error("must be 1 to 256 bytes")]
    Length,
    /// No colon between host and port, or a bare IPv6 address.
    #[error("must be `host:port`; an IPv6 address stands in brackets")]
    Shape,
    /// Not a port.
    #[error("must end in a port from 0 to 65535")]
    Port,
}

impl FromStr for Listen {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() || text.len() > 256 {
            return Err(ListenError::Length);
        }
        let (host, port) = text.rsplit_once(':').ok_or(ListenError::Shape)?;
        let host = match host.strip_prefix('[') {
            Some(rest) => {
                let inner = rest.strip_suffix(']').ok_or(ListenError::Shape)?;
                inner
                    .parse::<std::net::Ipv6Addr>()
                    .map_err(|_| ListenError::Shape)?;
                inner
            }
            None if host.contains(':') => return Err(ListenError::Shape),
            None => host,
        };
        let plain = host
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':'));
        if !plain {
            return Err(ListenError::Shape);
        }
        if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ListenError::Port);
        }
        Ok(Self {
            host: host.to_owned(),
            port: port.parse().map_err(|_| ListenError::Port)?,
        })
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_host_and_port() {
        for (text, host, port) in [
            ("127.0.0.1:8080", "127.0.0.1", 8080),
            ("[::1]:0", "::1", 0),
            (":80", "", 80),
            ("localhost:65535", "localhost", 65535),
        ] {
            let listen: Listen = text.parse().unwrap();
            assert_eq!((listen.host(), listen.port()), (host, port));
            assert_eq!(listen.to_string(), text);
        }
    }

    #[test]
    fn refuses_what_is_no_address() {
        for text in [
            "",
            "127.0.0.1",
            "::1:80",
            "[::1]",
            "[x]:1",
            "h:65536",
            "h:",
            "h:+1",
            "h:8x",
            "a b:1",
        ] {
            assert!(text.parse::<Listen>().is_err(), "{text:?}");
        }
        assert!(format!("{}:1", "h".repeat(254)).parse::<Listen>().is_ok());
        assert!(format!("{}:1", "h".repeat(255)).parse::<Listen>().is_err());
    }
}
