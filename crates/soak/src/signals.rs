//! The wish of a person to end early, which must not leave a process behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use anyhow::{Context as _, Result};
use tokio::signal::unix::{SignalKind, signal};

/// Whether somebody asked for the end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Turns SIGINT, SIGTERM and SIGHUP into a wish. They are handled, not blocked: a blocked
    /// signal would be blocked in the programs that are started, too.
    pub(crate) fn watch() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot wait for signals")?;
        let stop = Self::default();
        let asked = stop.clone();
        let (ready, handled) = channel();
        let wait = async move {
            let kinds = [
                SignalKind::interrupt(),
                SignalKind::terminate(),
                SignalKind::hangup(),
            ];
            let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hang_up)] = kinds.map(signal) else {
                return;
            };
            if ready.send(()).is_err() {
                return;
            }
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hang_up.recv() => {}
            }
            asked.0.store(true, Ordering::Relaxed);
        };
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || runtime.block_on(wait))
            .context("cannot start a thread")?;
        handled.recv().context("cannot handle signals")?;
        Ok(stop)
    }

    /// Whether it is so.
    pub(crate) fn wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
