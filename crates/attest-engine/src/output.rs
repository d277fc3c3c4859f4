//! What a step writes: shown as it comes, kept within bounds, secrets replaced.

mod hiding;
mod record;
mod secrets;

use std::pin::Pin;

use attest_receipt::receipt::StepResult;

pub(crate) use hiding::Hiding;
pub use record::{Keeper, RECEIPT, Record, Recorded, fit, recorded_tail};
pub use secrets::{Redactor, SHORTEST, Secrets};

/// One of the two outputs of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stream {
    /// Standard output
    Out,
    /// Standard error
    Err,
}

/// Who watches a run. Everything that comes here has its secrets replaced already, and none of it
/// is safe to show on a terminal as it is. Who writes to something that may be slow does so on a
/// thread of its own: while a call lasts, no time-out and no interrupt is heard.
pub trait Observer {
    /// A step's command is about to start.
    fn started(&self, _step: &str) {}
    /// A step's command wrote something; it may end in the middle of a line or character.
    fn output(&self, _step: &str, _stream: Stream, _bytes: &[u8]) {}
    /// A step has its result, from its command or from the cache.
    fn ended(&self, _result: &StepResult) {}
    /// A step will not run, because of another one or because the run was stopped.
    fn skipped(&self, _step: &str, _why: &str) {}
    /// Something that the user should know, and that stops nothing.
    fn warning(&self, _message: &str) {}
    /// What the run is waiting for.
    fn waiting(&self, _message: &str) {}
    /// Waits until more of a stream can be taken. Nothing is read from a command meanwhile, so that
    /// it waits as if it wrote to the slow reader itself.
    fn room(&self, _stream: Stream) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(std::future::ready(()))
    }
    /// Waits until nobody will ever read a stream again. The command's end of it is closed then, so
    /// that it learns of that as if it wrote there itself.
    fn gone(&self, _stream: Stream) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(std::future::pending())
    }
}

/// Nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}
