//! One WebSocket of a slot: whole messages in, frames out, and an end that does
//! not lose the last frame.

use std::time::Duration;

use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use gate_link::{CLOSE_TOO_LARGE, MAX_MESSAGE_BYTES};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::CapacityError;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data as OpData, OpCode};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Error, Message, Utf8Bytes};

/// Small: most messages are, and there may be 256 slots.
const READ_BUFFER_BYTES: usize = 8 * 1024;
/// How long the peer's last words are read before the connection is dropped. A
/// socket closed over unread data is reset, and a reset can overtake what we
/// wrote last.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// What came in.
#[derive(Debug)]
pub(super) enum Incoming {
    /// A text message.
    Text(Utf8Bytes),
    /// A message that is no text, or whose text is not UTF-8.
    NotText,
    /// A message beyond the limit.
    TooLarge,
    /// The peer closed, or the connection broke.
    Gone,
}

/// The socket.
#[derive(Debug)]
pub(super) struct Wire {
    socket: WebSocketStream<TokioIo<Upgraded>>,
    /// What [`Wire::has_arrived`] found.
    early: Option<Incoming>,
}

impl Wire {
    pub(super) async fn new(upgraded: Upgraded) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .write_buffer_size(0)
            .max_message_size(Some(MAX_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_MESSAGE_BYTES));
        let stream = TokioIo::new(upgraded);
        let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
        Self {
            socket,
            early: None,
        }
    }

    /// Whether a message or the end has come in already; [`Wire::receive`] then has it at
    /// once.
    pub(super) fn has_arrived(&mut self) -> bool {
        if self.early.is_none() {
            self.early = self.read().now_or_never();
        }
        self.early.is_some()
    }

    /// The next message. Pings are answered on the way. Cancel safe.
    pub(super) async fn receive(&mut self) -> Incoming {
        match self.early.take() {
            Some(early) => early,
            None => self.read().await,
        }
    }

    async fn read(&mut self) -> Incoming {
        loop {
            return match self.socket.next().await {
                Some(Ok(Message::Text(text))) => Incoming::Text(text),
                Some(Ok(Message::Binary(_))) | Some(Err(Error::Utf8(_))) => Incoming::NotText,
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
                Some(Err(Error::Capacity(CapacityError::MessageTooLong { .. }))) => {
                    Incoming::TooLarge
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => Incoming::Gone,
            };
        }
    }

    /// Sends a frame; false if the peer is gone. A peer that does not read is
    /// dropped by the stream below.
    pub(super) async fn send(&mut self, frame: Vec<u8>) -> bool {
        match Utf8Bytes::try_from(Bytes::from(frame)) {
            Ok(text) if matches!(self.early, Some(Incoming::Gone)) => self.write(&[text]).await,
            Ok(text) => self.socket.send(Message::Text(text)).await.is_ok(),
            Err(_) => false,
        }
    }

    /// Sends two frames in one write.
    pub(super) async fn send_both(&mut self, first: Vec<u8>, second: Vec<u8>) -> bool {
        let texts = [first, second].map(|frame| Utf8Bytes::try_from(Bytes::from(frame)));
        match texts {
            [Ok(first), Ok(second)] => self.write(&[first, second]).await,
            _ => false,
        }
    }

    /// Writes frames past the library, which never holds any back: several at once, or what a
    /// peer that has closed still waits for. RFC 6455 section 5.5.1 lets that come before the
    /// answer to the Close frame; the library does not.
    async fn write(&mut self, texts: &[Utf8Bytes]) -> bool {
        let mut bytes = Vec::new();
        let formatted = texts.iter().all(|text| {
            let frame = Frame::message(text.clone(), OpCode::Data(OpData::Text), true);
            frame.format(&mut bytes).is_ok()
        });
        let stream = self.socket.get_mut();
        formatted && stream.write_all(&bytes).await.is_ok() && stream.flush().await.is_ok()
    }

    /// Answers the peer's closing handshake, if that is how it went, and ends.
    pub(super) async fn gone(mut self) {
        // The library holds the answer ready; either fails only if the peer is gone.
        let answer = async {
            drop(self.socket.flush().await);
            drop(self.socket.into_inner().shutdown().await);
        };
        drop(tokio::time::timeout(LAST_WORDS, answer).await);
    }

    /// Says that the last message was too large, and ends.
    pub(super) async fn too_large(mut self) {
        self.close(CloseCode::from(CLOSE_TOO_LARGE), "message too large")
            .await;
        self.drop_gently().await;
    }

    /// Says that the Gate stops, and ends.
    pub(super) async fn going_away(mut self) {
        self.close(CloseCode::Away, "").await;
        self.drop_gently().await;
    }

    /// Ends without a closing handshake, after the peer had time to read.
    pub(super) async fn drop_gently(self) {
        let mut stream = self.socket.into_inner();
        let last_words = async {
            // Either fails only if the peer is gone already.
            if stream.shutdown().await.is_ok() {
                let mut unread = [0; 4096];
                while matches!(stream.read(&mut unread).await, Ok(1..)) {}
            }
        };
        drop(tokio::time::timeout(LAST_WORDS, last_words).await);
    }

    async fn close(&mut self, code: CloseCode, reason: &'static str) {
        let frame = CloseFrame {
            code,
            reason: Utf8Bytes::from_static(reason),
        };
        // If the peer is gone there is nobody to tell.
        drop(self.socket.send(Message::Close(Some(frame))).await);
    }
}
