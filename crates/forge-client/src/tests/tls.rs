//! A Gate behind TLS with an authority of its own.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tls_files::ServerTls;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

/// Writes an authority's certificate, and a pair that it signed for 127.0.0.1.
fn certificates(dir: &Path, name: &str) -> (PathBuf, PathBuf, PathBuf) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let authority_pem = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let put = |suffix: &str, text: &str| {
        let path = dir.join(format!("{name}-{suffix}.pem"));
        fs_err::write(&path, text).unwrap();
        fs_err::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        path
    };
    (
        put("ca", &authority_pem),
        put("cert", &certificate.pem()),
        put("key", &key.serialize_pem()),
    )
}

/// Serves the one job over TLS until the test's process ends, and returns the port.
fn serve(tls: ServerTls) -> u16 {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            sender.send(listener.local_addr().unwrap().port()).unwrap();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let Ok(mut stream) = tls.acceptor().accept(stream).await else {
                    continue;
                };
                let mut head = [0; 4096];
                let read = stream.read(&mut head).await.unwrap_or(0);
                assert!(String::from_utf8_lossy(&head[..read]).contains("Bearer canary-token"));
                let body = succeeded();
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
                drop(stream.write_all((head + &body).as_bytes()).await);
                drop(stream.shutdown().await);
            }
        });
    });
    receiver.recv().unwrap()
}

#[test]
fn a_private_authority_is_trusted_by_name_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let (ca, cert, key) = certificates(dir.path(), "ours");
    let (other, _, _) = certificates(dir.path(), "other");
    let port = serve(ServerTls::load(&cert, &key).unwrap());
    let token = dir.path().join("token");
    fs_err::write(&token, "canary-token\n").unwrap();
    let ask = |ca: &Path| {
        let url = format!("https://127.0.0.1:{port}");
        let args = ["forge", "status", JOB, "--gate-url", &url];
        let cli = Cli::try_parse_from(args.map(Into::into).into_iter().chain([
            "--token-file".into(),
            token.clone().into_os_string(),
            "--ca-file".into(),
            ca.as_os_str().to_owned(),
        ]))
        .unwrap();
        let (ui, screen) = Ui::captured(&cli.global);
        run(&cli.command, &ui, &HOSTS).map(|_| screen.out())
    };
    assert!(ask(&ca).unwrap().contains(CANDIDATE));
    let refused = ask(&other).unwrap_err();
    let messages = refused.messages().join(": ");
    assert!(messages.contains("certificate"), "{messages}");
    assert!(
        refused.hints().join(" ").contains("--ca-file"),
        "{:?}",
        refused.hints()
    );
    let missing = ask(&dir.path().join("missing.pem")).unwrap_err();
    assert_eq!(missing.kind(), cli_shell::ErrorKind::Config);
}
