//! A registry that listens: TLS, slow and broken clients, a stop in order.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use backplane_registry::{
    ADMIN_TOKEN, Registry, RegistryConfig, RegistryError, RegistryState, TlsFiles,
};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::support::{PATIENCE, V1, digest, package};

pub(crate) struct Served {
    dir: TempDir,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    state: RegistryState,
    task: JoinSet<()>,
}

async fn start(root: &Path, config: &RegistryConfig) -> Result<Registry, RegistryError> {
    let clock = Arc::new(cli_shell::clock::now);
    let listen = "127.0.0.1:0".parse().unwrap();
    Registry::start(root, config, &listen, clock, None).await
}

impl Served {
    async fn new() -> Self {
        Self::with(|_, _| {}).await
    }

    /// With a certificate that nobody but its file vouches for.
    pub(crate) async fn over_tls() -> Self {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        Self::with(|dir, config| {
            let files = TlsFiles {
                certificate: dir.join("cert.pem"),
                key: dir.join("key.pem"),
            };
            fs_err::write(&files.certificate, cert.pem()).unwrap();
            write_key(&files.key, &signing_key.serialize_pem());
            config.tls = Some(files);
        })
        .await
    }

    pub(crate) fn certificate(&self) -> PathBuf {
        self.dir.path().join("cert.pem")
    }

    async fn with(change: impl FnOnce(&Path, &mut RegistryConfig)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut config = RegistryConfig::default();
        change(dir.path(), &mut config);
        let root = dir.path().join("root");
        let registry = start(&root, &config).await.unwrap();
        assert_eq!(registry.made_token(), Some(&*root.join(ADMIN_TOKEN)));
        let token = fs_err::read_to_string(root.join(ADMIN_TOKEN)).unwrap();
        Self {
            address: registry.address(),
            token: token.trim_end().to_owned(),
            state: registry.handle(),
            task: JoinSet::from_iter([registry.serve()]),
            dir,
        }
    }

    fn head(&self, line: &str, more: &str) -> Vec<u8> {
        format!(
            "{line} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\n{more}\r\n",
            self.token
        )
        .into_bytes()
    }

    fn upload(&self, archive: &[u8], length: usize) -> Vec<u8> {
        let line = format!("PUT {V1}/artifacts/{}", digest(archive));
        let more = format!(
            "Connection: close\r\nContent-Type: application/octet-stream\r\nContent-Length: {length}\r\n"
        );
        self.head(&line, &more)
    }

    async fn dial(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    async fn exchange(&self, request: &[u8]) -> String {
        let mut stream = self.dial().await;
        stream.write_all(request).await.unwrap();
        rest(&mut stream).await
    }

    pub(crate) async fn stop(self) {
        self.state.stop();
        ended(self.task).await;
        drop(self.dir);
    }
}

async fn ended(mut task: JoinSet<()>) {
    let ended = timeout(PATIENCE, task.join_next()).await;
    ended.expect("an end in time").unwrap().unwrap();
}

/// What still comes in. A reset after the answer is as good as an end.
async fn rest(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut answer = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
    drop(read.expect("an answer in time"));
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_plugin_goes_up_and_comes_down_over_a_socket() {
    let served = Served::new().await;
    let archive = package("acme-tools", "1");
    let mut request = served.upload(&archive, archive.len());
    request.extend_from_slice(&archive);
    let answer = served.exchange(&request).await;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    let body = format!(
        "{{\"artifact_digest\":\"{}\",\"channel\":\"stable\"}}",
        digest(&archive)
    );
    let more = format!(
        "Connection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
        body.len()
    );
    let mut request = served.head(&format!("POST {V1}/releases"), &more);
    request.extend_from_slice(body.as_bytes());
    let answer = served.exchange(&request).await;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    let line = format!("GET {V1}/artifacts/{}", digest(&archive));
    let request = served.head(&line, "Connection: close\r\nRange: bytes=0-3\r\n");
    let answer = served.exchange(&request).await;
    assert!(answer.starts_with("HTTP/1.1 206 "), "{answer}");
    assert!(answer.contains("content-length: 4\r\n"), "{answer}");
    served.stop().await;
}

#[tokio::test]
async fn half_a_body_over_a_socket_leaves_nothing() {
    let served = Served::new().await;
    let archive = package("acme-tools", "1");
    for _ in 0..6 {
        let mut stream = served.dial().await;
        stream
            .write_all(&served.upload(&archive, archive.len()))
            .await
            .unwrap();
        stream
            .write_all(&archive[..archive.len() / 2])
            .await
            .unwrap();
        stream.shutdown().await.unwrap();
        let answer = rest(&mut stream).await;
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 400 "),
            "{answer}"
        );
    }
    let line = format!("GET {V1}/plugins/acme-tools/releases");
    let answer = served
        .exchange(&served.head(&line, "Connection: close\r\n"))
        .await;
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    let mut request = served.upload(&archive, archive.len());
    request.extend_from_slice(&archive);
    let answer = served.exchange(&request).await;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    served.stop().await;
}

#[tokio::test]
async fn what_is_too_long_is_refused_before_it_is_sent() {
    let served = Served::new().await;
    let answer = served.exchange(&served.upload(b"x", 33_554_433)).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains("\"limit_exceeded\""), "{answer}");
    let filler = format!("Connection: close\r\nX-Filler: {}\r\n", "a".repeat(20_000));
    let answer = served
        .exchange(&served.head(&format!("GET {V1}/whoami"), &filler))
        .await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    assert!(answer.contains("\"limit_exceeded\""), "{answer}");
    let filler = format!("X-Filler: {}\r\n", "a".repeat(70_000));
    let mut stream = served.dial().await;
    // The registry may close while we still write.
    drop(
        stream
            .write_all(&served.head(&format!("GET {V1}/whoami"), &filler))
            .await,
    );
    let answer = rest(&mut stream).await;
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 431 "),
        "{answer}"
    );
    served.stop().await;
}

