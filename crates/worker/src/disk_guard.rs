//! Whether there is room for another job: the free bytes where the Worker writes.
//!
//! A slot that finds too little says so to a Gate with job control and gets no lease until there
//! is room again. Another Gate cannot be told; its leases are carried out as before.
//!
//! One ticker asks the file systems, and the slots go by its last word: a mount that hangs holds
//! up no slot, and keeps one thread.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// How often the guard looks.
pub(crate) const EVERY: Duration = Duration::from_secs(1);
/// How long a look may take before the slots go on without it, also without a first one.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// Where there is too little, in words, if it is anywhere.
pub(crate) type Look = Pin<Box<dyn Future<Output = io::Result<Option<String>>> + Send>>;
type Probe = Arc<dyn Fn() -> Look + Send + Sync>;

/// Shared by all slots of a Worker.
#[derive(Clone)]
pub(crate) struct DiskGuard {
    probe: Option<Probe>,
    /// Whether there is too little room; nothing before the first word.
    word: watch::Sender<Option<bool>>,
}

impl DiskGuard {
    /// Asks for `min_free_bytes` in each of the folders; 0 asks for nothing.
    pub(crate) fn new(folders: Vec<PathBuf>, min_free_bytes: u64) -> Self {
        let folders = Arc::new(folders);
        let probe = move || -> Look {
            let folders = Arc::clone(&folders);
            Box::pin(async move {
                let look = move || {
                    folders
                        .iter()
                        .find_map(|folder| short(folder, min_free_bytes))
                };
                Ok(tokio::task::spawn_blocking(look).await?)
            })
        };
        Self::with_probe((min_free_bytes > 0).then(|| Arc::new(probe) as Probe))
    }

    /// A guard that asks this.
    pub(crate) fn with_probe(probe: Option<Probe>) -> Self {
        Self {
            word: watch::Sender::new(probe.is_none().then_some(false)),
            probe,
        }
    }

    /// What was seen last; waits for the first word, which `keep_looking` has in [`PATIENCE`].
    pub(crate) async fn is_low(&self) -> bool {
        let mut word = self.watch();
        let known = word.wait_for(Option::is_some).await;
        known.is_ok_and(|word| *word == Some(true))
    }

    /// Follows what was seen last.
    pub(crate) fn watch(&self) -> watch::Receiver<Option<bool>> {
        self.word.subscribe()
    }

    /// Looks again and again; never returns.
    pub(crate) async fn keep_looking(&self) -> Infallible {
        let Some(probe) = &self.probe else {
            return pending().await;
        };
        loop {
            let mut look = probe();
            let found = match timeout(PATIENCE, &mut look).await {
                Ok(found) => found,
                Err(_) => self.wait_for(look).await,
            };
            match found {
                Ok(short) => self.learn(short),
                Err(error) => {
                    tracing::error!(%error, "the free space could not be looked up");
                    self.go_by_the_last_word();
                }
            }
            sleep(EVERY).await;
        }
    }

    /// A file system does not answer: the slots go on meanwhile.
    async fn wait_for(&self, look: Look) -> io::Result<Option<String>> {
        tracing::warn!(
            event = "disk_silent",
            "a file system does not say how much is free, the last word holds"
        );
        self.go_by_the_last_word();
        look.await
    }

    /// Without any it counts as room: what is wrong there shows when a lease is accepted.
    fn go_by_the_last_word(&self) {
        self.word.send_if_modified(|word| {
            let first = word.is_none();
            *word = Some(word.unwrap_or(false));
            first
        });
    }

    /// A change is logged once for the whole Worker.
    fn learn(&self, short: Option<String>) {
        let (before, now) = (*self.word.borrow(), Some(short.is_some()));
        self.word.send_if_modified(|word| {
            *word = now;
            before != now // else each look would wake each slot
        });
        match short {
            Some(short) if before != Some(true) => {
                tracing::warn!(event = "disk_low", %short, "too little room, no further lease");
            }
            None if before == Some(true) => {
                tracing::info!(event = "disk_low_over", "there is room again");
            }
            _ => {}
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
            .field("low", &*self.word.borrow())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::time::Instant;

    use super::*;

    /// A guard whose looks end like this, one after the other; the one behind them hangs.
    fn guard(looks: &'static [bool]) -> DiskGuard {
        let next = AtomicUsize::new(0);
        let probe = move || -> Look {
            let look = looks.get(next.fetch_add(1, Ordering::Relaxed)).copied();
            Box::pin(async move {
                match look {
                    Some(low) => Ok(low.then(|| "full".to_owned())),
                    None => pending().await,
                }
            })
        };
        DiskGuard::with_probe(Some(Arc::new(probe)))
    }

    /// Does this while the guard looks.
    async fn while_looking<T>(guard: &DiskGuard, work: impl Future<Output = T>) -> T {
        tokio::select! {
            never = guard.keep_looking() => match never {},
            done = work => done,
        }
    }

    #[tokio::test]
    async fn the_limit_is_what_the_file_system_has_and_0_asks_nothing() {
        let folder = tempfile::tempdir().unwrap().keep();
        let word = async |folder: &str, least| {
            let guard = DiskGuard::new(vec!["/nonexistent".into(), folder.into()], least);
            while_looking(&guard, guard.is_low()).await
        };
        let folder = folder.to_str().unwrap();
        assert!(!word(folder, 0).await);
        assert!(!word(folder, 1).await);
        assert!(word(folder, u64::MAX).await);
        assert!(!word("/nonexistent", u64::MAX).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_is_seen_without_being_asked() {
        let guard = guard(&[true, false]);
        let mut seen = guard.watch();
        let follow = async {
            seen.changed().await.unwrap();
            assert_eq!(*seen.borrow_and_update(), Some(true));
            seen.changed().await.unwrap();
            assert_eq!(*seen.borrow_and_update(), Some(false));
        };
        while_looking(&guard, follow).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_system_that_hangs_leaves_the_last_word() {
        for (looks, last) in [(&[true] as &[_], true), (&[true, false], false)] {
            let guard = guard(looks);
            let ask = async {
                sleep(Duration::from_secs(60)).await;
                let since = Instant::now();
                assert_eq!(guard.is_low().await, last);
                assert_eq!(since.elapsed(), Duration::ZERO);
            };
            while_looking(&guard, ask).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_word_is_waited_for_but_not_for_ever() {
        let guard = guard(&[]);
        let ask = async {
            for takes in [PATIENCE, Duration::ZERO] {
                let since = Instant::now();
                assert!(!guard.is_low().await);
                assert_eq!(since.elapsed(), takes);
            }
        };
        while_looking(&guard, ask).await;
    }
}
