//! The connections that are served, oldest first, so that one of them can be asked to make room.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// All of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Crowd(Arc<Mutex<Members>>);

#[derive(Debug, Default)]
struct Members {
    next: u64,
    open: BTreeMap<u64, CancellationToken>,
}

impl Crowd {
    /// Takes a new one in.
    pub(super) fn join(&self) -> Member {
        let mut members = self.members();
        let number = members.next;
        members.next += 1;
        let asked = CancellationToken::new();
        members.open.insert(number, asked.clone());
        drop(members);
        Member {
            crowd: self.clone(),
            number,
            asked,
        }
    }

    /// Asks the oldest one to end that has not been asked yet.
    pub(super) fn ask_the_oldest(&self) {
        let oldest = self.members().open.pop_first();
        if let Some((_, asked)) = oldest {
            asked.cancel();
        }
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of them; it leaves when it is dropped.
#[derive(Debug)]
pub(super) struct Member {
    crowd: Crowd,
    number: u64,
    asked: CancellationToken,
}

impl Member {
    /// Waits until it is asked to end.
    pub(super) fn asked(&self) -> WaitForCancellationFuture<'_> {
        self.asked.cancelled()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.crowd.members().open.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_asked_first_and_nobody_twice() {
        let crowd = Crowd::default();
        let [first, second, third] = [(); 3].map(|()| crowd.join());
        drop(second);
        let asked = || [&first, &third].map(|member| member.asked.is_cancelled());
        crowd.ask_the_oldest();
        assert_eq!(asked(), [true, false]);
        crowd.ask_the_oldest();
        assert_eq!(asked(), [true, true]);
        crowd.ask_the_oldest();
        let fresh = crowd.join();
        assert!(!fresh.asked.is_cancelled(), "nothing is left over for it");
        drop((first, third, fresh));
        assert!(crowd.members().open.is_empty());
    }
}
