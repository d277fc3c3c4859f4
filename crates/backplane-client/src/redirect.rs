//! Which redirects a transport may follow: few, of a GET, within the origin, never in a circle.

use url::Url;

use crate::address::LONGEST_URL;
use crate::transport::{Fault, Method, Request, TransportError};

/// How many redirects one request may take.
pub const MOST_REDIRECTS: usize = 5;

/// The redirects of one request. As the origin stays the same, credentials may stay too.
#[derive(Debug, Clone)]
pub struct Redirects {
    method: Method,
    /// Where the request has been, the present place last.
    been: Vec<Url>,
}

impl Redirects {
    /// Starts where a request is sent first.
    pub fn of(request: &Request) -> Result<Self, TransportError> {
        let start = Url::parse(request.url()).map_err(|_| refused("the request has no URL"))?;
        Ok(Self {
            method: request.method(),
            been: vec![start],
        })
    }

    /// Returns where to go on for a status and its `Location`, or why it is not followed.
    ///
    /// The refusal never quotes the location, which is the provider's text.
    pub fn follow(&mut self, status: u16, location: &str) -> Result<String, TransportError> {
        if self.method != Method::Get || !matches!(status, 301 | 302 | 303 | 307 | 308) {
            return Err(refused("the answer redirects what cannot be redirected"));
        }
        if self.been.len() > MOST_REDIRECTS {
            return Err(refused("the provider redirects too often"));
        }
        let next = self.next(location)?;
        if self.been.contains(&next) {
            return Err(refused("the provider redirects in a circle"));
        }
        let text = next.as_str().to_owned();
        self.been.push(next);
        Ok(text)
    }

    fn next(&self, location: &str) -> Result<Url, TransportError> {
        let unusable = || refused("the provider redirects to no usable URL");
        let here = self.been.last().ok_or_else(unusable)?;
        if location.is_empty() || location.len() > LONGEST_URL {
            return Err(unusable());
        }
        let mut next = here.join(location).map_err(|_| unusable())?;
        // Two opaque origins, such as those of files, are never the same.
        if next.origin() != here.origin() {
            return Err(refused("the provider redirects to another origin"));
        }
        if !next.username().is_empty() || next.password().is_some() {
            return Err(unusable());
        }
        next.set_fragment(None);
        Ok(next)
    }
}

fn refused(message: &str) -> TransportError {
    TransportError::new(Fault::Redirect, message)
}
