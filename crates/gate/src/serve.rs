//! From a configuration to a serving Gate and back: open the store, check what
//! the host has to offer, listen, and stop in order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use cli_shell::Secret;
use gate_store::{Recovery, SqliteStore};
use tls_files::ServerTls;
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;
use web_server::{HostRules, Listen, MAX_CONNECTIONS, Serving};

use crate::config::{GateConfig, TokenSource};
use crate::error::GateError;
use crate::http::router;
use crate::log;
use crate::state::{Clock, GateState};
use crate::timekeeper;
use crate::tokens::Tokens;

/// How long running requests and attempts may go on after a stop.
const GRACE: Duration = Duration::from_secs(10);

/// A Gate that listens.
#[derive(Debug)]
pub struct Gate {
    state: GateState,
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<ServerTls>,
    grace: Duration,
}

/// What a start needs from the host, checked without starting.
#[derive(Debug)]
pub(crate) struct Host {
    tokens: Tokens,
    tls: Option<ServerTls>,
    addresses: Vec<SocketAddr>,
}

impl Host {
    /// Reads tokens and certificate and resolves the listen address.
    pub(crate) async fn inspect(config: &GateConfig) -> Result<Self, GateError> {
        let tls = config.tls.as_ref().map(|files| {
            ServerTls::load(&files.certificate, &files.key).map_err(|source| GateError::Tls {
                certificate: files.certificate.clone(),
                source: Box::new(source),
            })
        });
        let host = Self {
            tokens: tokens(config)?,
            tls: tls.transpose()?,
            addresses: config
                .listen
                .resolve()
                .await
                .map_err(|source| no_listener(config, source))?,
        };
        if !host
            .addresses
            .iter()
            .all(|address| address.ip().is_loopback())
        {
            host.judge_public(config, &config.listen.to_string())?;
        }
        Ok(host)
    }

    /// Judges a listener that other machines reach.
    fn judge_public(&self, config: &GateConfig, address: &str) -> Result<(), GateError> {
        let address = address.to_owned();
        if self.tls.is_none() {
            if !config.allow_plain_listener {
                return Err(GateError::PlainListener { address });
            }
            tracing::warn!(
                component = "gate",
                "tokens and tasks cross the network in plain text: `allow_plain_listener` is set"
            );
        }
        if config.metrics_without_token {
            return Err(GateError::OpenMetrics { address });
        }
        Ok(())
    }

    /// The service manager's socket, or one of our own.
    async fn listen(
        &self,
        config: &GateConfig,
        passed: Option<std::net::TcpListener>,
    ) -> Result<(TcpListener, SocketAddr), GateError> {
        let failed = |source| no_listener(config, source);
        let Some(passed) = passed else {
            return Listen::bind(&self.addresses).await.map_err(failed);
        };
        // It may be bound elsewhere than the configuration says.
        let (listener, address) = Listen::adopt(passed).map_err(failed)?;
        if !address.ip().is_loopback() {
            self.judge_public(config, &address.to_string())?;
        }
        Ok((listener, address))
    }
}

impl Gate {
    /// Opens the store and listens. Blocks the thread while the store opens.
    ///
    /// # Errors
    /// The host lacks something, or the store cannot be used.
    pub async fn start(config: &GateConfig, clock: Clock) -> Result<Self, GateError> {
        Self::start_on(config, clock, None).await
    }

    /// As [`Self::start`], on a socket that listens already, if there is one.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn start_on(
        config: &GateConfig,
        clock: Clock,
        passed: Option<std::net::TcpListener>,
    ) -> Result<Self, GateError> {
        let host = Host::inspect(config).await?;
        let (store, recovery) = SqliteStore::open(&config.database, clock())?;
        report(&recovery);
        let grants = Arc::clone(&clock);
        let store = store.granting_by(move || grants());
        let (listener, address) = host.listen(config, passed).await?;
        let rules = HostRules::new(
            address.ip().is_loopback(),
            config.listen.host(),
            config.allowed_hosts.as_ref(),
            &config.allowed_origins,
        );
        let state = GateState::new(config, Arc::new(store), host.tokens, rules, clock)?;
        for lease in &recovery.expired {
            state.metrics().expired(lease);
        }
        Ok(Self {
            state,
            listener,
            address,
            tls: host.tls,
            grace: GRACE,
        })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops it from elsewhere.
    #[must_use]
    pub fn handle(&self) -> GateState {
        self.state.clone()
    }

    /// Gives what still runs another time to end than 10 s.
    #[must_use]
    pub fn with_grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// Serves until [`GateState::stop`] is called or the store fails.
    ///
    /// # Errors
    /// Why the Gate stopped, unless it was asked to.
    pub async fn serve(self) -> Result<(), GateError> {
        log::listening(&self.address.to_string());
        let Self {
            state,
            listener,
            tls,
            grace,
            ..
        } = self;
        let helpers = TaskTracker::new();
        helpers.spawn(timekeeper::keep_time(state.clone()));
        if let Some(tls) = &tls {
            let stopping = state.stopping().clone();
            helpers.spawn(web_server::watch_certificate("gate", stopping, tls.clone()));
        }
        let serving = Serving {
            component: "gate",
            router: router(state.clone()),
            tls: tls.map(Arc::new),
            deadlines: state.deadlines(),
            connections: MAX_CONNECTIONS,
            open: state.metrics().connections(),
            lifetime: state.lifetime().clone(),
        };
        web_server::accept(listener, serving).await;
        state.lifetime().finish(grace).await;
        helpers.close();
        helpers.wait().await;
        state.failure().map_or(Ok(()), Err)
    }
}

pub(crate) fn tokens(config: &GateConfig) -> Result<Tokens, GateError> {
    let read = |whose: String, source: &TokenSource| {
        match source {
            TokenSource::Env(name) => Secret::from_env(name.as_ref()),
            TokenSource::File(path) => Secret::from_file(path),
        }
        .map_err(|source| GateError::Token { whose, source })
    };
    let owner = read("the owner".to_owned(), &config.owner_token)?;
    let workers = config
        .workers
        .iter()
        .map(|worker| {
            let secret = read(format!("Worker `{}`", worker.id), &worker.token)?;
            Ok((worker.id.clone(), secret))
        })
        .collect::<Result<Vec<_>, GateError>>()?;
    Tokens::new(&owner, workers).map_err(GateError::TokenReused)
}

fn no_listener(config: &GateConfig, source: std::io::Error) -> GateError {
    GateError::Listen {
        address: config.listen.to_string(),
        source,
    }
}

fn report(recovery: &Recovery) {
    for lease in &recovery.expired {
        log::lease_expired(lease);
    }
    tracing::info!(
        component = "gate",
        event = "recovered",
        disconnected = recovery.disconnected,
        expired = recovery.expired.len(),
        clamped = recovery.clamped,
        graced = recovery.graced,
        live = recovery.live,
        "gate lifecycle"
    );
}
