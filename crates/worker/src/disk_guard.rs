//! Whether there is room for another job: the free bytes where the Worker writes.
//!
//! A slot that finds too little says so to a Gate with job control and gets no lease until there
//! is room again. Another Gate cannot be told; its leases are carried out as before.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

/// How often the guard looks while nothing else makes it.
const EVERY: Duration = Duration::from_secs(5);

/// Answers where there is too little, in words.
type Probe = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// Shared by all slots of a Worker.
#[derive(Clone)]
pub(crate) struct DiskGuard {
    probe: Option<Probe>,
    low: watch::Sender<bool>,
}

impl DiskGuard {
    /// Asks for `min_free_bytes` in each of the folders; 0 asks for nothing.
    pub(crate) fn new(folders: Vec<PathBuf>, min_free_bytes: u64) -> Self {
        let probe = move || {
            folders
                .iter()
                .find_map(|folder| short(folder, min_free_bytes))
        };
        Self::with_probe((min_free_bytes > 0).then(|| Arc::new(probe) as Probe))
    }

    /// A guard that asks this.
    pub(crate) fn with_probe(probe: Option<Probe>) -> Self {
        Self {
            probe,
            low: watch::Sender::new(false),
        }
    }

    /// Looks now; a change is logged once for the whole Worker.
    pub(crate) async fn is_low(&self) -> bool {
        let Some(probe) = self.probe.clone() else {
            return false;
        };
        // A file system that hangs must not stop the other slots.
        let short = match tokio::task::spawn_blocking(move || probe()).await {
            Ok(short) => short,
            Err(error) => {
                tracing::error!(%error, "the free space could not be looked up");
                return *self.low.borrow();
            }
        };
        let low = short.is_some();
        let changed = self.low.send_if_modified(|known| {
            let changed = *known != low;
            *known = low;
            changed
        });
        match short {
            Some(short) if changed => {
                tracing::warn!(event = "disk_low", %short, "too little room, no further lease");
            }
            None if changed => {
                tracing::info!(event = "disk_low_over", "there is room again");
            }
            _ => {}
        }
        low
    }

    /// Follows what was seen last.
    pub(crate) fn watch(&self) -> watch::Receiver<bool> {
        self.low.subscribe()
    }

    /// Looks again and again; never returns.
    pub(crate) async fn keep_looking(&self) -> Infallible {
        loop {
            self.is_low().await;
            sleep(EVERY).await;
        }
    }
}

/// Says how much is free in a folder, if it is too little. A folder that cannot be asked is
/// judged when a lease is accepted, not here.
fn short(folder: &std::path::Path, min_free_bytes: u64) -> Option<String> {
    let found = rustix::fs::statvfs(folder).ok()?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    (free < min_free_bytes).then(|| {
        format!(
            "`{}` has {free} bytes free, `min_free_bytes` is {min_free_bytes}",
            folder.display()
        )
    })
}

impl std::fmt::Debug for DiskGuard {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("DiskGuard")
            .field("low", &*self.low.borrow())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[tokio::test]
    async fn the_limit_is_what_the_file_system_has_and_0_asks_nothing() {
        let folder = tempfile::tempdir().unwrap().keep();
        let folders = vec![folder];
        assert!(!DiskGuard::new(folders.clone(), 0).is_low().await);
        assert!(!DiskGuard::new(folders.clone(), 1).is_low().await);
        assert!(DiskGuard::new(folders, u64::MAX).is_low().await);
        let gone = vec![PathBuf::from("/nonexistent")];
        assert!(!DiskGuard::new(gone, u64::MAX).is_low().await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_is_seen_without_being_asked() {
        let full = Arc::new(AtomicBool::new(false));
        let look = Arc::clone(&full);
        let probe = move || look.load(Ordering::Relaxed).then(|| "full".to_owned());
        let guard = DiskGuard::with_probe(Some(Arc::new(probe)));
        let mut seen = guard.watch();
        let follow = async {
            full.store(true, Ordering::Relaxed);
            seen.changed().await.unwrap();
            assert!(*seen.borrow_and_update());
            full.store(false, Ordering::Relaxed);
            seen.changed().await.unwrap();
            assert!(!*seen.borrow_and_update());
        };
        tokio::select! {
            never = guard.keep_looking() => match never {},
            () = follow => {}
        }
    }
}
