//! `wss://` with a private authority, and what does not pass for it.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::json;
use tokio_rustls::TlsAcceptor;

use crate::bed::{Bed, until};
use crate::gate::{Gate, Slot, result};

/// An authority, and a server configuration with a certificate of it for `127.0.0.1`.
fn authority() -> (String, TlsAcceptor) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        )
        .unwrap();
    (issuer.pem(), TlsAcceptor::from(Arc::new(config)))
}

fn bed_for(gate: &Gate, authority: &str) -> Bed {
    let mut bed = Bed::new(&format!("wss://127.0.0.1:{}", gate.port()));
    let file = bed.root.join("ca.pem");
    std::fs::write(&file, authority).unwrap();
    bed.config["ca_file"] = json!(file);
    bed
}

#[tokio::test]
async fn a_private_authority_is_trusted_by_file() {
    let (pem, acceptor) = authority();
    let gate = Gate::new().await;
    let bed = bed_for(&gate, &pem);
    let _worker = bed.start();
    let stream = acceptor.accept(gate.stream().await).await.unwrap();
    let mut slot = Slot::open(stream).await;
    assert_eq!(slot.run(bed.text_lease("hello")).await.1, result("HELLO"));
}

#[tokio::test]
async fn another_authority_gets_no_token() {
    let (_, acceptor) = authority();
    let (other, _) = authority();
    let gate = Gate::new().await;
    let bed = bed_for(&gate, &other);
    let worker = bed.start();
    // The handshake may look finished to the server before the client has refused it.
    if let Ok(mut stream) = acceptor.accept(gate.stream().await).await {
        use tokio::io::AsyncReadExt;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.ok();
        assert!(bytes.is_empty(), "{}", String::from_utf8_lossy(&bytes));
    }
    until("a complaint", || worker.log().contains("certificate")).await;
}

#[tokio::test]
async fn an_authority_file_without_certificates_is_refused_at_the_start() {
    let gate = Gate::new().await;
    let bed = bed_for(&gate, "no certificate\n");
    let mut worker = bed.start();
    assert_eq!(worker.ended().await.code(), Some(2));
    assert!(worker.log().contains("ca.pem"), "{}", worker.log());
}
