//! From a configuration to a serving registry and back: tokens, store, listener, and a stop in
//! order.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use registry_store::{ArtifactPlace, Limits, Store};
use tls_files::{ClientTls, ServerTls};
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;
use web_server::{Deadlines, HostRules, Listen, MAX_CONNECTIONS, Serving};

use crate::config::{Artifacts, RegistryConfig};
use crate::error::RegistryError;
use crate::http::router;
use crate::log;
use crate::state::{Clock, RegistryState, Service};
use crate::tokens::{self, Tokens};

/// How long running requests may go on after a stop.
const GRACE: Duration = Duration::from_secs(10);
/// How often uploads that nobody released are looked for.
const SWEEP: Duration = Duration::from_secs(3600);

/// A registry that listens.
#[derive(Debug)]
pub struct Registry {
    state: RegistryState,
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<ServerTls>,
    made: Option<PathBuf>,
}

impl Registry {
    /// Opens the store in `root` and listens, on a socket that listens already if there is one.
    /// Blocks the thread while the store opens.
    ///
    /// # Errors
    /// The host lacks something, or the store cannot be used.
    pub async fn start(
        root: &Path,
        config: &RegistryConfig,
        listen: &Listen,
        clock: Clock,
        passed: Option<std::net::TcpListener>,
    ) -> Result<Self, RegistryError> {
        let tls = tls(config)?;
        let place = place(&config.artifacts)?;
        let configured = match &config.tokens[..] {
            [] => None,
            tokens => Some(Tokens::read(tokens)?),
        };
        let limits = Limits {
            archive: config.limits.archive,
            uploads: config.limits.uploads,
            ..Limits::default()
        };
        let store = Store::open(root, place, limits)?;
        let (listener, address) = bind(config, listen, passed).await?;
        // Last, since a token is told of by the start that made it and by no other.
        let (tokens, made) = match configured {
            Some(tokens) => (tokens, None),
            None => Tokens::administrator(root)?,
        };
        let hosts = HostRules::new(
            address.ip().is_loopback(),
            listen.host(),
            config.allowed_hosts.as_ref(),
            &std::collections::BTreeSet::new(),
        );
        let service = Service {
            store,
            tokens,
            hosts,
            anonymous_read: config.anonymous_read,
            limits: config.limits,
        };
        let mut start = [0; 4];
        getrandom::fill(&mut start)
            .map_err(|error| RegistryError::Randomness(std::io::Error::from(error)))?;
        Ok(Self {
            state: RegistryState::new(service, clock, u32::from_ne_bytes(start)),
            listener,
            address,
            tls,
            made,
        })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The administrator's token, if this start made it.
    #[must_use]
    pub fn made_token(&self) -> Option<&Path> {
        self.made.as_deref()
    }

    /// Stops it from elsewhere.
    #[must_use]
    pub fn handle(&self) -> RegistryState {
        self.state.clone()
    }

    /// Serves until [`RegistryState::stop`] is called.
    pub async fn serve(self) {
        log::listening(&self.address.to_string());
        let Self {
            state,
            listener,
            tls,
            ..
        } = self;
        let stopping = state.lifetime().stopping.clone();
        let helpers = TaskTracker::new();
        helpers.spawn(sweep(state.clone()));
        if let Some(tls) = &tls {
            let stopping = stopping.clone();
            helpers.spawn(web_server::watch_certificate(
                "registry",
                stopping,
                tls.clone(),
            ));
        }
        let serving = Serving {
            component: "registry",
            router: router(state.clone()),
            tls: tls.map(Arc::new),
            deadlines: Deadlines::default(),
            connections: MAX_CONNECTIONS,
            open: Gauge::default(),
            lifetime: state.lifetime().clone(),
        };
        web_server::accept(listener, serving).await;
        state.lifetime().finish(GRACE).await;
        helpers.close();
        helpers.wait().await;
    }
}

/// Removes what nobody released, at the start and every hour.
async fn sweep(state: RegistryState) {
    let stopping = state.lifetime().stopping.clone();
    // Not a reason to end: the catalog is there all the same, and the bucket may come back.
    let looked = tokio::select! {
        looked = state.store().check_place() => looked,
        () = stopping.cancelled() => return,
    };
    if let Err(error) = looked {
        log::no_place(&error);
    }
    loop {
        // A bucket may take its time; what is broken off is done at the next start.
        let collected = tokio::select! {
            collected = state.store().collect(state.now()) => collected,
            () = stopping.cancelled() => return,
        };
        match collected {
            Ok(collected) => log::collected(&collected),
            Err(error) => log::not_collected(&error),
        }
        tokio::select! {
            () = tokio::time::sleep(SWEEP) => {}
            () = stopping.cancelled() => return,
        }
    }
}

fn tls(config: &RegistryConfig) -> Result<Option<ServerTls>, RegistryError> {
    let load = |files: &crate::config::TlsFiles| {
        ServerTls::load(&files.certificate, &files.key).map_err(|source| RegistryError::Tls {
            certificate: files.certificate.clone(),
            source: Box::new(source),
        })
    };
    config.tls.as_ref().map(load).transpose()
}

fn place(artifacts: &Artifacts) -> Result<ArtifactPlace, RegistryError> {
    let Artifacts::S3(s3) = artifacts else {
        return Ok(ArtifactPlace::Disk);
    };
    let secret = |source| {
        tokens::secret(source)
            .map(|secret| secret.expose().to_owned())
            .map_err(RegistryError::Credentials)
    };
    let trust = match s3
        .endpoint
        .as_deref()
        .and_then(|text| text.split_once("://"))
    {
        Some(("http", _)) => ClientTls::trust_nobody(),
        _ => ClientTls::config(s3.ca_file.as_deref()),
    };
    Ok(ArtifactPlace::S3(Box::new(registry_store::S3 {
        bucket: s3.bucket.clone(),
        region: s3.region.clone(),
        endpoint: s3.endpoint.clone(),
        prefix: s3.prefix.clone(),
        access_key_id: secret(&s3.access_key_id)?,
        secret_access_key: secret(&s3.secret_access_key)?,
        tls: trust.map_err(|error| RegistryError::Trust(Box::new(error)))?,
        silence: registry_store::S3::SILENCE,
    })))
}

/// The service manager's socket, or one of our own; a public one only over TLS, unless the
/// configuration insists.
async fn bind(
    config: &RegistryConfig,
    listen: &Listen,
    passed: Option<std::net::TcpListener>,
) -> Result<(TcpListener, SocketAddr), RegistryError> {
    let failed = |source| RegistryError::Listen {
        address: listen.to_string(),
        source,
    };
    if let Some(passed) = passed {
        // It may be bound elsewhere than the configuration says.
        let (listener, address) = Listen::adopt(passed).map_err(failed)?;
        judge(config, &[address], &address.to_string())?;
        return Ok((listener, address));
    }
    let addresses = listen.resolve().await.map_err(failed)?;
    judge(config, &addresses, &listen.to_string())?;
    Listen::bind(&addresses).await.map_err(failed)
}

fn judge(
    config: &RegistryConfig,
    addresses: &[SocketAddr],
    shown: &str,
) -> Result<(), RegistryError> {
    let private = addresses.iter().all(|address| address.ip().is_loopback());
    if private || config.tls.is_some() {
        return Ok(());
    }
    if !config.insecure_listen {
        let address = shown.to_owned();
        return Err(RegistryError::PlainListener { address });
    }
    tracing::warn!(
        component = "registry",
        "tokens and packages cross the network in plain text: `insecure_listen` is set"
    );
    Ok(())
}
