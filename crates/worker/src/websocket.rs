//! The connection to the Gate: TCP, TLS where the URL asks for it, one WebSocket.

use std::os::fd::AsFd;

use std::time::Duration;

use cli_shell::Secret;
use futures_util::{SinkExt, StreamExt};
use gate_link::{CONNECT_PATH, ConnectQuery, MAX_MESSAGE_BYTES};
use rustix::net::sockopt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as WsError, Message, Utf8Bytes};
use tokio_tungstenite::{Connector, MaybeTlsStream, WebSocketStream};
use url::Url;

use crate::link::{Closing, Connect, ConnectError, Incoming, Link, LinkDown};

/// From the first packet to the open WebSocket.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long unacknowledged bytes are borne while the slot is idle.
const IDLE_PATIENCE: Duration = Duration::from_secs(20);
/// How long the last words of the Gate are read before the socket is dropped.
const LAST_WORDS: Duration = Duration::from_millis(250);
/// Small, since a Worker may hold 64 connections that are idle most of the time.
const READ_BUFFER: usize = 8 * 1024;

/// Opens connections to one Gate.
pub(crate) struct GateConnector {
    url: Url,
    authorization: HeaderValue,
    connector: Connector,
}

impl std::fmt::Debug for GateConnector {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("GateConnector")
            .field("url", &self.url.as_str())
            .finish_non_exhaustive()
    }
}

impl GateConnector {
    /// Prepares connections to `url` with the Worker's token; `connector` says how TLS is done.
    pub(crate) fn new(
        url: Url,
        token: &Secret,
        connector: Connector,
    ) -> Result<Self, ConnectError> {
        let mut authorization = HeaderValue::from_str(&format!("Bearer {}", token.expose()))
            .map_err(|_| ConnectError::Failed("the token cannot stand in a header".to_owned()))?;
        authorization.set_sensitive(true);
        Ok(Self {
            url,
            authorization,
            connector,
        })
    }

    fn request(&self, query: &ConnectQuery) -> Result<Request, ConnectError> {
        let mut url = self.url.clone();
        url.set_path(CONNECT_PATH);
        url.set_query(Some(&query.to_string()));
        let mut request = url.as_str().into_client_request().map_err(failed)?;
        request
            .headers_mut()
            .insert(AUTHORIZATION, self.authorization.clone());
        Ok(request)
    }

    async fn dial(&self) -> Result<TcpStream, ConnectError> {
        let host = self.url.host_str().unwrap_or_default();
        // Brackets belong to the URL, not to the address.
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = self.url.port_or_known_default().unwrap_or_default();
        let stream = TcpStream::connect((host, port)).await.map_err(|error| {
            ConnectError::Failed(format!("cannot reach `{host}:{port}`: {error}"))
        })?;
        tune(&stream).map_err(failed)?;
        Ok(stream)
    }

    async fn open(&self, query: &ConnectQuery) -> Result<GateLink, ConnectError> {
        let request = self.request(query)?;
        let stream = self.dial().await?;
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .max_message_size(Some(MAX_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_MESSAGE_BYTES));
        let opened = tokio_tungstenite::client_async_tls_with_config(
            request,
            stream,
            Some(config),
            Some(self.connector.clone()),
        );
        match opened.await {
            Ok((socket, _)) => Ok(GateLink { socket }),
            Err(WsError::Http(response)) => Err(match response.status().as_u16() {
                401 => ConnectError::Unauthorized,
                409 => ConnectError::SlotTaken,
                status => ConnectError::Status(status),
            }),
            Err(error) => Err(failed(error)),
        }
    }
}

impl Connect for GateConnector {
    type Link = GateLink;

    async fn connect(&self, query: &ConnectQuery) -> Result<GateLink, ConnectError> {
        timeout(CONNECT_TIMEOUT, self.open(query))
            .await
            .map_err(|_| ConnectError::Timeout(CONNECT_TIMEOUT))?
    }
}

