//! Whom it talks to: TLS that is verified, or this machine.

use std::error::Error;

use backplane_client::Fault;
use backplane_http::{HttpTransport, Options, Roots};
use rcgen::CertificateParams;

use crate::server::{Server, Step};
use crate::support::{Authority, TOKEN, client, fault, get, is_fault, ok, patient};

pub(crate) fn trusting(authority: &Authority) -> Options {
    Options {
        roots: Roots::Only(authority.file()),
        ..patient()
    }
}

#[test]
fn a_private_authority_is_trusted_instead_of_and_beside_the_systems() {
    let authority = Authority::new();
    for roots in [
        Roots::Only(authority.file()),
        Roots::SystemAnd(authority.file()),
    ] {
        let server = Server::tls(vec![Step::Send(ok())], authority.acceptor("127.0.0.1"));
        let options = Options { roots, ..patient() };
        get(&client(&server.url(), options)).unwrap();
        assert!(server.seen()[0].head.contains(TOKEN));
    }
}

#[test]
fn a_certificate_of_nobody_is_refused_at_once_and_sees_no_token() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server = Server::tls(vec![Step::Send(ok())], authority.acceptor("127.0.0.1"));
    is_fault(get(&client(&server.url(), trusting(&other))), Fault::Tls);
    assert_eq!((server.connections(), server.seen().len()), (1, 0));
}

#[test]
fn a_certificate_of_another_name_or_another_time_is_refused() {
    let authority = Authority::new();
    let mut old = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    old.not_before = rcgen::date_time_ymd(2001, 1, 1);
    old.not_after = rcgen::date_time_ymd(2002, 1, 1);
    let mut new = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    new.not_before = rcgen::date_time_ymd(4000, 1, 1);
    new.not_after = rcgen::date_time_ymd(4001, 1, 1);
    for acceptor in [
        authority.acceptor("registry.example"),
        authority.acceptor_with(&old),
        authority.acceptor_with(&new),
    ] {
        let server = Server::tls(vec![Step::Send(ok())], acceptor);
        is_fault(
            get(&client(&server.url(), trusting(&authority))),
            Fault::Tls,
        );
        assert_eq!((server.connections(), server.seen().len()), (1, 0));
    }
}

#[test]
fn https_to_a_server_without_tls_is_no_request() {
    let server = Server::plain(vec![Step::Send(ok())]);
    let url = server.url().replace("http:", "https:");
    // It reads the handshake as a request without an end.
    let authority = Authority::new();
    let mut options = trusting(&authority);
    options.times.connect = std::time::Duration::from_millis(50);
    let error = fault(get(&client(&url, options)));
    assert!(
        matches!(
            error.fault(),
            Fault::Tls | Fault::TimedOut | Fault::Unreachable
        ),
        "{error}"
    );
    assert!(server.seen().is_empty());
}

#[test]
fn plain_http_stays_on_this_machine_unless_told() {
    // A listener of this machine answers there, and the address is none of the loopback network.
    let server = Server::plain(vec![Step::Send(ok())]);
    let url = format!("http://0.0.0.0:{}", server.address.port());
    let strict = client(&url, patient());
    is_fault(get(&strict), Fault::Refused);
    assert!(!strict.transport().sends_plain(&url));
    assert_eq!(server.connections(), 0);

    let told = Options {
        allow_plain_http: true,
        ..patient()
    };
    let told = client(&url, told);
    assert!(told.transport().sends_plain(&url));
    assert!(!told.transport().sends_plain(&server.url()));
    assert!(!told.transport().sends_plain("https://registry.example"));
    get(&told).unwrap();
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_file_of_authorities_is_read_at_once_and_named_when_it_is_bad() {
    let folder = tempfile::tempdir().unwrap();
    let bad = folder.path().join("bad.pem");
    fs_err::write(&bad, "no certificate").unwrap();
    for roots in [
        Roots::Only(bad.clone()),
        Roots::SystemAnd(bad.clone()),
        Roots::Only(folder.path().join("absent.pem")),
    ] {
        let options = Options { roots, ..patient() };
        let error = HttpTransport::new(options).unwrap_err();
        let cause = error.source().unwrap().to_string();
        assert!(cause.contains(".pem"), "{cause}");
    }
}

#[test]
fn no_debug_text_shows_a_header() {
    let client = client("http://127.0.0.1:9", patient());
    let call = client.request_call(backplane_client::Method::Get, "/x", None);
    let shown = format!("{client:?} {:?} {call:?}", client.transport());
    assert!(!shown.contains(TOKEN), "{shown}");
}
