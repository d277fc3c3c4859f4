//! Clients, answers and certificates.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use backplane_client::{
    Auth, Cancel, Client, ClientError, Fault, Method, Never, Object, Token, TransportError,
};
use backplane_http::{HttpTransport, Options, Times};
use digest_text::Sha256Text;
use plugin_archive::{Files, Limits, Modes, pack};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

pub(crate) const TOKEN: &str = "a-token-that-nobody-may-see";
/// Longer than any test may run.
pub(crate) const LONG: Duration = Duration::from_secs(3600);

/// Options whose time is never up.
pub(crate) fn patient() -> Options {
    Options {
        times: Times {
            connect: LONG,
            idle: LONG,
            total: LONG,
            transfer: LONG,
        },
        ..Options::default()
    }
}

pub(crate) fn client_of(url: &str, transport: HttpTransport) -> Client<HttpTransport> {
    let auth = Auth::Token(Token::new(TOKEN).unwrap());
    Client::new(url, auth, Vec::new(), transport).unwrap()
}

pub(crate) fn client(url: &str, options: Options) -> Client<HttpTransport> {
    client_of(url, HttpTransport::new(options).unwrap())
}

/// Asks for `/x`.
pub(crate) fn get(client: &Client<HttpTransport>) -> Result<Object, ClientError> {
    get_until(client, &Never)
}

pub(crate) fn get_until(
    client: &Client<HttpTransport>,
    cancel: &dyn Cancel,
) -> Result<Object, ClientError> {
    client.request(Method::Get, "/x", None, cancel)
}

/// The transport's own account of what must have failed.
pub(crate) fn fault<T: std::fmt::Debug>(outcome: Result<T, ClientError>) -> TransportError {
    match outcome {
        Err(ClientError::Transport(error)) => error,
        other => panic!("expected a fault of the transport, got {other:?}"),
    }
}

pub(crate) fn is_fault<T: std::fmt::Debug>(outcome: Result<T, ClientError>, expected: Fault) {
    let error = fault(outcome);
    assert_eq!(error.fault(), expected, "{error}");
    assert!(!error.to_string().contains(TOKEN), "{error}");
}

pub(crate) fn is_status<T: std::fmt::Debug>(outcome: Result<T, ClientError>, expected: u16) {
    match outcome {
        Err(ClientError::HttpStatus { status }) => assert_eq!(status, expected),
        other => panic!("expected status {expected}, got {other:?}"),
    }
}

/// Writes an answer whose length is that of its body, unless the headers say otherwise.
pub(crate) fn answer(status: u16, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status} Words\r\nconnection: close\r\n");
    let framed = |line: &&&str| line.contains("content-length") || line.contains("transfer-");
    if headers.iter().find(framed).is_none() {
        text.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    for header in headers {
        text.push_str(header);
        text.push_str("\r\n");
    }
    text.push_str("\r\n");
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

pub(crate) fn ok() -> Vec<u8> {
    answer(200, &[], b"{}")
}

/// A small plugin with one file that does not compress, as an archive and its digest.
pub(crate) fn artifact() -> (Vec<u8>, String) {
    let manifest = br#"{"$schema":"https://agent-plugins.org/schemas/1.0.0/plugin.schema.json","name":"acme-tools"}"#;
    let mut state: u32 = 1;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    });
    let files: Files = [
        ("plugin.json".to_owned(), manifest.to_vec()),
        ("noise.bin".to_owned(), noise.take(300_000).collect()),
    ]
    .into();
    let bytes = pack(&files, &Modes::new(), &Limits::default()).unwrap();
    let digest = Sha256Text::of(&bytes).to_string();
    (bytes, digest)
}

/// An authority of its own, which nobody trusts unless told.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    folder: tempfile::TempDir,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        fs_err::write(folder.path().join("ca.pem"), pem).unwrap();
        Self {
            issuer: Issuer::new(params, key),
            folder,
        }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Accepts connections under a certificate for a name or an address.
    pub(crate) fn acceptor(&self, name: &str) -> TlsAcceptor {
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        self.acceptor_with(&params)
    }

    pub(crate) fn acceptor_with(&self, params: &CertificateParams) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}
