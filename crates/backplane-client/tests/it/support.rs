//! A transport that keeps what it was sent and answers as it was told.

use std::sync::Mutex;

use backplane_client::{
    Answer, Auth, Body, Cancel, Client, Header, Method, Request, Transport, TransportError,
};

pub(crate) const BASE: &str = "https://backplane.example";

/// What a request looked like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Vec<u8>>,
}

/// Answers every request alike.
pub(crate) struct Fixed {
    answer: Box<dyn Fn() -> Result<Answer, TransportError>>,
    sent: Mutex<Vec<Sent>>,
}

impl Fixed {
    pub(crate) fn new(answer: impl Fn() -> Result<Answer, TransportError> + 'static) -> Self {
        Self {
            answer: Box::new(answer),
            sent: Mutex::new(Vec::new()),
        }
    }

    pub(crate) fn bytes(status: u16, body: &[u8]) -> Self {
        let body = body.to_vec();
        Self::new(move || Ok(Answer::new(status, Body::Bytes(body.clone()))))
    }

    pub(crate) fn count(&self) -> usize {
        self.sent.lock().unwrap().len()
    }

    pub(crate) fn last(&self) -> Sent {
        self.sent.lock().unwrap().last().unwrap().clone()
    }
}

impl Transport for Fixed {
    fn send(&self, request: &Request, _: &dyn Cancel) -> Result<Answer, TransportError> {
        let pair = |header: &Header| (header.name().to_owned(), header.value().to_owned());
        self.sent.lock().unwrap().push(Sent {
            method: request.method(),
            url: request.url().to_owned(),
            headers: request.headers().iter().map(pair).collect(),
            body: request.body().map(<[u8]>::to_vec),
        });
        (self.answer)()
    }
}

pub(crate) fn client(transport: Fixed) -> Client<Fixed> {
    Client::new(BASE, Auth::None, Vec::new(), transport).unwrap()
}

pub(crate) fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}
