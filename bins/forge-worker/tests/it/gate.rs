//! A Gate that does what the test says: it accepts a slot, sends texts and reads answers.
#![expect(clippy::result_large_err, reason = "the WebSocket library's own type")]

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// Nothing here takes this long but on a machine that stands still.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) const JOB: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
pub(crate) const ATTEMPT: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

pub(crate) struct Gate {
    listener: TcpListener,
}

impl Gate {
    pub(crate) async fn new() -> Self {
        Self::on(0).await
    }

    pub(crate) async fn on(port: u16) -> Self {
        Self {
            listener: TcpListener::bind(("127.0.0.1", port)).await.unwrap(),
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.listener.local_addr().unwrap().port()
    }

    pub(crate) fn url(&self) -> String {
        format!("ws://127.0.0.1:{}/whatever/path", self.port())
    }

    pub(crate) async fn stream(&self) -> tokio::net::TcpStream {
        timeout(LONG, self.listener.accept())
            .await
            .expect("the Worker connects")
            .unwrap()
            .0
    }

    /// The next connection of the Worker.
    pub(crate) async fn accept(&self) -> Slot<tokio::net::TcpStream> {
        Slot::open(self.stream().await).await
    }

    /// Refuses the next connection with a status.
    pub(crate) async fn refuse(&self, status: u16) {
        let stream = self.stream().await;
        let refuse = |_: &Request, _: Response| -> Result<Response, ErrorResponse> {
            let mut response = ErrorResponse::new(Some("refused".to_owned()));
            *response.status_mut() = status.try_into().unwrap();
            Err(response)
        };
        tokio_tungstenite::accept_hdr_async(stream, refuse)
            .await
            .unwrap_err();
    }
}

/// One connection of one slot, seen from the Gate.
pub(crate) struct Slot<S> {
    pub(crate) socket: WebSocketStream<S>,
    pub(crate) target: String,
    pub(crate) authorization: String,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Slot<S> {
    pub(crate) async fn open(stream: S) -> Self {
        let mut target = String::new();
        let mut authorization = String::new();
        let look = |request: &Request, response: Response| {
            target = request.uri().to_string();
            let header = request.headers().get("authorization");
            header
                .map(|value| value.to_str().unwrap())
                .unwrap_or_default()
                .clone_into(&mut authorization);
            Ok(response)
        };
        let socket = timeout(LONG, tokio_tungstenite::accept_hdr_async(stream, look)).await;
        Self {
            socket: socket.unwrap().unwrap(),
            target,
            authorization,
        }
    }

    pub(crate) async fn say(&mut self, text: impl Into<String>) {
        self.socket
            .send(Message::Text(text.into().into()))
            .await
            .unwrap();
    }

    /// Writes nothing before something is said, or flushed.
    pub(crate) async fn feed(&mut self, text: impl Into<String>) {
        self.socket
            .feed(Message::Text(text.into().into()))
            .await
            .unwrap();
    }

    pub(crate) async fn flush(&mut self) {
        self.socket.flush().await.unwrap();
    }

    pub(crate) async fn ack(&mut self) {
        self.say(message("ack", "")).await;
    }

    /// The next message, whatever it is; pings are answered on the way.
    pub(crate) async fn next(&mut self) -> Option<Message> {
        loop {
            match timeout(LONG, self.socket.next())
                .await
                .expect("the Worker says something")
            {
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(message)) => return Some(message),
                Some(Err(_)) | None => return None,
            }
        }
    }

    pub(crate) async fn text(&mut self) -> String {
        match self.next().await {
            Some(Message::Text(text)) => text.to_string(),
            other => panic!("expected a text message, got {other:?}"),
        }
    }

    /// The next text that is no heartbeat.
    pub(crate) async fn answer(&mut self) -> String {
        loop {
            let text = self.text().await;
            if text != heartbeat() {
                return text;
            }
        }
    }

    /// Sends a lease, stores evidence until there is a result, and acknowledges it.
    pub(crate) async fn run(&mut self, lease: String) -> (Vec<serde_json::Value>, String) {
        self.say(lease).await;
        let mut evidence = Vec::new();
        loop {
            let answer = self.answer().await;
            self.ack().await;
            if !answer.contains("\"type\":\"evidence\"") {
                return (evidence, answer);
            }
            assert!(answer.ends_with("}]}\n"), "{answer}");
            let parsed: serde_json::Value = serde_json::from_str(&answer).unwrap();
            evidence.extend(parsed["evidence"].as_array().unwrap().iter().cloned());
        }
    }

    /// Waits for the end of the connection, past heartbeats; returns the close code if one came.
    pub(crate) async fn ended(&mut self) -> Option<u16> {
        loop {
            match self.next().await {
                None => return None,
                Some(Message::Close(frame)) => return frame.map(|frame| u16::from(frame.code)),
                Some(Message::Text(text)) => assert_eq!(text.as_str(), heartbeat()),
                Some(other) => panic!("expected the end, got {other:?}"),
            }
        }
    }
}

pub(crate) fn going_away() -> Option<u16> {
    Some(u16::from(CloseCode::Away))
}

pub(crate) fn protocol_error() -> Option<u16> {
    Some(u16::from(CloseCode::Protocol))
}

pub(crate) fn message(kind: &str, rest: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"job_id\":\"{JOB}\",\"attempt_id\":\"{ATTEMPT}\"{rest}}}\n")
}

pub(crate) fn heartbeat() -> String {
    message("heartbeat", ",\"worker_id\":\"worker-1\"")
}

pub(crate) fn result(text: &str) -> String {
    message("result", &format!(",\"result\":\"{text}\""))
}

pub(crate) fn failed(code: &str, disposition: &str) -> String {
    message(
        "result",
        &format!(",\"error\":\"{code}\",\"disposition\":\"{disposition}\""),
    )
}
