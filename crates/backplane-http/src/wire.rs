//! The clients of HTTP, made when they are needed: most commands speak to one place only.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::Client;
use rustls::ClientConfig;
use tls_files::{ClientTls, TlsError, is_loopback_host};
use url::Url;

use crate::error::{SetupError, innermost};
use crate::options::{Options, Roots};

/// How long a connection is kept for the next request: shorter than servers usually wait.
const KEPT: Duration = Duration::from_secs(15);
const MOST_KEPT: usize = 4;

/// What all clients of a transport share.
#[derive(Debug)]
pub(crate) struct Trust {
    roots: Roots,
    config: OnceLock<Arc<ClientConfig>>,
}

impl Trust {
    /// Reads a named file at once, so that its faults show early; the system's roots when needed.
    pub(crate) fn new(roots: Roots) -> Result<Self, SetupError> {
        let config = OnceLock::new();
        let trust = Self { roots, config };
        if trust.roots != Roots::System {
            trust.config()?;
        }
        Ok(trust)
    }

    fn config(&self) -> Result<Arc<ClientConfig>, TlsError> {
        if let Some(config) = self.config.get() {
            return Ok(Arc::clone(config));
        }
        let config = match &self.roots {
            Roots::System => ClientTls::config(None),
            Roots::Only(path) => ClientTls::config(Some(path)),
            Roots::SystemAnd(path) => ClientTls::system_and(path),
        }?;
        Ok(Arc::clone(self.config.get_or_init(|| config)))
    }
}

/// The clients of one runtime. A connection is driven by the runtime that made it, so two of them
/// share none.
#[derive(Debug, Default)]
pub(crate) struct Wires {
    /// Plainly to this machine: no roots are read, which is most of the time a short command takes.
    plain: OnceLock<Client>,
    /// To this machine by TLS, without proxies.
    near: OnceLock<Client>,
    /// To everywhere else.
    far: OnceLock<Client>,
}

impl Wires {
    /// Returns the client for a URL.
    pub(crate) fn client(
        &self,
        url: &Url,
        options: &Options,
        trust: &Trust,
    ) -> Result<&Client, SetupError> {
        let near = is_loopback_host(url.host_str().unwrap_or_default());
        let cell = match (near, url.scheme()) {
            (true, "http") => &self.plain,
            (true, _) => &self.near,
            (false, _) => &self.far,
        };
        if let Some(client) = cell.get() {
            return Ok(client);
        }
        let config = match (near, url.scheme()) {
            (true, "http") => ClientTls::trust_nobody()?,
            _ => trust.config()?,
        };
        let client = client(options, &config, !near)?;
        Ok(cell.get_or_init(|| client))
    }
}

fn client(options: &Options, config: &ClientConfig, far: bool) -> Result<Client, SetupError> {
    let mut builder = Client::builder()
        .user_agent(concat!("backplane/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_proxy()
        .connect_timeout(options.times.connect)
        .pool_idle_timeout(KEPT)
        .pool_max_idle_per_host(MOST_KEPT)
        // Whatever other packages of the build ask the library for.
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .http1_only()
        .tcp_nodelay(true)
        .tls_backend_preconfigured(config.clone());
    if far {
        for proxy in options.proxies.for_reqwest()? {
            builder = builder.proxy(proxy);
        }
    }
    builder.build().map_err(|error| SetupError::Client {
        cause: innermost(&error),
    })
}
