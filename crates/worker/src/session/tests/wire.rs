//! Both ends of a connection in memory.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::link::{Closing, Incoming, Link, LinkDown};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Message(String),
    /// The Close frame, and the message that left with it.
    Last(Option<String>),
    Ping(u64),
    Closed(Closing),
}

/// The Worker's end of a connection in memory.
pub(super) struct MemoryLink {
    incoming: mpsc::UnboundedReceiver<Result<Incoming, LinkDown>>,
    sent: mpsc::UnboundedSender<Sent>,
    /// From here on writing never ends, as with a full socket buffer.
    stuck: Arc<Mutex<bool>>,
}

impl MemoryLink {
    async fn put(&self, sent: Sent) -> Result<(), LinkDown> {
        if *self.stuck.lock().unwrap() {
            pending::<()>().await;
        }
        self.sent
            .send(sent)
            .map_err(|_| LinkDown::Failed("broken pipe".to_owned()))
    }
}

impl Link for MemoryLink {
    async fn receive(&mut self) -> Result<Incoming, LinkDown> {
        match self.incoming.recv().await {
            Some(incoming) => incoming,
            None => Err(LinkDown::Closed("gone".to_owned())),
        }
    }

    async fn send(&mut self, frame: Vec<u8>) -> Result<(), LinkDown> {
        self.put(Sent::Message(String::from_utf8(frame).unwrap()))
            .await
    }

    async fn send_last(&mut self, frame: Option<Vec<u8>>) -> Result<(), LinkDown> {
        let frame = frame.map(|frame| String::from_utf8(frame).unwrap());
        self.put(Sent::Last(frame)).await
    }

    async fn ping(&mut self, number: u64) -> Result<(), LinkDown> {
        self.put(Sent::Ping(number)).await
    }

    fn set_write_patience(&self, _: Duration) {}

    async fn close(&mut self, closing: Closing) {
        self.sent.send(Sent::Closed(closing)).ok();
    }
}

/// The Gate's end.
pub(super) struct Gate {
    pub(super) outgoing: mpsc::UnboundedSender<Result<Incoming, LinkDown>>,
    pub(super) sent: mpsc::UnboundedReceiver<Sent>,
    pub(super) stuck: Arc<Mutex<bool>>,
}

impl Gate {
    pub(super) fn say(&self, text: impl Into<String>) {
        self.outgoing
            .send(Ok(Incoming::Message(text.into().into_bytes())))
            .unwrap();
    }

    pub(super) fn close(&self) {
        let closed = LinkDown::Closed("1001".to_owned());
        self.outgoing.send(Err(closed)).ok();
    }

    pub(super) fn pong(&self, number: u64) {
        self.outgoing.send(Ok(Incoming::Pong(number))).ok();
    }

    pub(super) async fn next(&mut self) -> Sent {
        timeout(Duration::from_secs(1000), self.sent.recv())
            .await
            .unwrap()
            .unwrap()
    }

    pub(super) async fn text(&mut self) -> String {
        match self.next().await {
            Sent::Message(text) => text,
            other => panic!("expected a message, got {other:?}"),
        }
    }
}

impl Gate {
    /// The next message that is neither a heartbeat nor a stage; the pings of heartbeats are
    /// answered.
    pub(super) async fn answer(&mut self) -> String {
        loop {
            match self.next().await {
                Sent::Message(text) if text.contains("\"heartbeat\"") => {}
                Sent::Message(text) if text.contains("\"activity\"") => {}
                Sent::Message(text) => return text,
                Sent::Ping(number) => self.pong(number),
                other => panic!("expected a message, got {other:?}"),
            }
        }
    }
}

/// Both ends.
pub(super) fn pair() -> (MemoryLink, Gate) {
    let (outgoing, incoming) = mpsc::unbounded_channel();
    let (sender, sent) = mpsc::unbounded_channel();
    let stuck = Arc::new(Mutex::new(false));
    let link = MemoryLink {
        incoming,
        sent: sender,
        stuck: Arc::clone(&stuck),
    };
    let gate = Gate {
        outgoing,
        sent,
        stuck,
    };
    (link, gate)
}
