//! A timestamp authority on this machine, for as long as the test runs.

use std::io::{Read, Write as _};
use std::net::TcpListener;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use stamp_authority::{Ca, Identity, Stamper, Wanted, rcgen, response};

use crate::bed::Bed;

/// Before any receipt of these tests; what a clock says does not matter to them.
pub(crate) const TIME: &str = "20240615120000Z";
pub(crate) const SHOWN: &str = "2024-06-15T12:00:00Z";

/// An authority and where it is asked.
pub(crate) struct Tsa {
    pub(crate) url: String,
    ca_pem: String,
}

impl Tsa {
    /// One that answers every request with a token of this time.
    pub(crate) fn at(time: &'static str) -> Self {
        Self::saying(move |identity, request| {
            granted(&Stamper::for_request(identity, request, time).token())
        })
    }

    /// One that answers every request with whatever `answer` makes of it.
    pub(crate) fn saying(answer: impl Fn(&Identity, &[u8]) -> Vec<u8> + Send + 'static) -> Self {
        let ca = Ca::honest("Acme CA");
        let ca_pem = ca.identity.pem.clone();
        let identity = ca.issue(&Wanted::stamper("Acme Stamps"));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/tsr", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                if let Some(request) = read(&mut stream) {
                    // Whoever asked may have gone away.
                    drop(stream.write_all(&answer(&identity, &request)));
                }
            }
        });
        Self { url, ca_pem }
    }

    /// One that speaks TLS, and the certificate that it is reached by, in PEM.
    pub(crate) fn over_tls(time: &'static str) -> (Self, String) {
        let ca = Ca::honest("Acme CA");
        let ca_pem = ca.identity.pem.clone();
        let identity = ca.issue(&Wanted::stamper("Acme Stamps"));
        let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let pem = own.cert.pem();
        let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
        let chain = vec![CertificateDer::from(own.cert.der().to_vec())];
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let connection = ServerConnection::new(config.clone()).unwrap();
                let mut stream = StreamOwned::new(connection, stream.unwrap());
                if let Some(request) = read(&mut stream) {
                    let token = Stamper::for_request(&identity, &request, time).token();
                    drop(stream.write_all(&granted(&token)));
                    stream.conn.send_close_notify();
                    drop(stream.flush());
                }
            }
        });
        let url = format!("https://localhost:{port}/tsr");
        (Self { url, ca_pem }, pem)
    }

    /// Pins the authority in a workspace.
    pub(crate) fn pin(&self, bed: &Bed) {
        bed.write("acme.pem", &self.ca_pem);
        bed.attest(&["keys", "trust-tsa", "acme.pem", "--name", "acme"])
            .expect(0);
        std::fs::remove_file(bed.path("acme.pem")).unwrap();
    }
}

/// An address of this machine where nobody listens.
pub(crate) fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}/", listener.local_addr().unwrap())
}

pub(crate) fn granted(token: &[u8]) -> Vec<u8> {
    reply(
        "200 OK\r\ncontent-type: application/timestamp-reply",
        &response(token),
    )
}

pub(crate) fn reply(head: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    [head.as_bytes(), body].concat()
}

fn read(stream: &mut impl Read) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; 4096];
        let count = stream.read(&mut part).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&part[..count]);
        let Some(end) = bytes.windows(4).position(|it| it == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let length = head.split("content-length: ").nth(1)?;
        let length: usize = length.lines().next()?.trim().parse().ok()?;
        if bytes.len() == end + 4 + length {
            return Some(bytes.split_off(end + 4));
        }
    }
}
