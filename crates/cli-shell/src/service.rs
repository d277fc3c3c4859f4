//! What a service manager hands over and wants to hear: listening sockets (`LISTEN_FDS`) and
//! readiness (`NOTIFY_SOCKET`), as systemd defines both. Without one nothing happens.

use std::io;
use std::net::TcpListener;

use listenfd::ListenFd;
use sd_notify::NotifyState;
use thiserror::Error;

use crate::env;

/// Why what the service manager passed cannot be used.
#[derive(Debug, Error)]
pub enum PassedSocketError {
    /// One socket is wanted.
    #[error("the service manager passed {0} sockets, says `LISTEN_FDS`, and one is wanted")]
    Many(String),
    /// The descriptor is no TCP socket that listens.
    #[error("the descriptor that the service manager passed is no listening TCP socket")]
    Unusable(#[source] io::Error),
}

/// Takes the listening TCP socket that was passed to this process, if one was.
///
/// Call it before any thread starts: the variables are removed from the environment.
///
/// # Errors
/// Something else was passed.
pub fn listener() -> Result<Option<TcpListener>, PassedSocketError> {
    // Variables that are meant for another process, or for nobody, were inherited by accident.
    let own = std::process::id().to_string();
    if env::var("LISTEN_PID").ok().flatten() != Some(own) {
        return Ok(None);
    }
    match env::var("LISTEN_FDS").ok().flatten().as_deref() {
        None | Some("0") => return Ok(None),
        Some("1") => {}
        Some(other) => return Err(PassedSocketError::Many(crate::visible(other))),
    }
    let listener = ListenFd::from_env()
        .take_tcp_listener(0)
        .map_err(PassedSocketError::Unusable)?;
    if let Some(listener) = &listener {
        let listens = rustix::net::sockopt::socket_acceptconn(listener)
            .map_err(|errno| PassedSocketError::Unusable(errno.into()))?;
        if !listens {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "it does not listen");
            return Err(PassedSocketError::Unusable(source));
        }
        listener
            .set_nonblocking(true)
            .map_err(PassedSocketError::Unusable)?;
    }
    Ok(listener)
}

/// Says that the start is over and work is taken.
pub fn ready() {
    tell(NotifyState::Ready);
}

/// Says that the end has begun.
pub fn stopping() {
    tell(NotifyState::Stopping);
}

fn tell(state: NotifyState<'_>) {
    // A manager that does not listen ends the service by its own deadline; the service goes on.
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!(%error, "the service manager cannot be told");
    }
}
