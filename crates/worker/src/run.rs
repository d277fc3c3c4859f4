//! A whole Worker: owns the folders, runs the slots, listens to signals, ends in order.

use std::collections::BTreeMap;
use std::future::pending;
use std::io;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use cli_shell::service;
use forge_domain::SlotId;
use gate_link::{ActivityVersion, ConnectQuery, ControlVersion};
use process_tree::Wrapper;
use tls_files::{ClientTls, Transport};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::sleep_until;
use tokio_tungstenite::Connector;

use crate::WorkerError;
use crate::config::{Host, WorkerConfig};
use crate::disk_guard::DiskGuard;
use crate::kept::Kept;
use crate::results::Results;
use crate::runner::JobRunner;
use crate::shutdown::{Order, Outcome, Shutdown};
use crate::slot::{Shared, supervise};
use crate::stop::Stop;
use crate::sweep::OwnedRoots;
use crate::websocket::GateConnector;

/// Runs until the signals and the jobs say that it is over.
pub(crate) fn run(
    config: &WorkerConfig,
    host: Host,
    wrapper: Wrapper,
    connector: GateConnector,
) -> Result<Outcome, WorkerError> {
    let owned = OwnedRoots::take_over(&host.worktree_root, &host.runtime_root)?;
    let (results, kept) = Results::open(&host.state_dir, &config.id, config.concurrency)?;
    // Two threads at least: one job that hogs a thread must not delay another's heartbeat.
    let threads = std::thread::available_parallelism()
        .map_or(2, NonZero::get)
        .max(2);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .map_err(|source| WorkerError::Os {
            what: "start the runtime",
            source,
        })?;
    let shared = Shared {
        connector,
        heartbeat_interval: config.heartbeat_interval,
        stop: Stop::default(),
        results: Arc::new(results),
        guard: DiskGuard::new(written(&host), config.min_free_bytes),
        executor: JobRunner::new(config.clone(), host, wrapper),
    };
    let outcome = runtime.block_on(serve(config, shared, kept))?;
    // Whatever is still blocked is killed with the process; its wrappers see to their trees.
    runtime.shutdown_background();
    drop(owned);
    tracing::info!(%outcome, "worker stopped");
    Ok(outcome)
}

/// Where a job, its plugin and its result write.
fn written(host: &Host) -> Vec<PathBuf> {
    vec![
        host.worktree_root.clone(),
        host.runtime_root.clone(),
        host.state_dir.clone(),
    ]
}

async fn serve(
    config: &WorkerConfig,
    shared: Shared<GateConnector, JobRunner>,
    kept: Vec<Kept>,
) -> Result<Outcome, WorkerError> {
    let mut signals = Signals::new().map_err(|source| WorkerError::Os {
        what: "listen to signals",
        source,
    })?;
    let queries = queries(config)?;
    let drain_timeout = config.drain_timeout;
    let mut shutdown = Shutdown::new(drain_timeout);
    let shared = Arc::new(shared);
    let stop = shared.stop.clone();
    tracing::info!(
        worker_id = %config.id, gate = %config.gate.url, slots = queries.len(),
        "worker started"
    );
    let mut kept: BTreeMap<_, _> = kept
        .into_iter()
        .map(|kept| (kept.slot.slot(), kept))
        .collect();
    let mut slots = JoinSet::new();
    for query in queries {
        let kept = kept.remove(&query.slot.slot());
        slots.spawn(supervise(Arc::clone(&shared), query, kept));
    }
    service::ready();
    let guard = shared.guard.clone();
    let looking = guard.keep_looking();
    tokio::pin!(looking);
    loop {
        let order = tokio::select! {
            biased;
            () = signals.next() => shutdown.signal(now()),
            () = at(shutdown.deadline()) => shutdown.deadline_reached(now()),
            joined = slots.join_next() => match joined {
                None => break,
                Some(Ok(())) => Order::Continue,
                Some(Err(error)) => {
                    tracing::error!(%error, "a slot ended by a defect of this program");
                    Order::Continue
                }
            },
            never = &mut looking => match never {},
        };
        match order {
            Order::Continue => {}
            Order::Drain => {
                service::stopping();
                tracing::info!(timeout = ?drain_timeout, "draining: no further lease");
                stop.drain();
            }
            Order::Cancel => {
                tracing::warn!("cancelling the running jobs");
                stop.cancel();
            }
            Order::Kill => {
                tracing::warn!("killing the running jobs");
                stop.kill();
            }
            Order::Leave => break,
        }
    }
    let outcome = shutdown.outcome();
    if outcome != Outcome::Killed {
        shared.executor.close().await;
    }
    Ok(outcome)
}

fn queries(config: &WorkerConfig) -> Result<Vec<ConnectQuery>, WorkerError> {
    (0..config.concurrency)
        .map(|number| {
            let slot = SlotId::new(config.id.clone(), number)?;
            Ok(ConnectQuery {
                activity_version: Some(ActivityVersion::V1),
                control_version: Some(ControlVersion::V1),
                ..ConnectQuery::new(slot)
            })
        })
        .collect::<Result<_, _>>()
        .map_err(|source| WorkerError::Slots { source })
}

/// Prepares connections to the Gate, and warns where the token crosses a network in plain text.
pub(crate) fn connector(config: &WorkerConfig, host: &Host) -> Result<GateConnector, WorkerError> {
    let url = config.gate.url.clone();
    let connector = match config.gate.transport {
        Transport::Tls => {
            let ca_file = config.gate.ca_file.as_ref().map(crate::HostPath::as_path);
            Connector::Rustls(
                ClientTls::config(ca_file).map_err(|source| WorkerError::Tls { source })?,
            )
        }
        Transport::PlainLoopback => Connector::Plain,
        Transport::PlainRemote => {
            tracing::warn!(
                host = url.host_str(),
                "the token crosses the network without encryption"
            );
            Connector::Plain
        }
    };
    GateConnector::new(url, &host.token, connector).map_err(|source| WorkerError::Os {
        what: "use the token",
        source: io::Error::other(source),
    })
}

/// SIGTERM and SIGINT, which mean the same.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

fn now() -> Instant {
    cli_shell::clock::instant()
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant.into()).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_wanted_wherever_a_job_writes() {
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("token");
        fs_err::write(&token, "token").unwrap();
        let host = Host {
            repository_roots: vec!["/roots".into()],
            worktree_root: "/worktrees".into(),
            runtime_root: "/runtime".into(),
            state_dir: "/state".into(),
            repositories: BTreeMap::new(),
            token: cli_shell::Secret::from_file(&token).unwrap(),
            environment: BTreeMap::new(),
            git: "/git".into(),
        };
        let written = written(&host);
        for folder in [&host.worktree_root, &host.runtime_root, &host.state_dir] {
            assert!(written.contains(folder), "{}", folder.display());
        }
    }
}
