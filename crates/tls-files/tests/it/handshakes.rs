//! Handshakes, reloads and refused files.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, ServerName};
use tls_files::{ClientTls, ServerTls, TlsError};
use tokio_rustls::TlsConnector;

struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            pem,
            issuer: Issuer::new(params, key),
        }
    }

    /// A certificate for `localhost` and its key, both in PEM.
    fn server(&self) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}

struct Files {
    dir: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Replaces a file the way certificate tools do: write beside, rename over.
    fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        let beside = self.path("new");
        fs_err::write(&beside, text).unwrap();
        fs_err::set_permissions(&beside, PermissionsExt::from_mode(0o600)).unwrap();
        fs_err::rename(&beside, &path).unwrap();
        path
    }

    fn put_pair(&self, (certificate, key): &(String, String)) -> (PathBuf, PathBuf) {
        (self.put("cert.pem", certificate), self.put("key.pem", key))
    }
}

/// Shakes hands in memory and returns the certificate that the client saw.
async fn handshake(
    server: &ServerTls,
    ca: Option<&Path>,
) -> Result<CertificateDer<'static>, std::io::Error> {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let connector = TlsConnector::from(ClientTls::config(ca).map_err(std::io::Error::other)?);
    let name = ServerName::try_from("localhost").unwrap();
    let acceptor = server.acceptor();
    let (client, _server) = tokio::join!(connector.connect(name, near), acceptor.accept(far));
    let client = client?;
    let (_, session) = client.get_ref();
    Ok(session.peer_certificates().unwrap()[0].clone().into_owned())
}

#[tokio::test]
async fn a_private_authority_is_accepted_and_another_is_not() {
    let files = Files::new();
    let ours = Authority::new();
    let (cert, key) = files.put_pair(&ours.server());
    let server = ServerTls::load(&cert, &key).unwrap();
    let ca = files.put("ca.pem", &ours.pem);
    handshake(&server, Some(&ca)).await.unwrap();
    let other = files.put("other.pem", &Authority::new().pem);
    let refused = handshake(&server, Some(&other)).await.unwrap_err();
    assert!(
        refused.to_string().starts_with("invalid peer certificate"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_new_pair_is_used_after_a_reload_and_only_then() {
    let files = Files::new();
    let ca = Authority::new();
    let (cert, key) = files.put_pair(&ca.server());
    let ca_file = files.put("ca.pem", &ca.pem);
    let server = ServerTls::load(&cert, &key).unwrap();
    let first = handshake(&server, Some(&ca_file)).await.unwrap();
    assert!(!server.reload_if_changed().unwrap());

    files.put_pair(&ca.server());
    assert_eq!(handshake(&server, Some(&ca_file)).await.unwrap(), first);
    let clone = server.clone();
    assert!(server.reload_if_changed().unwrap());
    let second = handshake(&clone, Some(&ca_file)).await.unwrap();
    assert_ne!(second, first);
    assert!(!server.reload_if_changed().unwrap());
}

#[tokio::test]
async fn a_bad_file_keeps_the_old_pair_and_is_reported_once() {
    let files = Files::new();
    let ca = Authority::new();
    let (cert, key) = files.put_pair(&ca.server());
    let ca_file = files.put("ca.pem", &ca.pem);
    let server = ServerTls::load(&cert, &key).unwrap();
    let first = handshake(&server, Some(&ca_file)).await.unwrap();

    files.put("cert.pem", "-----BEGIN CERTIFICATE-----\nrubbish");
    assert!(matches!(
        server.reload_if_changed(),
        Err(TlsError::Pem { .. } | TlsError::Empty { .. })
    ));
    assert!(!server.reload_if_changed().unwrap(), "reported again");
    assert_eq!(handshake(&server, Some(&ca_file)).await.unwrap(), first);

    // Half of a new pair, then the whole.
    let (new_cert, new_key) = ca.server();
    files.put("cert.pem", &new_cert);
    assert!(matches!(
        server.reload_if_changed(),
        Err(TlsError::Pair { .. })
    ));
    assert_eq!(handshake(&server, Some(&ca_file)).await.unwrap(), first);
    files.put("key.pem", &new_key);
    assert!(server.reload_if_changed().unwrap());
    assert_ne!(handshake(&server, Some(&ca_file)).await.unwrap(), first);

    // Gone altogether: an error each time, and the last pair goes on.
    fs_err::remove_file(&cert).unwrap();
    assert!(matches!(
        server.reload_if_changed(),
        Err(TlsError::Read { .. })
    ));
    handshake(&server, Some(&ca_file)).await.unwrap();
}

#[test]
fn files_that_cannot_serve_are_refused_by_name() {
    let files = Files::new();
    let pair = Authority::new().server();
    let (cert, key) = files.put_pair(&pair);
    let missing = files.path("missing.pem");
    assert!(matches!(
        ServerTls::load(&missing, &key),
        Err(TlsError::Read { .. })
    ));
    assert!(matches!(
        ServerTls::load(&key, &key),
        Err(TlsError::Empty {
            what: "certificate",
            ..
        })
    ));
    assert!(matches!(
        ServerTls::load(&cert, &cert),
        Err(TlsError::Empty {
            what: "private key",
            ..
        })
    ));
    let other = files.put("other.pem", &Authority::new().server().1);
    assert!(matches!(
        ServerTls::load(&cert, &other),
        Err(TlsError::Pair { .. })
    ));
    fs_err::set_permissions(&key, PermissionsExt::from_mode(0o604)).unwrap();
    assert!(matches!(
        ServerTls::load(&cert, &key),
        Err(TlsError::KeyExposed { .. })
    ));
    fs_err::set_permissions(&key, PermissionsExt::from_mode(0o640)).unwrap();
    ServerTls::load(&cert, &key).unwrap();
}

#[test]
fn the_file_limit_is_exact() {
    let files = Files::new();
    let mut text = Authority::new().pem;
    text.push_str(&"\n".repeat(1024 * 1024 - text.len()));
    let ca = files.put("ca.pem", &text);
    let config = ClientTls::config(Some(&ca)).unwrap();
    assert!(Arc::strong_count(&config) >= 1);
    text.push('\n');
    let ca = files.put("ca.pem", &text);
    assert!(matches!(
        ClientTls::config(Some(&ca)),
        Err(TlsError::TooLong { .. })
    ));
    let empty = files.put("empty.pem", "");
    assert!(matches!(
        ClientTls::config(Some(&empty)),
        Err(TlsError::Empty { .. })
    ));
}
