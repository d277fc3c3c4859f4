//! The cancellation token: a flag that is raised once and wakes whoever waits for it.
//!
//! It starts no thread and knows no runtime; [`Cancel::on_cancel`] is the bridge to one.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Tells a handler that the host wants the operation to stop, or is gone.
///
/// Clones share one flag. It is never raised if `cancel` was not negotiated.
#[derive(Clone, Default)]
pub struct Cancel(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    raised: Condvar,
}

#[derive(Default)]
struct State {
    raised: bool,
    callbacks: Vec<Box<dyn FnOnce() + Send>>,
}

impl Cancel {
    /// Makes a token that is not raised.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the host has asked to stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.lock().raised
    }

    /// Waits for at most `timeout` and says whether the host has asked to stop.
    #[must_use]
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        let waited = self
            .0
            .raised
            .wait_timeout_while(self.lock(), timeout, |state| !state.raised);
        waited.unwrap_or_else(PoisonError::into_inner).0.raised
    }

    /// Calls back once when the host asks to stop, at once if it already has.
    ///
    /// The callback runs on the thread that reads from the host, so it must not block.
    pub fn on_cancel(&self, callback: impl FnOnce() + Send + 'static) {
        let mut state = self.lock();
        if state.raised {
            drop(state);
            callback();
        } else {
            state.callbacks.push(Box::new(callback));
        }
    }

    /// Raises the flag; what a handler under test is given a token for.
    pub fn cancel(&self) {
        let callbacks = {
            let mut state = self.lock();
            state.raised = true;
            std::mem::take(&mut state.callbacks)
        };
        self.0.raised.notify_all();
        for callback in callbacks {
            callback();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Cancel")
            .field(&self.is_cancelled())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn clones_share_one_flag() {
        let token = Cancel::new();
        let other = token.clone();
        assert!(!other.is_cancelled());
        assert!(!other.wait_timeout(Duration::ZERO));
        token.cancel();
        assert!(other.is_cancelled());
        assert!(other.wait_timeout(Duration::ZERO));
    }

    #[test]
    fn a_waiter_is_woken() {
        let token = Cancel::new();
        let waiter = std::thread::spawn({
            let token = token.clone();
            move || token.wait_timeout(Duration::from_secs(60))
        });
        token.cancel();
        assert!(waiter.join().unwrap());
    }

    #[test]
    fn callbacks_run_once_before_or_after() {
        let calls = Arc::new(AtomicUsize::new(0));
        let token = Cancel::new();
        let count = |token: &Cancel| {
            let calls = Arc::clone(&calls);
            token.on_cancel(move || {
                calls.fetch_add(1, Ordering::SeqCst);
            });
        };
        count(&token);
        assert_eq!(calls.load(Ordering::SeqCst), 0);
        token.cancel();
        token.cancel();
        assert_eq!(calls.load(Ordering::SeqCst), 1);
        count(&token);
        assert_eq!(calls.load(Ordering::SeqCst), 2);
    }
}