#[tokio::test]
async fn a_request_under_way_is_answered_before_the_stop() {
    let served = Served::new().await;
    let archive = package("acme-tools", "1");
    let mut stream = served.dial().await;
    let line = format!("PUT {V1}/artifacts/{}", digest(&archive));
    let more = format!(
        "Expect: 100-continue\r\nContent-Type: application/gzip\r\nContent-Length: {}\r\n",
        archive.len()
    );
    stream.write_all(&served.head(&line, &more)).await.unwrap();
    // It is under way once the registry asks for the body.
    let mut interim = [0; 25];
    timeout(PATIENCE, stream.read_exact(&mut interim))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    served.state.stop();
    stream.write_all(&archive).await.unwrap();
    let answer = rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    ended(served.task).await;
}

#[tokio::test]
async fn tls_is_spoken_and_nothing_else() {
    let served = Served::over_tls().await;
    let trust = tls_files::ClientTls::config(Some(&served.certificate())).unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let connector = TlsConnector::from(trust);
    let mut stream = connector.connect(name, served.dial().await).await.unwrap();
    let request = served.head(&format!("GET {V1}/whoami"), "Connection: close\r\n");
    stream.write_all(&request).await.unwrap();
    let answer = rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.contains("\"name\":\"admin\""), "{answer}");
    let plain = served.exchange(&request).await;
    assert!(!plain.contains("HTTP/1.1 200"), "{plain}");
    served.stop().await;
}

fn write_key(path: &Path, pem: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs_err::write(path, pem).unwrap();
    fs_err::set_permissions(path, PermissionsExt::from_mode(0o600)).unwrap();
}

#[tokio::test]
async fn a_listener_that_others_reach_needs_tls_or_a_word() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = RegistryConfig::default();
    let clock = || Arc::new(cli_shell::clock::now);
    let public = "0.0.0.0:0".parse().unwrap();
    let root = dir.path().join("root");
    let refused = Registry::start(&root, &config, &public, clock(), None).await;
    assert!(matches!(refused, Err(RegistryError::PlainListener { .. })));
    config.insecure_listen = true;
    // The start that serves is the one that makes the token, and so tells of it.
    let started = Registry::start(&root, &config, &public, clock(), None).await;
    assert_eq!(
        started.unwrap().made_token(),
        Some(&*root.join(ADMIN_TOKEN))
    );
}

#[tokio::test]
async fn a_folder_is_served_by_one_registry() {
    let served = Served::new().await;
    let second = start(&served.dir.path().join("root"), &RegistryConfig::default()).await;
    assert!(matches!(second, Err(RegistryError::Store(_))), "{second:?}");
    served.stop().await;
}

#[tokio::test]
async fn what_was_published_is_there_after_a_new_start() {
    let served = Served::new().await;
    let archive = package("acme-tools", "1");
    let mut request = served.upload(&archive, archive.len());
    request.extend_from_slice(&archive);
    served.exchange(&request).await;
    served.state.stop();
    ended(served.task).await;
    drop(served.state);
    let again = start(&served.dir.path().join("root"), &RegistryConfig::default())
        .await
        .unwrap();
    assert_eq!(again.made_token(), None, "the token is the one from before");
}
