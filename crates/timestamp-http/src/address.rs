//! The address of an authority.

use std::fmt;
use std::str::FromStr;

use bounded::text::visible;
use tls_files::{PlainPolicy, Transport};
use url::Url;

use crate::error::UrlError;

/// The longest address.
const LONGEST: usize = 2048;

/// The address of an authority: `https`, or `http` to this machine, without a password in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TsaUrl {
    pub(crate) url: Url,
    pub(crate) transport: Transport,
}

impl FromStr for TsaUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        if text.len() > LONGEST {
            return Err(UrlError::TooLong);
        }
        let url = Url::parse(text).map_err(|error| UrlError::Syntax(error.to_string()))?;
        let host = url.host_str().unwrap_or_default();
        let transport = PlainPolicy::LoopbackOnly.judge(url.scheme(), host);
        let transport = transport.map_err(|error| UrlError::Scheme(visible(&error.to_string())))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(UrlError::Scheme("expected `https://`".to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlError::Password);
        }
        if url.fragment().is_some() {
            return Err(UrlError::Fragment);
        }
        Ok(Self { url, transport })
    }
}

impl fmt::Display for TsaUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&visible(self.url.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_of_tls_or_this_machine() {
        for good in [
            "https://tsa.example/stamp",
            "https://tsa.example:8443/?a=b",
            "http://127.0.0.1:318/",
            "http://[::1]/tsr",
            "http://localhost",
        ] {
            good.parse::<TsaUrl>().unwrap();
        }
        let says = |text: &str| text.parse::<TsaUrl>().unwrap_err().to_string();
        assert!(says("http://tsa.example/").contains("refusing plain `http://`"));
        for other in [
            "ftp://tsa.example/",
            "wss://tsa.example/",
            "ws://127.0.0.1/",
            "file:///x",
        ] {
            assert!(
                matches!(other.parse::<TsaUrl>(), Err(UrlError::Scheme(_))),
                "{other}"
            );
        }
        for broken in [
            "",
            "tsa.example",
            "https://",
            "https://a b/",
            "https://[::1",
        ] {
            assert!(
                matches!(broken.parse::<TsaUrl>(), Err(UrlError::Syntax(_))),
                "{broken}"
            );
        }
        for secret in ["https://me:pass@tsa.example/", "https://me@tsa.example/"] {
            assert_eq!(secret.parse::<TsaUrl>(), Err(UrlError::Password));
            assert!(!says(secret).contains("pass@"), "{}", says(secret));
        }
        assert_eq!(
            "https://tsa.example/#x".parse::<TsaUrl>(),
            Err(UrlError::Fragment)
        );
        let long = format!("https://tsa.example/{}", "x".repeat(2048));
        assert_eq!(long.parse::<TsaUrl>(), Err(UrlError::TooLong));
    }
}
