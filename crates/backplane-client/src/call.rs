//! One operation in two halves without I/O: the request, and the reader of its answer.

use std::fmt;

use crate::error::ClientError;
use crate::refusal::{MAX_REFUSAL_BYTES, Refusal};
use crate::transport::{Answer, Body, Cancel, Fault, Method, Request, TransportError};

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

    /// Asks to be told why, should the provider refuse: the error then is
    /// [`ClientError::Refused`], if the provider says so in a form that is known.
    ///
    /// Only for calls that change something. Of a `GET` the status says all that can be acted on,
    /// so it stays as it is.
    #[must_use]
    pub fn asking_why(mut self) -> Self {
        if self.request.method != Method::Get {
            self.request.refusal_limit = MAX_REFUSAL_BYTES;
        }
        self
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
        self.refused(&answer)?;
        (self.read)(answer, cancel)
    }

    fn refused(&self, answer: &Answer) -> Result<(), ClientError> {
        let Body::Bytes(body) = &answer.body else {
            return Ok(());
        };
        if answer.status < 400 || body.len() > self.request.refusal_limit {
            return Ok(());
        }
        let refusal = Refusal::read(answer.status, body, &self.request.headers);
        refusal.map_or(Ok(()), |refusal| Err(ClientError::Refused(refusal)))
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
