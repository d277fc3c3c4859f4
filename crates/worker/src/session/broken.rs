//! Why a connection ended, and how it is closed then.

use forge_domain::DomainError;
use gate_link::LinkError;

use super::{ACK_TIMEOUT, SILENCE};
use crate::link::{Closing, LinkDown};

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    /// The Worker drains and the slot was idle.
    #[error("the Worker is draining")]
    Drained,
    /// The Worker was told to kill what runs.
    #[error("the Worker is being killed")]
    Killed,
    /// The connection is gone.
    #[error("the connection is gone")]
    Down(#[source] LinkDown),
    /// The Worker drains, and the Gate closed before it acknowledged the last result.
    #[error("the connection ended before the Gate acknowledged the last result")]
    Unsure(#[source] LinkDown),
    /// The Gate said something that has no place here, or refused what was sent.
    #[error("the conversation with the Gate failed")]
    Surprise(#[source] LinkError),
    /// The Gate said something while a job was running.
    #[error("the Gate sent a message that nothing waited for")]
    Unexpected,
    /// The records break a rule of the link; nothing was sent.
    #[error("the evidence cannot be sent")]
    Evidence(#[source] DomainError),
    /// The lease could not be renewed in time.
    #[error("the lease could not be renewed in time")]
    LeaseLost,
    /// A Gate with job control has sent no ping for too long.
    #[error("the Gate was silent for {} s", SILENCE.as_secs())]
    Silent,
    /// The Gate left something unanswered, or takes no more bytes.
    #[error("the Gate answered nothing for {} s", ACK_TIMEOUT.as_secs())]
    NoAck,
}

impl From<LinkDown> for Broken {
    fn from(down: LinkDown) -> Self {
        Self::Down(down)
    }
}

impl From<LinkError> for Broken {
    fn from(error: LinkError) -> Self {
        Self::Surprise(error)
    }
}

impl Broken {
    /// What the Gate is told of it.
    pub(super) const fn closing(&self) -> Closing {
        match self {
            Self::Drained
            | Self::Unsure(_)
            | Self::Surprise(LinkError::Refused)
            | Self::Killed
            | Self::Silent
            | Self::LeaseLost => Closing::Drop,
            Self::Surprise(_) | Self::Unexpected | Self::NoAck | Self::Evidence(_) => {
                Closing::Protocol
            }
            Self::Down(LinkDown::TooBig) => Closing::TooBig,
            Self::Down(LinkDown::Binary) => Closing::Protocol,
            Self::Down(_) => Closing::Drop,
        }
    }

    /// Whether a result that was being delivered will not be taken at another time either: the
    /// Gate has refused it, or it cannot be sent.
    pub(super) const fn is_final(&self) -> bool {
        matches!(
            self,
            Self::Surprise(LinkError::Refused | LinkError::TooLarge { .. }) | Self::Evidence(_)
        )
    }
}
