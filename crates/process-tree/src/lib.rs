//! The only place where a process starts: explicit, bounded, reaped to the last descendant.

mod capture;
mod child;
mod error;
mod group;
#[cfg(all(target_os = "linux", not(portable_process)))]
mod linux;
mod program;
mod spec;
mod wrapper;

pub use capture::{Capture, Captured, OnLimit, capture, capture_direct};
pub use child::{Child, ChildStdin, spawn, spawn_direct};
pub use error::{CaptureError, StartError, WaitError};
pub use spec::{Exit, Ladder, Leftovers, Outlived, Signal, Spec, Status, Stdin};
pub use wrapper::{Wrapper, run_wrapper_if_asked};
