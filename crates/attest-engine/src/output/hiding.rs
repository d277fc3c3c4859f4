//! An observer that is told of nothing that is secret.

use std::pin::Pin;

use attest_receipt::receipt::StepResult;

use super::{Observer, Secrets, Stream};

/// Replaces the values of secrets in what is said to an observer in words. Outputs have had theirs
/// replaced on the way, since a value may come in pieces; names of steps never have one.
pub(crate) struct Hiding<'a> {
    inner: &'a dyn Observer,
    secrets: &'a Secrets,
}

impl<'a> Hiding<'a> {
    pub(crate) fn new(inner: &'a dyn Observer, secrets: &'a Secrets) -> Self {
        Self { inner, secrets }
    }
}

impl Observer for Hiding<'_> {
    fn started(&self, step: &str) {
        self.inner.started(step);
    }

    fn output(&self, step: &str, stream: Stream, bytes: &[u8]) {
        self.inner.output(step, stream, bytes);
    }

    fn ended(&self, result: &StepResult) {
        self.inner.ended(result);
    }

    fn skipped(&self, step: &str, why: &str) {
        self.inner.skipped(step, &self.secrets.replace(why));
    }

    fn warning(&self, message: &str) {
        self.inner.warning(&self.secrets.replace(message));
    }

    fn waiting(&self, message: &str) {
        self.inner.waiting(&self.secrets.replace(message));
    }

    fn room(&self, stream: Stream) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        self.inner.room(stream)
    }

    fn gone(&self, stream: Stream) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        self.inner.gone(stream)
    }
}
