//! What is shown of a run is written on a thread of its own: a reader that does not read may hold
//! up the command whose output it is, but neither its time-out nor an interrupt.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use cli_shell::CliError;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// With so many bytes on their way no more are asked for.
const FULL: usize = 256 * 1024;
/// What comes unasked beyond this is not shown: the last words of commands whose time was up while
/// nobody read.
const LOST: usize = 16 * 1024 * 1024;

/// Things to be shown, in the order in which they came.
#[derive(Debug)]
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    room: Notify,
    gone: CancellationToken,
}

#[derive(Debug)]
struct State<T> {
    waiting: VecDeque<(T, usize)>,
    bytes: usize,
    closed: bool,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                waiting: VecDeque::new(),
                bytes: 0,
                closed: false,
            }),
            changed: Condvar::new(),
            room: Notify::new(),
            gone: CancellationToken::new(),
        }
    }
}

/// What there is to do for the one who shows.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn<T> {
    /// To show this
    Show(T),
    /// Nothing came for a while
    Idle,
}

impl<T: Send> Queue<T> {
    /// Never waits.
    pub(super) fn put(&self, thing: T, bytes: usize) {
        let mut state = self.state();
        if self.gone.is_cancelled() || state.bytes.saturating_add(bytes) > LOST {
            return;
        }
        state.bytes += bytes;
        state.waiting.push_back((thing, bytes));
        drop(state);
        self.changed.notify_one();
    }

    /// Waits until more may come.
    pub(super) fn room(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(async {
            loop {
                let emptied = self.room.notified();
                if self.gone.is_cancelled() || self.state().bytes < FULL {
                    return;
                }
                emptied.await;
            }
        })
    }

    /// Waits until nobody will ever see anything again.
    pub(super) fn gone(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(self.gone.cancelled())
    }

    /// Does the work while another thread shows what is put here, and returns when all of it was
    /// shown or cannot be. A long silence is a turn of its own every `idle`.
    pub(super) fn shown<R>(
        &self,
        idle: Duration,
        mut show: impl FnMut(Turn<T>) -> ControlFlow<()> + Send,
        work: impl FnOnce() -> Result<R, CliError>,
    ) -> Result<R, CliError> {
        thread::scope(|scope| {
            let writer = move || {
                while let Some(turn) = self.next(idle) {
                    if show(turn).is_break() {
                        self.give_up();
                        return;
                    }
                }
            };
            let started = thread::Builder::new().spawn_scoped(scope, writer);
            started.map_err(|error| CliError::operation(error).because("cannot start a thread"))?;
            let _end = Closing(self);
            work()
        })
    }

    fn next(&self, idle: Duration) -> Option<Turn<T>> {
        let state = self.state();
        let quiet = |state: &mut State<T>| state.waiting.is_empty() && !state.closed;
        let waited = self.changed.wait_timeout_while(state, idle, quiet);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match state.waiting.pop_front() {
            Some((thing, bytes)) => {
                state.bytes -= bytes;
                drop(state);
                self.room.notify_waiters();
                Some(Turn::Show(thing))
            }
            None if state.closed => None,
            None => Some(Turn::Idle),
        }
    }

    fn give_up(&self) {
        let mut state = self.state();
        state.waiting.clear();
        state.bytes = 0;
        self.gone.cancel();
        drop(state);
        self.room.notify_waiters();
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the writer that nothing more comes, also when the work broke off.
struct Closing<'a, T: Send>(&'a Queue<T>);

impl<T: Send> Drop for Closing<'_, T> {
    fn drop(&mut self) {
        self.0.state().closed = true;
        self.0.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
    }

    #[test]
    fn everything_is_shown_in_order_before_the_work_is_over() {
        let queue = Queue::default();
        let mut seen = Vec::new();
        let show = |turn| {
            if let Turn::Show(number) = turn {
                seen.push(number);
            }
            ControlFlow::Continue(())
        };
        let work = || {
            runtime().block_on(async {
                for number in 0..1000 {
                    queue.room().await;
                    queue.put(number, FULL / 3);
                }
            });
            Ok(7)
        };
        assert_eq!(queue.shown(LONG, show, work).unwrap(), 7);
        assert_eq!(seen, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn a_reader_that_sleeps_leaves_no_room_and_stops_nobody() {
        let queue = Queue::default();
        let (wake, asleep) = mpsc::channel::<()>();
        let mut bytes = 0;
        let seen = &mut bytes;
        let show = move |turn| {
            asleep.recv().ok();
            if let Turn::Show(more) = turn {
                *seen += more;
            }
            ControlFlow::Continue(())
        };
        let work = || {
            let wake = wake;
            // One of them is in the hands of the reader.
            for _ in 0..3 {
                queue.put(FULL, FULL);
            }
            let room = runtime().block_on(async {
                tokio::select! {
                    biased;
                    () = queue.room() => true,
                    () = std::future::ready(()) => false,
                }
            });
            assert!(!room);
            // Beyond all bounds nothing is kept.
            queue.put(LOST, LOST);
            drop(wake);
            Ok(())
        };
        queue.shown(LONG, show, work).unwrap();
        assert_eq!(bytes, 3 * FULL);
    }

    #[test]
    fn where_nobody_reads_any_more_all_may_come_and_is_told_so() {
        let queue = Queue::default();
        let work = || {
            queue.put((), FULL * 2);
            runtime().block_on(async {
                queue.gone().await;
                queue.room().await;
            });
            queue.put((), FULL);
            Ok(())
        };
        let show = |_: Turn<()>| ControlFlow::Break(());
        queue.shown(LONG, show, work).unwrap();
        assert_eq!(queue.state().bytes, 0);
    }

    #[test]
    fn silence_is_a_turn() {
        let queue = Queue::<()>::default();
        let (told, idle) = mpsc::channel();
        let show = move |turn| {
            told.send(turn == Turn::Idle).ok();
            ControlFlow::Continue(())
        };
        let work = || Ok(idle.recv().unwrap());
        assert!(queue.shown(Duration::from_millis(1), show, work).unwrap());
    }
}
