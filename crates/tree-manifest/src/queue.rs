//! What is still to do, shared by the threads that do it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Two stacks of tasks: what can be ended at once, and what will bring more.
///
/// The second is touched only where the first is empty, and the newest goes first in both: so a walk
/// goes deep, closes folders early, and keeps few names waiting.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    tasks: Vec<T>,
    later: Vec<T>,
    /// Tasks that were taken and may still add others.
    running: usize,
    stopped: bool,
}

/// A task that counts as running until this is dropped.
#[derive(Debug)]
pub(crate) struct Running<'a, T>(&'a Queue<T>);

impl<T> Queue<T> {
    pub(crate) fn new(tasks: Vec<T>) -> Self {
        Self {
            state: Mutex::new(State {
                tasks: Vec::new(),
                later: tasks,
                running: 0,
                stopped: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// Takes a task, waiting while a running one may still add some; `None` when all is done.
    pub(crate) fn take(&self) -> Option<(T, Running<'_, T>)> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return None;
            }
            if let Some(task) = state.tasks.pop().or_else(|| state.later.pop()) {
                state.running += 1;
                return Some((task, Running(self)));
            }
            if state.running == 0 {
                return None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Adds tasks that go before all that wait.
    pub(crate) fn add(&self, tasks: impl IntoIterator<Item = T>) {
        self.lock().tasks.extend(tasks);
        self.changed.notify_all();
    }

    /// Adds tasks that wait until the others are taken.
    pub(crate) fn add_later(&self, tasks: impl IntoIterator<Item = T>) {
        self.lock().later.extend(tasks);
        self.changed.notify_all();
    }

    /// Tells how many tasks wait.
    pub(crate) fn len(&self) -> usize {
        let state = self.lock();
        state.tasks.len() + state.later.len()
    }

    /// Lets every thread end after the task it is at.
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Drop for Running<'_, T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.running -= 1;
        if state.running == 0 {
            self.0.changed.notify_all();
        }
    }
}
