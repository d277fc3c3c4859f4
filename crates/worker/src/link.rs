//! What a session needs of a connection, so that it can be tested without one.

use std::future::Future;
use std::time::Duration;

use gate_link::ConnectQuery;

/// What arrived.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    /// A text message.
    Message(Vec<u8>),
    /// The answer to a ping with this number.
    Pong(u64),
}

/// How a link is told that it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closing {
    /// The peer broke a rule.
    Protocol,
    /// The peer's message was over the limit.
    TooBig,
    /// At once, without a handshake.
    Drop,
}

/// Why a connection is of no more use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkDown {
    /// The Gate closed it.
    #[error("the Gate closed the connection ({0})")]
    Closed(String),
    /// A message was longer than the protocol allows.
    #[error(
        "the Gate sent a message of more than {} bytes",
        gate_link::MAX_MESSAGE_BYTES
    )]
    TooBig,
    /// A binary message, which the protocol does not have.
    #[error("the Gate sent a binary message")]
    Binary,
    /// Anything else.
    #[error("the connection failed: {0}")]
    Failed(String),
}

/// Why no connection came about.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    /// The Gate does not know the token, the id or the slot.
    #[error("the Gate refused token, id or slot (401)")]
    Unauthorized,
    /// Another connection holds the slot.
    #[error("the Gate says that the slot is taken (409); another Worker may run under this id")]
    SlotTaken,
    /// The Gate answered with another status.
    #[error("the Gate answered {0} instead of opening a WebSocket")]
    Status(u16),
    /// The handshake took too long.
    #[error("no connection within {} s", .0.as_secs())]
    Timeout(Duration),
    /// Address, TCP, TLS or WebSocket failed.
    #[error("{0}")]
    Failed(String),
}

/// One open connection. `receive` may be dropped at any time without losing a message.
pub(crate) trait Link: Send {
    /// Waits for the next message or pong.
    fn receive(&mut self) -> impl Future<Output = Result<Incoming, LinkDown>> + Send;
    /// Sends one text message.
    fn send(&mut self, frame: Vec<u8>) -> impl Future<Output = Result<(), LinkDown>> + Send;
    /// Says that the Worker goes away and sends nothing more, in one piece with the last
    /// message if there is one. What the Gate still sends can be received.
    fn send_last(
        &mut self,
        frame: Option<Vec<u8>>,
    ) -> impl Future<Output = Result<(), LinkDown>> + Send;
    /// Sends a ping with a number that its pong brings back.
    fn ping(&mut self, number: u64) -> impl Future<Output = Result<(), LinkDown>> + Send;
    /// Says how long sent bytes may stay unacknowledged by the peer's machine.
    fn set_write_patience(&self, patience: Duration);
    /// Ends the connection, within a fraction of a second.
    fn close(&mut self, closing: Closing) -> impl Future<Output = ()> + Send;
}

/// Opens connections.
pub(crate) trait Connect: Send + Sync + 'static {
    /// What a connection is.
    type Link: Link;
    /// Opens one for a slot.
    fn connect(
        &self,
        query: &ConnectQuery,
    ) -> impl Future<Output = Result<Self::Link, ConnectError>> + Send;
}
