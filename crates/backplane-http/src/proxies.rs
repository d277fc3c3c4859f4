//! The proxies on the way. Their addresses may hold passwords, so they are shown nowhere.

use std::fmt;

use reqwest::{NoProxy, Proxy};
use url::Url;
use zeroize::Zeroizing;

use crate::error::SetupError;

/// The longest value that is taken for a proxy's address.
const LONGEST: usize = 2048;

/// The proxies on the way, in the words of the usual variables. `Debug` shows which are set.
///
/// Whatever they say, a request to this machine goes to no proxy. One that is `https` goes through a
/// tunnel, so that a proxy sees the name of the other side and nothing else.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    https: Option<Zeroizing<String>>,
    http: Option<Zeroizing<String>>,
    all: Option<Zeroizing<String>>,
    except: Option<String>,
}

impl Proxies {
    /// Has none.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Takes them from variables, which `read` gets by name: `HTTPS_PROXY`, `HTTP_PROXY`,
    /// `ALL_PROXY` and `NO_PROXY`, or the same in lower case where those are unset or empty.
    ///
    /// Where `REQUEST_METHOD` is set, `HTTP_PROXY` is what somebody on the web sent, and not read.
    ///
    /// # Errors
    /// `read` fails.
    pub fn from_variables<E>(read: impl Fn(&str) -> Result<Option<String>, E>) -> Result<Self, E> {
        let one = |name: &str| Ok(read(name)?.filter(|value| !value.is_empty()));
        let either = |name: &str| match one(name)? {
            Some(value) => Ok(Some(value)),
            None => one(&name.to_ascii_lowercase()),
        };
        let http = match one("REQUEST_METHOD")? {
            None => either("HTTP_PROXY")?,
            Some(_) => one("http_proxy")?,
        };
        Ok(Self {
            https: either("HTTPS_PROXY")?.map(Zeroizing::new),
            http: http.map(Zeroizing::new),
            all: either("ALL_PROXY")?.map(Zeroizing::new),
            except: either("NO_PROXY")?,
        })
    }

    /// Checks them all, used or not.
    pub(crate) fn for_reqwest(&self) -> Result<Vec<Proxy>, SetupError> {
        let except = || self.except.as_deref().and_then(NoProxy::from_string);
        let mut proxies = Vec::new();
        for (name, address) in [
            ("HTTPS_PROXY", &self.https),
            ("HTTP_PROXY", &self.http),
            ("ALL_PROXY", &self.all),
        ] {
            let Some(address) = address else {
                continue;
            };
            let url = parse(address).ok_or(SetupError::Proxy { name })?;
            let proxy = match name {
                "HTTPS_PROXY" => Proxy::https(url),
                "HTTP_PROXY" => Proxy::http(url),
                _ => Proxy::all(url),
            };
            // The error would quote the address.
            let proxy = proxy.map_err(|_| SetupError::Proxy { name })?;
            proxies.push(proxy.no_proxy(except()));
        }
        // The library below takes a `*` for names alone, not for addresses.
        let except = self.except.as_deref().unwrap_or_default();
        if except.split(',').any(|entry| entry.trim() == "*") {
            proxies.clear();
        }
        Ok(proxies)
    }
}

/// Reads an address; one without a scheme is of `http`.
fn parse(address: &str) -> Option<Url> {
    if address.len() > LONGEST {
        return None;
    }
    let whole = match address.contains("://") {
        true => Zeroizing::new(address.to_owned()),
        false => Zeroizing::new(format!("http://{address}")),
    };
    let url = Url::parse(&whole).ok()?;
    let usable = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && matches!(url.path(), "" | "/")
        && url.query().is_none()
        && url.fragment().is_none();
    usable.then_some(url)
}

impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxies")
            .field("https", &self.https.is_some())
            .field("http", &self.http.is_some())
            .field("all", &self.all.is_some())
            .field("except", &self.except)
            .finish()
    }
}