/// Small messages go out at once, and a peer that vanished without a word is noticed.
fn tune(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    #[cfg(target_os = "linux")]
    {
        sockopt::set_tcp_keepidle(stream, Duration::from_secs(10))?;
        sockopt::set_tcp_keepintvl(stream, Duration::from_secs(5))?;
        sockopt::set_tcp_keepcnt(stream, 3)?;
        set_user_timeout(stream, IDLE_PATIENCE)?;
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn set_user_timeout(stream: impl AsFd, patience: Duration) -> std::io::Result<()> {
    let millis = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX);
    Ok(sockopt::set_tcp_user_timeout(stream, millis)?)
}

fn failed(error: impl std::fmt::Display) -> ConnectError {
    ConnectError::Failed(error.to_string())
}

/// One open WebSocket.
pub(crate) struct GateLink {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

impl Link for GateLink {
    async fn receive(&mut self) -> Result<Incoming, LinkDown> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => {
                    return Ok(Incoming::Message(text.as_bytes().to_vec()));
                }
                Some(Ok(Message::Pong(payload))) => {
                    // Anything else was not asked for, and RFC 6455 section 5.5.3 allows it.
                    if let Ok(number) = <[u8; 8]>::try_from(payload.as_ref()) {
                        return Ok(Incoming::Pong(u64::from_be_bytes(number)));
                    }
                }
                // The answer is queued by the library and leaves with the next read.
                Some(Ok(Message::Ping(_) | Message::Frame(_))) => {}
                Some(Ok(Message::Binary(_))) => return Err(LinkDown::Binary),
                Some(Ok(Message::Close(frame))) => return Err(LinkDown::Closed(reason(frame))),
                Some(Err(WsError::Capacity(_))) => return Err(LinkDown::TooBig),
                Some(Err(error)) => return Err(LinkDown::Failed(error.to_string())),
                None => return Err(LinkDown::Closed("without a word".to_owned())),
            }
        }
    }

    async fn send(&mut self, frame: Vec<u8>) -> Result<(), LinkDown> {
        let text = String::from_utf8(frame).map_err(down)?;
        self.socket
            .send(Message::Text(text.into()))
            .await
            .map_err(down)
    }

    async fn send_last(&mut self, frame: Option<Vec<u8>>) -> Result<(), LinkDown> {
        if let Some(frame) = frame {
            let text = String::from_utf8(frame).map_err(down)?;
            self.socket
                .feed(Message::Text(text.into()))
                .await
                .map_err(down)?;
        }
        let close = farewell(CloseCode::Away, "worker stops");
        self.socket.close(Some(close)).await.map_err(down)
    }

    async fn ping(&mut self, number: u64) -> Result<(), LinkDown> {
        let payload = number.to_be_bytes().to_vec();
        self.socket
            .send(Message::Ping(payload.into()))
            .await
            .map_err(down)
    }

    fn set_write_patience(&self, patience: Duration) {
        #[cfg(target_os = "linux")]
        if let Some(stream) = self.tcp()
            && let Err(error) = set_user_timeout(stream, patience.min(IDLE_PATIENCE))
        {
            tracing::debug!(%error, "cannot set TCP_USER_TIMEOUT");
        }
    }

    async fn close(&mut self, closing: Closing) {
        let (code, reason) = match closing {
            Closing::Protocol => (CloseCode::Protocol, "protocol violation"),
            Closing::TooBig => (CloseCode::Size, "message too large"),
            Closing::Drop => return,
        };
        let said = async {
            if self
                .socket
                .close(Some(farewell(code, reason)))
                .await
                .is_ok()
            {
                while let Some(Ok(_)) = self.socket.next().await {}
            }
        };
        // Whether the Gate heard it makes no difference to what follows.
        timeout(LAST_WORDS, said).await.ok();
    }
}

impl GateLink {
    /// The socket below; the library leaves open that there may be other kinds of stream.
    fn tcp(&self) -> Option<&TcpStream> {
        match self.socket.get_ref() {
            MaybeTlsStream::Rustls(stream) => Some(stream.get_ref().0),
            MaybeTlsStream::Plain(stream) => Some(stream),
            _ => None,
        }
    }
}

fn farewell(code: CloseCode, reason: &'static str) -> CloseFrame {
    CloseFrame {
        code,
        reason: Utf8Bytes::from_static(reason),
    }
}

fn reason(frame: Option<CloseFrame>) -> String {
    frame.map_or_else(
        || "without a code".to_owned(),
        |frame| {
            format!(
                "{} {}",
                u16::from(frame.code),
                cli_shell::visible(&frame.reason)
            )
            .trim_end()
            .to_owned()
        },
    )
}

fn down(error: impl std::fmt::Display) -> LinkDown {
    LinkDown::Failed(error.to_string())
}
