//! The only place where a process starts: explicit, bounded, reaped to the last descendant.
//!
//! A program gets the argument vector, environment, working directory and stdin that its
//! [`Spec`] names, and nothing else of the host: no variable, no descriptor from 3 up, no ignored
//! or blocked signal. It runs in a process group of its own. When its end is told, everything
//! that it started and that can be found is gone.
//!
//! The crate never decides what a program's output or exit code means, keeps no state between
//! programs but the numbers of those that run, starts no thread, and never forks: each start is a `posix_spawn`, whose cost does not
//! grow with the host's memory.
//!
//! # Two ways to start
//!
//! | | [`spawn`], [`capture`] | [`spawn_direct`], [`capture_direct`] |
//! |---|---|---|
//! | for | plugins, checks, agents | short calls of trusted programs (git) |
//! | between host and program | a wrapper process | nothing |
//! | reaches | all descendants, also in other groups and sessions, also when the host is killed | the process group |
//! | costs above a bare start | the start of one more small process | next to nothing |
//!
//! Where there is no child subreaper (systems other than Linux, or with `--cfg portable_process`)
//! the first way is the second.
//!
//! # The wrapper
//!
//! The host executes its own file again ([`Wrapper::current_exe`]) with a hidden first argument;
//! [`run_wrapper_if_asked`], the first line of every `main`, takes it from there. The wrapper's
//! environment is the program's, its descriptor 0 is a socket to the host, its 1 and 2 are the
//! program's until that runs and `/dev/null` from then on, so that the host sees when the program
//! closes its own. It has one thread.
//!
//! ```text
//! host                          wrapper                                program
//!  │ socketpair, pipes             │                                      │
//!  │ stdin of the program ────────►│ (SCM_RIGHTS, before the start)       │
//!  │ posix_spawn ─────────────────►│ becomes child subreaper              │
//!  │                               │ descriptors ≥ 3: close-on-exec       │
//!  │                               │ signals: default, unblocked          │
//!  │                               │ posix_spawn ────────────────────────►│ own process group
//!  │◄── refused(errno) ────────────│ or                                   │
//!  │◄── started(pid, pidfd) ───────│                                      │
//!  │ ask(signal) ─────────────────►│ ── signal to the group ─────────────►│
//!  │ cancel(signal?, grace) ──────►│ ── signal to the group, wait ───────►│
//!  │ end of file: host is gone ───►│ ── SIGKILL to all ──────────────────►│
//!  │◄── ended(status, leftovers) ──│ everything is reaped                 │
//!  │ reaps the wrapper             │ exits                                │
//! ```
//!
//! The wrapper's states:
//!
//! ```text
//! starting ─► running ─ program ended ─► settling ─┐
//!    │           ├───── cancel ────────► asking ───┼─► killing ─► ended
//!    │           └───── host gone ─────────────────┘
//!    └─► refused
//! ```
//!
//! - *running*: reaps every child, so orphans of a long program never pile up. SIGTERM, SIGINT,
//!   SIGHUP and SIGQUIT to the wrapper are ignored: they are the host's business.
//! - *settling*: without children left (ECHILD) it is over at once. Otherwise all descriptors of
//!   all descendants are searched for the program's stdout and stderr. A holder gets 100 ms to end
//!   by itself; one that stays makes the end [`Outlived::HeldOutput`], unless the policy is
//!   [`Leftovers::KillAndWarn`].
//! - *killing*: looks through `/proc` and kills each descendant as it is seen, through a pidfd
//!   whose process was compared by start time; again every 5 ms or at each death, until no child
//!   is left, for at most 400 ms. What still lives then is [`Outlived::Survived`].
//!
//! # The cancel ladder
//!
//! [`Child::cancel`] takes less than a second, whatever the program does:
//!
//! 1. the signal of [`Ladder::ask`], if any, to the program's group, and its grace (≤ 250 ms);
//! 2. SIGKILL to every descendant until none is left (≤ 400 ms, by the wrapper);
//! 3. if the wrapper says nothing 500 ms after the grace: the host kills what it finds below the
//!    wrapper, then the wrapper (≤ 150 ms).
//!
//! A protocol's own "please stop" comes before all that and is the caller's; so is a longer wait
//! after a signal, for which [`Child::ask`] sends one and does nothing else. Like all signals it
//! goes through the wrapper, which has not reaped the program as long as it sends, so that no
//! stranger with the same number is hit. Dropping a [`Child`]
//! is step 2 alone.
//!
//! A wrapper that is killed by somebody else is [`WaitError::WrapperLost`]; the host then stops
//! the program, its group and its descendants, and kills them once all stand still. What had
//! already left the program's tree and was adopted by the wrapper is found only by a host that
//! called [`adopt_orphans`]; the error says which of the two it was. A wrapper that was about to
//! start the program counts as one that did.
//!
//! # Limits of the promise
//!
//! This is clean-up after trusted programs of the same user, no containment: a program that is
//! determined to escape can (by killing the wrapper first, or by being faster for 400 ms). The
//! kernel must be Linux 5.11 or newer, with `/proc` mounted.

mod capture;
mod child;
mod error;
mod forget;
mod group;
#[cfg(all(target_os = "linux", not(portable_process)))]
mod linux;
mod own;
mod program;
mod spec;
mod wrapper;

pub use capture::{Capture, Captured, OnLimit, capture, capture_direct};
pub use child::{Child, ChildStdin, spawn, spawn_direct};
pub use error::{CaptureError, Rest, StartError, WaitError};
pub use forget::forget_variable;
pub use own::adopt_orphans;
pub use spec::{Exit, Ladder, Leftovers, Outlived, Signal, Spec, Status, Stdin};
pub use wrapper::{Wrapper, run_wrapper_if_asked};
