//! One operation in two halves without I/O: the request, and the reader of its answer.

use std::fmt;

use crate::error::ClientError;
use crate::transport::{Answer, Cancel, Fault, Request, TransportError};

/// Turns an answer into what the operation gives.
type Reader<T> = Box<dyn FnOnce(Answer, &dyn Cancel) -> Result<T, ClientError> + Send>;

/// An operation that is yet to be carried out.
pub struct Call<T> {
    request: Request,
    read: Reader<T>,
}

impl<T> Call<T> {
    pub(crate) fn new(
        request: Request,
        read: impl FnOnce(Answer, &dyn Cancel) -> Result<T, ClientError> + Send + 'static,
    ) -> Self {
        let read = Box::new(read);
        Self { request, read }
    }

    /// Returns what to send.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Reads what the transport brought. A cancelled caller gets nothing of it.
    pub fn finish(
        self,
        answer: Result<Answer, TransportError>,
        cancel: &dyn Cancel,
    ) -> Result<T, ClientError> {
        let answer = answer.map_err(|error| match error.fault() {
            Fault::Cancelled => ClientError::Cancelled,
            _ => ClientError::Transport(error),
        })?;
        go_on(cancel)?;
        (self.read)(answer, cancel)
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

/// Stops where the caller has cancelled.
pub(crate) fn go_on(cancel: &dyn Cancel) -> Result<(), ClientError> {
    if cancel.is_cancelled() {
        return Err(ClientError::Cancelled);
    }
    Ok(())
}
