//! What a handler knows of its session, and the one way in which it may speak meanwhile.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forge_plugin_protocol::{
    Capability, FailureCategory, Outcome, PROGRESS_TEXT_BYTES, PluginSession, ProgressText,
    SendError, Stage,
};

use crate::Cancel;

/// A running session, as its handler sees it. Clones speak for the same session.
#[derive(Clone)]
pub struct Context {
    selected: Arc<[Capability]>,
    cancel: Cancel,
    channel: Option<Arc<Channel>>,
}

impl Context {
    pub(crate) fn new(selected: Arc<[Capability]>, cancel: Cancel, channel: Arc<Channel>) -> Self {
        Self {
            selected,
            cancel,
            channel: Some(channel),
        }
    }

    /// Makes a context without a host and without any capability, to call a handler in a test.
    #[must_use]
    pub fn detached() -> Self {
        Self {
            selected: Arc::default(),
            cancel: Cancel::new(),
            channel: None,
        }
    }

    /// Makes a context without a host in which these capabilities count as selected.
    #[must_use]
    pub fn detached_with(selected: impl IntoIterator<Item = Capability>) -> Self {
        Self {
            selected: selected.into_iter().collect(),
            ..Self::detached()
        }
    }

    /// Whether the session has this capability.
    #[must_use]
    pub fn selected(&self, capability: Capability) -> bool {
        self.selected.contains(&capability)
    }

    /// The token that is raised when the host wants the operation to stop.
    #[must_use]
    pub const fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Tells the host how far the work is; the text is cut after 1,024 bytes.
    ///
    /// Frames from several threads are written one after the other. Nothing is sent, and `false`
    /// returned, if progress was not negotiated, after 128 frames, after the result, and when the
    /// host no longer reads.
    #[expect(
        clippy::must_use_candidate,
        reason = "progress is advice; whether it was sent seldom matters"
    )]
    pub fn progress(&self, stage: Stage, text: &str) -> bool {
        self.channel
            .as_ref()
            .is_some_and(|channel| channel.progress(stage, text))
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            selected,
            cancel,
            channel,
        } = self;
        formatter
            .debug_struct("Context")
            .field("selected", selected)
            .field("cancel", cancel)
            .field("attached", &channel.is_some())
            .finish()
    }
}

/// The session and the output under one lock: what is decided is written before the next decision.
pub(crate) struct Channel(Mutex<Writer>);

pub(crate) struct Writer {
    pub(crate) session: PluginSession,
    /// The host has sent `cancel`.
    pub(crate) cancelled: bool,
    output: Box<dyn Write + Send>,
}

impl Channel {
    pub(crate) fn new(session: PluginSession, output: Box<dyn Write + Send>) -> Self {
        Self(Mutex::new(Writer {
            session,
            cancelled: false,
            output,
        }))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Writer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn progress(&self, stage: Stage, text: &str) -> bool {
        let Ok(text) = ProgressText::new(cut(text, PROGRESS_TEXT_BYTES)) else {
            return false;
        };
        let mut writer = self.lock();
        writer.session.progress(stage, text).is_ok() && writer.flush().is_ok()
    }
}

impl Writer {
    /// Sends the terminal frame of a success.
    pub(crate) fn succeed(&mut self, outcome: &Outcome) -> Result<(), SendOrWrite> {
        self.session.succeed(outcome)?;
        Ok(self.flush()?)
    }

    /// Sends the terminal frame of a failure.
    pub(crate) fn fail(&mut self, category: FailureCategory) -> Result<(), SendOrWrite> {
        self.session.fail(category)?;
        Ok(self.flush()?)
    }

    /// Writes what the session has to say.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        flush(&mut self.session, &mut self.output)
    }
}

/// Why a terminal frame did not get out.
pub(crate) enum SendOrWrite {
    Send(SendError),
    Write(io::Error),
}

impl From<SendError> for SendOrWrite {
    fn from(error: SendError) -> Self {
        Self::Send(error)
    }
}

impl From<io::Error> for SendOrWrite {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

/// Returns the longest beginning of at most so many bytes that splits no character.
fn cut(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or_default()).unwrap_or_default()
}

/// Writes what a session has to say.
pub(crate) fn flush(session: &mut PluginSession, output: &mut dyn Write) -> io::Result<()> {
    let mut written = false;
    while let Some(frame) = session.poll_transmit() {
        output.write_all(&frame)?;
        written = true;
    }
    if written { output.flush() } else { Ok(()) }
}
