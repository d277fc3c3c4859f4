//! The sockets: slow and oversized clients, TLS, and the end of the store.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::support::{OWNER, PATIENCE, Rig};

/// Everything until the Gate closes.
async fn exchange(rig: &Rig, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(rig.address).await.unwrap();
    stream.write_all(request).await.unwrap();
    rest(&mut stream).await
}

/// What still comes in. A reset after the answer is as good as an end.
async fn rest(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut answer = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
    drop(read.expect("an answer in time"));
    String::from_utf8_lossy(&answer).into_owned()
}

fn head(rest: &str) -> Vec<u8> {
    format!("POST /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {OWNER}\r\nConnection: close\r\n{rest}").into_bytes()
}

#[tokio::test]
async fn r60_ten_megabytes_are_refused_before_they_are_sent() {
    let rig = Rig::start().await;
    let answer = exchange(&rig, &head("Content-Length: 10000000\r\n\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[tokio::test]
async fn r60_an_endless_chunked_body_is_cut() {
    let rig = Rig::start().await;
    let mut request = head("Transfer-Encoding: chunked\r\n\r\n");
    for _ in 0..17 {
        request.extend_from_slice(b"10000\r\n");
        request.extend_from_slice(&[b' '; 0x10000]);
        request.extend_from_slice(b"\r\n");
    }
    let mut stream = TcpStream::connect(rig.address).await.unwrap();
    // The Gate may close while we still write.
    drop(stream.write_all(&request).await);
    let answer = rest(&mut stream).await;
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 413 "),
        "{answer}"
    );
    assert_eq!(rig.get("/v1/jobs").await.json(), json!({"items": []}));
}

#[tokio::test]
async fn r60_heads_are_bounded() {
    let rig = Rig::start().await;
    let many: String = (0..65).map(|number| format!("X-{number}: 1\r\n")).collect();
    let answer = exchange(&rig, &head(&format!("{many}\r\n"))).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let long = format!("X: {}\r\n\r\n", "x".repeat(100_000));
    let answer = exchange(&rig, &head(&long)).await;
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 431 "),
        "{answer}"
    );
    let answer = exchange(
        &rig,
        b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
    )
    .await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
}

/// The one test in real time: the rule is 5 s, a loaded machine gets one more.
#[tokio::test]
async fn a_slow_head_is_cut_after_five_seconds() {
    let rig = Rig::start().await;
    let mut stream = TcpStream::connect(rig.address).await.unwrap();
    let start = Instant::now();
    let mut byte = [0];
    for next in b"GET /healthz HTTP/1.1\r\nX: ".iter().cycle() {
        if stream.write_all(&[*next]).await.is_err() {
            break;
        }
        if let Ok(Ok(0) | Err(_)) =
            timeout(Duration::from_millis(200), stream.read(&mut byte)).await
        {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(6), "still open");
    }
    assert!(
        start.elapsed() > Duration::from_millis(4500),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test]
async fn r60_many_idle_connections_do_not_keep_others_out() {
    let rig = Rig::start().await;
    let mut idle = Vec::new();
    for _ in 0..200 {
        idle.push(TcpStream::connect(rig.address).await.unwrap());
    }
    let answer = exchange(
        &rig,
        b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
    )
    .await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[tokio::test]
async fn tls_is_served_from_files() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let rig = Rig::start_with(|config| {
        let state = config["owner_token_file"].as_str().unwrap().to_owned();
        let dir = std::path::Path::new(&state).parent().unwrap();
        std::fs::write(dir.join("cert.pem"), made.cert.pem()).unwrap();
        let key = dir.join("key.pem");
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        config["tls"] = json!({"certificate": dir.join("cert.pem"), "key": key});
    })
    .await;
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(rig.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(client))
        .connect(name, stream)
        .await
        .unwrap();
    stream
        .write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .await
        .unwrap();
    let answer = rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    // Plain text on the same port is no HTTP.
    let answer = exchange(&rig, b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
}
