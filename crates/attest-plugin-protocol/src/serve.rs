//! The whole life of a plugin over a reader and a writer.

use std::io::{self, BufRead, Write};

use crate::announcement::Announcement;
use crate::hook::Hook;
use crate::payload::Payload;
use crate::plugin::{PluginEvent, PluginSession, SendError};
use crate::verdict::Verdict;
use crate::violation::ProtocolError;

/// What makes a plugin: what it is, and how it judges.
pub trait Plugin {
    /// Reads the plugin's own configuration and says what it is.
    ///
    /// # Errors
    /// Why the plugin cannot work as it is configured; [`serve`] then answers nothing.
    fn hello(&mut self, attest_version: &str) -> Result<Announcement, String>;

    /// Judges one request.
    fn judge(&mut self, payload: &Payload) -> Verdict;
}

/// Why a plugin did not get to its `shutdown`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The plugin cannot work as it is configured.
    #[error("{0}")]
    Misconfigured(String),
    /// The core broke the protocol, or left without `shutdown`.
    #[error("{0}")]
    Protocol(ProtocolError),
    /// The plugin's own answer cannot be sent.
    #[error("{0}")]
    Send(SendError),
    /// Reading or writing failed.
    #[error("cannot read or write: {0}")]
    Io(io::Error),
}

impl ServeError {
    /// Returns the exit code by the convention of seed 10: 2 for a mistake in the configuration,
    /// else 1.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Misconfigured(_) => 2,
            Self::Protocol(_) | Self::Send(_) | Self::Io(_) => 1,
        }
    }
}

/// Serves one core until its `shutdown`.
///
/// Reads only as much as there is, and flushes after each answer.
///
/// # Errors
/// Why the plugin ends earlier. Write it to stderr and exit with
/// [`exit_code`](ServeError::exit_code).
pub fn serve(
    plugin: &mut impl Plugin,
    mut input: impl BufRead,
    mut output: impl Write,
) -> Result<(), ServeError> {
    let mut session = PluginSession::new();
    loop {
        let (length, received) = match input.fill_buf() {
            Ok([]) => (0, session.input_closed()),
            Ok(bytes) => (bytes.len(), session.receive(bytes)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(ServeError::Io(error)),
        };
        input.consume(length);
        received.map_err(ServeError::Protocol)?;
        while let Some(event) = session.poll_event() {
            if event == PluginEvent::Shutdown {
                return Ok(());
            }
            answer(plugin, &mut session, event)?;
            while let Some(line) = session.poll_transmit() {
                let written = output.write_all(&line).and_then(|()| output.flush());
                written.map_err(ServeError::Io)?;
            }
        }
    }
}

fn answer(
    plugin: &mut impl Plugin,
    session: &mut PluginSession,
    event: PluginEvent,
) -> Result<(), ServeError> {
    match event {
        PluginEvent::Hello { attest_version, .. } => {
            let announcement = plugin.hello(&attest_version);
            let announcement = announcement.map_err(ServeError::Misconfigured)?;
            // `judge` could not be asked about a hook that has no payload type.
            let unknown = |name: &&String| name.parse::<Hook>().is_err();
            if let Some(hook) = announcement.hooks.iter().find(unknown) {
                let problem = format!("`{hook}` is no hook of this version of the protocol");
                return Err(ServeError::Misconfigured(problem));
            }
            session.accept(announcement).map_err(ServeError::Send)
        }
        PluginEvent::Request { id, payload } => {
            let verdict = plugin.judge(&payload);
            session.verdict(id, &verdict).map_err(ServeError::Send)
        }
        PluginEvent::OtherRequest { .. } | PluginEvent::Unknown { .. } | PluginEvent::Shutdown => {
            Ok(())
        }
    }
}
